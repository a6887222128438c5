"""Pullbacks that are alike: a `jax.vjp` of the same call, traced again, is the same gradient.

JAX compares the closures of two traces by identity. A program that holds the gradient of what an
earlier one kept would then be new as often as that one is; and where it also holds the forward
pass of the next turn, each turn is new because the turn before was, and all of them compile.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


def fingerprint(treedef: Any) -> Hashable | None:
    """Describe what a closure computes, beyond the call that it differentiates.

    None where that cannot be told: such a closure is like no other. What equations are called
    with (their `params`) is left out: it follows from the call.
    """
    data = treedef.node_data()
    if data is None:
        return None
    try:
        found = (_told(data), tuple(treedef.children()))
        hash(found)
    except TypeError:
        return None
    return found


def _told(x: Any) -> Hashable:
    if isinstance(x, functools.partial):
        return (_told(x.func), _told(x.args), _told(tuple(x.keywords.items())))
    if isinstance(x, ClosedJaxpr):
        if x.consts:
            raise TypeError("constants are compared by nobody")
        return _equations(x.jaxpr)
    if isinstance(x, Jaxpr):
        return _equations(x)
    if isinstance(x, (tuple, list)):
        return (type(x), *map(_told, x))
    return x  # type: ignore[no-any-return]


def _equations(jaxpr: Jaxpr) -> Hashable:
    numbers: dict[Any, int] = {}

    def of(v: Any) -> Hashable:
        if isinstance(v, Literal):
            return (str(v.aval), repr(v.val))
        return numbers.setdefault(v, len(numbers))

    avals = [str(v.aval) for v in (*jaxpr.constvars, *jaxpr.invars, *jaxpr.outvars)]
    takes = [of(v) for v in (*jaxpr.constvars, *jaxpr.invars)]
    steps = [
        (e.primitive.name, tuple(map(of, e.invars)), tuple(map(of, e.outvars))) for e in jaxpr.eqns
    ]
    return (tuple(avals), len(takes), tuple(steps), tuple(map(of, jaxpr.outvars)))
