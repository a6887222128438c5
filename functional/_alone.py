"""Ops by themselves: each with the shapes that it takes, by NumPy or compiled alone.

An op that ran alone before dispatches in microseconds, whatever program it is in.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ._dtypes import is_differentiable, is_floating
from ._lower import FaultSite, Side, summarise
from ._numpy import MOST, evaluator
from ._program import Node

_ready: dict[Any, Any] = {}  # ops with the shapes that they ran alone with, and what ran them
_jitted: dict[Any, Any] = {}
_OFTEN = 1000  # runs of an op by NumPy after which it is compiled after all
_checks: dict[Any, _Checks] = {}


def is_ready(alone: Any) -> bool:
    """Whether an op ran with such shapes before.

    Args:
      alone: its call, and the abstract values that it takes.
    """
    return alone in _ready


def ran_alone(node: Node, alone: Any, inputs: Sequence[Any]) -> Any:
    """What a node gives of these inputs.

    Args:
      alone: its call, and the abstract values that it takes.
    """
    return _ran(_ready, alone, inputs, node.call.evaluate, _compiled, node, _draws(node))


def check_alone(node: Node, inputs: Sequence[Any], side: Side) -> list[Any]:
    """Flags and values of what only the data can tell of a node.

    Args:
      side: is told of the fault sites.
    """
    checks = _checks.get(node.call)
    if checks is None:
        checks = _checks[node.call] = _Checks(node.call)
    sites, found = checks(inputs)
    side.faults.extend(site._replace(where=node.where) for site in sites)
    return found


def _ran(
    ready: dict[Any, Any], key: Any, arrays: Sequence[Any], fn: Callable[..., Any],
    compiled: Callable[[Any], Any], what: Any, exact: bool = False,
) -> Any:  # fmt: skip
    """What `fn` gives: by NumPy as long as that is for it, then by `compiled(what)`.

    Args:
      ready: what runs `fn` for arrays like these, by key.
      exact: NumPy must give what XLA gives to the last bit.
    """
    run = ready.get(key)
    if run is None:
        run = ready[key] = _small(fn, arrays, exact) or compiled(what)
    found = run(*arrays)
    if found is None:
        run = ready[key] = compiled(what)
        found = run(*arrays)
    return found


class _Small:
    """A function by NumPy, for arrays of few elements; None instead of what it returns once it ran
    so often that it should be compiled.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn, self._left = fn, _OFTEN

    def __call__(self, *arrays: Any) -> list[Any] | None:
        self._left -= 1
        return self._fn(*arrays) if self._left >= 0 else None


def _small(fn: Callable[..., Any], arrays: Sequence[Any], exact: bool = False) -> _Small | None:
    """The function by NumPy, if that can compute it for arrays like these."""
    found = evaluator(fn, arrays, exact) if _on_host() else None
    return None if found is None else _Small(found)


def is_little(described: Any) -> bool:
    """Whether NumPy may compute an op, by what it takes."""
    return _on_host() and all(math.prod(aval.shape) <= MOST for aval in described[1])


def _draws(node: Node) -> bool:
    """Whether it draws random numbers, which depend on nothing but the seed, to the last bit."""
    return bool(getattr(getattr(node.call, "op", None), "random", False))


#: Random ops whose numbers are not scaled, which could be rounded otherwise in a larger program.
_UNSCALED = frozenset({"rand", "randn", "randint", "randperm"})


def is_exact(node: Node) -> bool:
    """Whether a node gives the same to the last bit wherever it runs, for nothing is rounded."""
    op = getattr(node.call, "op", None)
    if op is None:
        return False
    if op.view or op.random and op.name in _UNSCALED:
        return True
    return not any(is_differentiable(aval.dtype) for aval in node.avals)


@functools.cache
def _on_host() -> bool:
    """Whether NumPy's arrays are where a program's would be."""
    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


def _compiled(node: Node) -> Any:
    options = options_of((node,))
    key = (node.call, bool(options))
    jitted = _jitted.get(key)
    if jitted is None:
        jitted = _jitted[key] = jax.jit(node.call.evaluate, **options)
    return jitted


def options_of(nodes: Sequence[Node]) -> dict[str, Any]:
    """What to tell `jax.jit` for these nodes.

    XLA leaves out the rounding to 16 bits of what another op of the program reads, so that numbers
    would depend on where the program was cut.
    """
    dtypes = (aval.dtype for node in nodes for aval in node.avals)
    if any(dtype.itemsize == 2 and is_floating(dtype) for dtype in dtypes):
        return {"compiler_options": {"xla_allow_excess_precision": False}}
    return {}


class _Checks:
    """The checks of one call, as a program of their own."""

    def __init__(self, call: Any) -> None:
        self.sites: dict[Any, list[FaultSite]] = {}

        def run(*arrays: Any) -> Any:
            faults = call.faults(*arrays)
            key = tuple(map(_kind, arrays))
            self.sites[key] = [FaultSite(f.error, f.message, None) for f in faults]
            return [x for f in faults for x in summarise(f)]

        self._run, self.jitted = run, jax.jit(run)
        self._ready: dict[Any, Any] = {}

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[FaultSite], list[Any]]:
        key = tuple(map(_kind, inputs))
        found = _ran(self._ready, key, inputs, self._run, lambda checks: checks.jitted, self)
        return self.sites[key], list(zip(found[::2], found[1::2], strict=True))


def _kind(x: Any) -> Any:
    """What a check may depend on: to a number that became an input it is another thing than to
    an array."""
    if type(x) in (int, float):
        return (), np.dtype("int64" if type(x) is int else "float64"), True
    return x.shape, x.dtype, getattr(x, "weak_type", False)


def forget_alone() -> None:
    """Let go of all that was compiled alone."""
    compiled = [*_jitted.values(), *[checks.jitted for checks in _checks.values()]]
    for remembered in (_jitted, _checks, _ready):
        remembered.clear()
    for jitted in compiled:
        jitted.clear_cache()
