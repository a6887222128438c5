"""Outputs that write over inputs, and give back what these held where a check found something.

The choice is made as soon as the output is computed, and what follows reads its result. Chosen at
the program's end, the new value would be no output itself: XLA would compute it anew for each of
its readers, which all read the old one, so no buffer could be written to in place. A step of AdamW
copied its moments for that (52 parameters: 181 copies, 77 without guards, and 77 so).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Var, gensym, jaxpr_as_fun


def unwritten(
    results: Sequence[Any], arrays: Any, guards: Sequence[tuple[int, int]], bad: Any
) -> tuple[Any, ...]:
    """Return the results, but the inputs' old values where `bad` is True.

    Args:
      arrays: the inputs, by their places.
      guards: places of results, and of the inputs that they write over.
    """
    found = list(results)
    for k, i in guards:
        found[k] = jnp.where(bad, arrays[i], found[k])
    return tuple(found)


def evaluate_guarded(
    fn: Callable[..., Any], args: Sequence[Any], olds: Mapping[int, Any], bad: Any
) -> tuple[Any, ...]:
    """Evaluate `fn(*args)`; where `bad` is True some results stay old, and others use them.

    Args:
      olds: what to return instead, by the place of the result.
    """
    places, inputs = list(olds), (*args, bad, *olds.values())
    closed = jax.make_jaxpr(lambda *inputs: fn(*inputs[: len(args)]))(*inputs)
    jaxpr, new = closed.jaxpr, gensym()
    flag, *entered = jaxpr.invars[len(args) :]
    outs = [jaxpr.outvars[k] for k in places]
    given = {v: (k, old) for v, k, old in zip(outs, places, entered, strict=True) if type(v) is Var}
    eqns: list[Any] = []
    chosen: set[int] = set()
    for eqn in jaxpr.eqns:
        raw = {v: new(v.aval) for v in eqn.outvars if v in given}
        eqns.append(eqn.replace(outvars=[raw.get(v, v) for v in eqn.outvars]) if raw else eqn)
        for v, made in raw.items():
            k, old = given[v]
            (select,) = jax.make_jaxpr(jax.lax.select_n)(flag.aval, v.aval, v.aval).jaxpr.eqns
            eqns.append(select.replace(invars=[flag, made, old], outvars=[v]))
            chosen.add(k)
    results = jaxpr_as_fun(ClosedJaxpr(jaxpr.replace(eqns=eqns), closed.consts))(*inputs)
    return unwritten(results, olds, [(k, k) for k in places if k not in chosen], bad)
