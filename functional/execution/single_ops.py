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

from ..lowering.lower import FaultSite, Side, summarise
from ..program.dtypes import is_differentiable, is_floating
from ..program.program import Aval, Node
from ..program.symbolic_lengths import AnyLengths, Size
from .confined import confined, name_of, refuse_xla
from .drawn_in_blocks import in_blocks, overwrites
from .numpy.evaluator import MOST, Evaluator, evaluator

_ready: dict[Any, Any] = {}  # ops with the shapes that they ran alone with, and what ran them
_jitted: dict[Any, Any] = {}
_of_numpy: dict[Any, Evaluator] = {}  # of a confined process
# Runs of an op by NumPy after which it is compiled after all, and the elements of its largest value
# that these have together: about as long as it takes to compile.
_OFTEN, _ELEMENTS = 1000, 1 << 22
_TURNS = 300  # steps of a loop that are dear enough to run it less often
_OFTEN_DRAWN = 250  # of those that draw random numbers, which takes NumPy ten times as long
LITTLE = 4096  # elements that NumPy computes no slower than a program starts
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
    if namespace_of(node.call) == "opaque" and not confined:  # NumPy is no quicker than a model
        run = _ready.get(alone)
        if run is None:
            run = _ready[alone] = _compiled(node)
        return run(*inputs)

    def compiled() -> Any:
        return (in_blocks(node) if on_host() else None) or _compiled(node)

    if alone not in _ready and len(reads(node)) < len(inputs):  # the others may be None
        _ready[alone] = compiled()
    return _ran(alone, inputs, compiled, _draws(node))


def reads(node: Node) -> tuple[int, ...]:
    """The values whose data a node reads when it runs alone."""
    if on_host() and not confined and overwrites(node):
        return (node.inputs[0], *node.inputs[2:])
    return node.inputs


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
    alone: Any, arrays: Sequence[Any], compiled: Callable[[], Any], exact: bool = False
) -> Any:
    """What a call gives: by NumPy as long as that is for it, then by what `compiled` makes.

    Args:
      alone: the call, and the abstract values that it takes.
      exact: NumPy must give what XLA gives to the last bit.
    """
    if confined:
        return _by_numpy(alone, arrays)
    run = _ready.get(alone)
    if run is None:
        run = _ready[alone] = _small(alone[0].evaluate, arrays, exact, alone) or compiled()
    found = run(*arrays)
    if found is None:
        run = _ready[alone] = compiled()
        found = run(*arrays)
    return found


def _by_numpy(alone: Any, arrays: Sequence[Any]) -> Any:
    """Compute a call in a process where XLA does not run."""
    run = _of_numpy.get(alone)
    if run is None:
        found = evaluator(alone[0].evaluate, arrays, False, alone)
        if found is None:
            refuse_xla(name_of(alone[0]))
        run = _of_numpy[alone] = found
    return run(*arrays)


class _Small:
    """A function by NumPy, for arrays of few elements; None instead of what it returns once it ran
    so often that it should be compiled.
    """

    def __init__(self, fn: Evaluator) -> None:
        often = (_OFTEN_DRAWN if fn.draws else _OFTEN) // max(1, fn.turns // _TURNS)
        self._fn, self._left = fn, min(often, _ELEMENTS // fn.largest)

    def __call__(self, *arrays: Any) -> list[Any] | None:
        self._left -= 1
        return self._fn(*arrays) if self._left >= 0 else None


def _small(fn: Callable[..., Any], arrays: Sequence[Any], exact: bool, alone: Any) -> _Small | None:
    """The function by NumPy, if that can compute it for arrays like these."""
    found = evaluator(fn, arrays, exact, alone) if on_host() else None
    return None if found is None else _Small(found)


def is_little(described: Any, most: int = MOST) -> bool:
    """Whether NumPy may compute an op, by what it takes: at most so many elements each."""
    return on_host() and all(math.prod(aval.shape) <= most for aval in described[1])


def namespace_of(call: Any) -> str | None:
    """The family of the op that a call, or the call that it is the gradient of, is of."""
    inner = getattr(call, "call", None) or getattr(call, "source", None) or call
    return getattr(getattr(inner, "op", None), "namespace", None)


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


def on_host() -> bool:
    """Whether NumPy's arrays are where a program's would be."""
    return bool(confined) or _runs_on_host()


@functools.cache
def _runs_on_host() -> bool:
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


@functools.cache
def _alike(root: AnyLengths) -> AnyLengths:
    """What the checks of calls have in common that have this in common."""
    return AnyLengths()


class _Checks(AnyLengths):
    """The checks of one call, as a program of their own."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self._call = call
        self._sites: dict[Any, list[FaultSite]] = {}
        self.jitted = jax.jit(self.evaluate)

    @property
    def root(self) -> AnyLengths:
        return self if self._call.root is self._call else _alike(self._call.root)

    def sized(self, size: Size) -> _Checks:
        call = self._call.sized(size)
        return self if call is self._call else _Checks(call)

    def pattern(self, size: Size) -> Any:
        return self._call.pattern(size)

    def shapes(self) -> list[tuple[int, ...]]:
        return list(self._call.shapes())

    def evaluate(self, *arrays: Any) -> Any:
        """A flag and a value of each check."""
        faults = self._call.faults(*arrays)
        self._sites[_avals(arrays)] = [FaultSite(f.error, f.message, None) for f in faults]
        return [x for f in faults for x in summarise(f)]

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[FaultSite], list[Any]]:
        """Where the checks stand, their flags and values; nothing if it is known that none found
        anything."""
        avals = _avals(inputs)
        found = _ran((self, avals), inputs, lambda: self.jitted)
        flags, values = found[::2], found[1::2]
        # To look at what XLA computes would be to wait for it.
        if all(isinstance(flag, np.ndarray) and not flag for flag in flags):
            return [], []
        if avals not in self._sites:  # the words, which tell of lengths, were those of others
            jax.eval_shape(self.evaluate, *inputs)
        return self._sites[avals], list(zip(flags, values, strict=True))


def _avals(arrays: Sequence[Any]) -> tuple[Aval, ...]:
    """What a check may depend on: to a number that became an input it is another thing than to
    an array."""
    return tuple([
        Aval((), np.dtype("int64" if type(x) is int else "float64"), True)
        if type(x) in (int, float)
        else Aval(x.shape, x.dtype, getattr(x, "weak_type", False))
        for x in arrays
    ])  # fmt: skip


def forget_alone() -> None:
    """Let go of all that was compiled alone."""
    compiled = [*_jitted.values(), *[checks.jitted for checks in _checks.values()]]
    for remembered in (_jitted, _checks, _ready):
        remembered.clear()
    for jitted in compiled:
        jitted.clear_cache()
