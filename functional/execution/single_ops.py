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
from ..lowering.scopes import name_op
from ..program.dtypes import is_differentiable, is_floating
from ..program.platform import platform, platform_of, traced_for
from ..program.program import Aval, Node
from ..program.symbolic_lengths import AnyLengths, Size
from .confined import confined, name_of, refuse_xla
from .drawn_in_blocks import in_blocks, overwrites
from .known_ops import SingleOp, forget_known_ops, single_op
from .numpy.evaluator import MOST, Evaluator, evaluator
from .numpy.joins import join_of
from .thresholds import (
    NUMPY_DRAWS,
    NUMPY_ELEMENTS,
    NUMPY_FAST_ELEMENTS,
    NUMPY_FAST_STEPS,
    NUMPY_LOOP_STEPS,
    NUMPY_RUNS,
)

_jitted: dict[Any, Any] = {}
_of_numpy: dict[SingleOp, Evaluator] = {}  # of a confined process
_checks: dict[Any, _Checks] = {}


def run_node(node: Node, op: SingleOp, inputs: Sequence[Any]) -> Any:
    """Run a node alone, and return its outputs.

    Args:
      op: what it is by itself.
    """
    run = op.run
    if run is not None and not confined:
        found = run(*inputs)
        if found is not None:
            return found

    def compiled() -> Any:
        return (in_blocks(node) if on_host() else None) or _compiled(node)

    if not confined:
        # NumPy is no quicker than a model; what a node does not read may be None.
        if op.namespace == "opaque" or len(reads(node)) < len(inputs):
            op.run = compiled()
    return _run(op, inputs, compiled, _is_random(node))


def reads(node: Node) -> tuple[int, ...]:
    """Return the values whose data a node reads when it runs alone."""
    if on_host() and not confined and overwrites(node):
        return (node.inputs[0], *node.inputs[2:])
    return node.inputs


def check_node(node: Node, inputs: Sequence[Any], side: Side) -> list[Any]:
    """Run the checks of a node that need its data; return a flag and a value of each.

    Args:
      side: is told of the fault sites.
    """
    checks = _checks.get(node.call)
    if checks is None:
        checks = _checks[node.call] = _Checks(node.call)
    sites, found = checks(inputs)
    side.faults.extend(site._replace(where=node.where) for site in sites)
    return found


def _run(op: SingleOp, arrays: Sequence[Any], compiled: Callable[[], Any], exact: bool) -> Any:
    """Run an op by NumPy as long as that pays, then by what `compiled` makes.

    Args:
      exact: NumPy must give what XLA gives to the last bit.
    """
    if confined:
        return _run_by_numpy(op, arrays)
    run = op.run
    if run is None:
        alone = op.call, op.avals
        run = op.run = _try_numpy(op.call.evaluate, arrays, exact, alone) or compiled()
    found = run(*arrays)
    if found is None:
        run = op.run = compiled()
        found = run(*arrays)
    return found


def _run_by_numpy(op: SingleOp, arrays: Sequence[Any]) -> Any:
    """Compute an op in a process where XLA does not run."""
    run = _of_numpy.get(op)
    if run is None:
        found = evaluator(op.call.evaluate, arrays, False, (op.call, op.avals))
        if found is None:
            refuse_xla(name_of(op.call))
        run = _of_numpy[op] = found
    return run(*arrays)


class _NumpyRuns:
    """A function by NumPy, for arrays of few elements.

    It returns None once it ran so often that it should be compiled.
    """

    def __init__(self, fn: Evaluator) -> None:
        often = (NUMPY_DRAWS if fn.draws else NUMPY_RUNS) // max(1, fn.turns // NUMPY_LOOP_STEPS)
        self._fn, self._left = fn, min(often, NUMPY_ELEMENTS // fn.largest)

    def __call__(self, *arrays: Any) -> list[Any] | None:
        self._left -= 1
        return self._fn(*arrays) if self._left >= 0 else None


def _try_numpy(
    fn: Callable[..., Any], arrays: Sequence[Any], exact: bool, alone: Any
) -> Callable[..., Any] | None:
    """Return the function by NumPy, if that can compute it for arrays like these."""
    if not on_host():
        return None
    join = join_of(*alone) if alone and sum(map(np.size, arrays)) <= MOST else None
    if join is not None:
        return join
    found = evaluator(fn, arrays, exact, alone)
    if found is None:
        return None
    quick = found.work <= NUMPY_FAST_STEPS and found.largest <= NUMPY_FAST_ELEMENTS
    return found if quick and not found.draws else _NumpyRuns(found)


def fits_numpy(op: SingleOp, most: int = MOST) -> bool:
    """Return True if NumPy may compute an op: it takes at most so many elements each."""
    return on_host() and all(math.prod(aval.shape) <= most for aval in op.avals)


def _is_random(node: Node) -> bool:
    """Return True if it draws random numbers, whose bits depend on the seed alone."""
    return bool(getattr(getattr(node.call, "op", None), "random", False))


#: Random ops whose numbers are not scaled, which could be rounded otherwise in a larger program.
_UNSCALED = frozenset({"rand", "randn", "randint", "randperm"})


def is_exact(node: Node) -> bool:
    """Return True if a node gives the same bits wherever it runs: nothing is rounded."""
    op = getattr(node.call, "op", None)
    if op is None:
        return False
    if op.view or op.random and op.name in _UNSCALED:
        return True
    return not any(is_differentiable(aval.dtype) for aval in node.avals)


def on_host() -> bool:
    """Return True if NumPy's arrays are where a program's would be."""
    return bool(confined) or _runs_on_host()


@functools.cache
def _runs_on_host() -> bool:
    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


def _compiled(node: Node) -> Any:
    options = compiler_options_of((node,))
    where = platform_of(node.avals) or platform()  # JAX traces once, wherever the arrays are
    key = (node.call, bool(options), where)
    jitted = _jitted.get(key)
    if jitted is None:
        evaluate = node.call.evaluate

        def run(*arrays: Any) -> Any:
            with traced_for(where):
                return evaluate(*arrays)

        name_op(run, node.call)
        jitted = _jitted[key] = jax.jit(run, **options)
    return jitted


def compiler_options_of(nodes: Sequence[Node]) -> dict[str, Any]:
    """Return the options of `jax.jit` for these nodes.

    XLA leaves out the rounding to 16 bits of what another op of the program reads, so that numbers
    would depend on where the program was cut.
    """
    dtypes = (aval.dtype for node in nodes for aval in node.avals)
    if any(dtype.itemsize == 2 and is_floating(dtype) for dtype in dtypes):
        return {"compiler_options": {"xla_allow_excess_precision": False}}
    return {}


@functools.cache
def _shared_root(root: AnyLengths) -> AnyLengths:
    """Return the root that the checks of all calls with this root have."""
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
        return self if self._call.root is self._call else _shared_root(self._call.root)

    def sized(self, size: Size) -> _Checks:
        call = self._call.sized(size)
        return self if call is self._call else _Checks(call)

    def pattern(self, size: Size) -> Any:
        return self._call.pattern(size)

    def shapes(self) -> list[tuple[int, ...]]:
        return list(self._call.shapes())

    def evaluate(self, *arrays: Any) -> Any:
        """Return a flag and a value of each check."""
        faults = self._call.faults(*arrays)
        self._sites[_avals(arrays)] = [FaultSite(f.error, f.message, None) for f in faults]
        return [x for f in faults for x in summarise(f)]

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[FaultSite], list[Any]]:
        """Return the checks' sites, flags and values; nothing if all are known to pass."""
        avals = _avals(inputs)
        found = _run(single_op(self, avals), inputs, lambda: self.jitted, False)
        flags, values = found[::2], found[1::2]
        # To look at what XLA computes would be to wait for it.
        if all(isinstance(flag, np.ndarray) and not flag for flag in flags):
            return [], []
        if avals not in self._sites:  # the words, which tell of lengths, were those of others
            jax.eval_shape(self.evaluate, *inputs)
        return self._sites[avals], list(zip(flags, values, strict=True))


def _avals(arrays: Sequence[Any]) -> tuple[Aval, ...]:
    """Return the abstract values that a check is traced for: a number is no array there."""
    return tuple([
        Aval((), np.dtype("int64" if type(x) is int else "float64"), True)
        if type(x) in (int, float)
        else Aval(x.shape, x.dtype, getattr(x, "weak_type", False))
        for x in arrays
    ])  # fmt: skip


def forget_compiled_ops() -> None:
    """Release all that was compiled alone."""
    compiled = [*_jitted.values(), *[checks.jitted for checks in _checks.values()]]
    forget_known_ops()
    for remembered in (_jitted, _checks):
        remembered.clear()
    for jitted in compiled:
        jitted.clear_cache()
