"""Strides of results: elementwise ops keep the order in which their operands lie in memory.

PyTorch's `x.t() * 2` lies as `x.t()` does, and `view` refuses what it would refuse there. So a
`Value` knows its strides, worked out once, when its step is first recorded; None stands for
row-major, which is what all other ops make, but for those that packages above add rules of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous_strides
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Slot

from ..._core.memory_format import preserve_format
from .channels_last import ON_IMAGES, kept, memory_format_of
from .layouts import Strides, copied, elementwise, followed, iterated, laid

Rule = Callable[[Any, list[Any], Any], tuple[Strides, ...] | None]
# Rules that `_rules/kernel_strides` adds; one that has nothing to say returns None. By the op's
# name, of any operands and of those that do not all lie row by row; by the class of a call that is
# no op's.
ALWAYS: dict[str, Rule] = {}
OF_STRIDED: dict[str, Rule] = {}
OF_CALL: dict[type, Rule] = {}

_COPYING = frozenset({"clone", "_to_copy", "flip", "fliplr", "flipud"})
# These write into a copy that lies as what it is of; this one into one that is row-major.
_INTO_A_COPY = frozenset({
    "index_fill", "index_put", "put", "select_scatter", "diagonal_scatter", "sort", "argsort",
})  # fmt: skip


def strides_of(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    """Find the strides of a call's results, None if all are row-major.

    Args:
      inputs: the values that it takes.
    """
    op = getattr(call, "op", None)
    if op is None:
        rule = OF_CALL.get(type(call))
        return None if rule is None else rule(call, inputs, avals)
    if not inputs:
        return None
    if op.view:
        base = laid(inputs[0])
        seen = followed(op, base, call.args[1:], call.kwargs)
        layouts = seen if isinstance(seen, list) else [seen]
        if len(layouts) != len(avals):
            return None
        return tuple(strides_unless_rows(x, a.shape) for x, a in zip(layouts, avals, strict=True))
    if op.name == "_unsafe_view":
        seen = followed(TABLE["view"], laid(inputs[0]), call.args[1:], call.kwargs)
        return (strides_unless_rows(seen, avals[0].shape),)
    if op.name == "copy_slices":
        return (inputs[0].strides,)
    if op.name == "optimization_barrier":
        return tuple(v.strides for v in inputs)
    if op.name in ON_IMAGES:
        last = kept(op, call, [laid(v) for v in inputs], avals)
        if last is not None:
            return last
    found = _by_rule(ALWAYS, call, inputs, avals)
    if found is not None:
        return found
    if all(v.strides is None for v in inputs):
        return None
    found = _by_rule(OF_STRIDED, call, inputs, avals)
    if found is not None:
        return found
    if op.name in _INTO_A_COPY:
        return (copied(laid(inputs[0])),) * len(avals)
    if not elementwise(op, inputs):
        return None
    if op.name in ("clone", "_to_copy") and _in_rows(op, call):
        return None
    if op.name in _COPYING:
        return (copied(laid(inputs[0])),)
    if op.name == "angle" and inputs[0].dtype.kind == "c":
        return None  # written into what is empty at first
    if op.name == "pow" and (type(call.args[0]) is not Slot or inputs[0].weak):
        return None  # PyTorch makes the power of a number row by row
    operands = [laid(v) for v in (reversed(inputs) if op.name == "rsub" else inputs)]
    if any(type(a) in (int, float, complex) for a in call.args[1:]):
        operands.append(Layout((), ()))
    return tuple(iterated(tuple(a.shape), operands) for a in avals)


def _in_rows(op: Op, call: Any) -> bool:
    """Tell whether a copy is asked to be row-major."""
    return (memory_format_of(op, call) or preserve_format) is not preserve_format


def _by_rule(
    rules: dict[str, Rule], call: Any, inputs: list[Any], avals: Any
) -> tuple[Strides, ...] | None:
    rule = rules.get(call.op.qualified) or rules.get(call.op.name)
    return None if rule is None else rule(call, inputs, avals)


def strides_unless_rows(found: Layout | None, shape: Any) -> Strides:
    """Give the strides of a layout of this shape, None if it is row-major or has another."""
    if found is None or found.shape != tuple(shape):
        return None
    return None if found.strides == contiguous_strides(found.shape) else found.strides
