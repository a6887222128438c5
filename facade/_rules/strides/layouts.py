"""Layouts in memory: of views, of copies, and of what ATen's `TensorIterator` makes.

JAX arrays are row-major to the eye; here strides are worked out as PyTorch's would be. None stands
for row-major.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import Layout, contiguous_strides
from leafax.functional.ops.shape.strides import is_contiguous as are_contiguous
from leafax.functional.ops.shape.view_rules import VIEW_RULES
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Slot

from ..._core.view_ops import PICKED, path_of

Strides = tuple[int, ...] | None


_NARROW = TABLE["narrow"].fn


# Single ops that PyTorch runs through its `TensorIterator`, of families that it does not.
_OPS = frozenset({
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu",
    "mish", "relu", "relu6", "selu", "silu", "softplus", "softshrink", "float_power", "frexp", "i0",
    "igamma", "igammac", "ldexp", "nextafter", "polar", "clone", "_to_copy", "flip", "fliplr",
    "flipud", "dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout",
    "slice_scatter", "sigmoid_backward", "tanh_backward",
    "threshold_backward", "native_dropout", "_prelu_kernel", "threshold", "mse_loss",
    "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "polygamma", "i0e", "i1",
    "i1e", "ndtr", "ndtri", "log_ndtr", "entr", "xlog1py", "zeta", "gcd", "lcm",
})  # fmt: skip


_INTO_ROWS = frozenset({"masked_fill"})


_REDUCING = frozenset({"max", "min"})


def laid(value: Any) -> Layout:
    """Give the layout of a value, from the first of its elements on."""
    shape = tuple(value.shape)
    strides = value.strides
    return Layout(shape, contiguous_strides(shape) if strides is None else strides)


def elementwise(op: Op, inputs: list[Any]) -> bool:
    if op.name in _REDUCING:
        return len(inputs) == 2
    if op.name in _INTO_ROWS:
        return False
    return op.elementwise or op.name in _OPS


def followed(op: Op, base: Layout, args: Any, kwargs: Any) -> Any:
    """Find the layout of a view, by the rule of its op or of each op of a lens."""
    path = path_of(op, args)
    if path is not None:
        found: Any = base
        for step, more, named in path:
            found = None if found is None else followed(step, found, more, named)
            if isinstance(found, list):
                found = found[PICKED[step]]
        return found
    picked = PICKED.get(op)
    rule = VIEW_RULES.get("narrow" if op.fn is _NARROW else op.name.removesuffix("_"))
    if rule is None:
        return None
    try:
        found = rule(base, *[_plain(a) for a in args], **{k: _plain(a) for k, a in kwargs.items()})
    except (TypeError, IndexError, RuntimeError):  # of arguments that are tensors
        return None
    return found[picked] if picked is not None and isinstance(found, list) else found


def _plain(a: Any) -> Any:
    """Replace a number that became an input: it says where a view begins, so any will do."""
    return 0 if isinstance(a, Slot) else a


def copied(found: Layout) -> Strides:
    """Find the strides of a copy of what lies like this."""
    return found.strides if dense(found) else iterated(found.shape, [found])


def iterated(shape: tuple[int, ...], operands: list[Layout]) -> Strides:
    """Find the strides that ATen's `TensorIterator` gives a result of this shape.

    Its dims are sorted as the operands' strides are, the first operand that tells deciding.
    """
    if len(shape) < 2:
        return None
    if all(x.shape == shape for x in operands):
        if all(is_contiguous(x) for x in operands):
            return None
        if len({x.strides for x in operands}) == 1 and dense(operands[0]):
            return operands[0].strides
    known = [_spread(x, shape) for x in operands]
    order = list(range(len(shape)))[::-1]

    def later(a: int, b: int) -> int:
        for strides in known:
            first, second = strides[a], strides[b]
            if not first or not second:
                continue
            if first != second:
                return -1 if first < second else 1
            if shape[a] > shape[b]:
                return 1
        return 0

    for i in range(1, len(order)):
        at = i
        for j in range(i - 1, -1, -1):
            found = later(order[j], order[at])
            if found > 0:
                order[j], order[at] = order[at], order[j]
                at = j
            elif found < 0:
                break
    if order == list(range(len(shape)))[::-1]:
        return None
    strides, step = [0] * len(shape), 1
    for dim in order:
        strides[dim] = step
        step *= shape[dim]
    return tuple(strides)


def _spread(x: Layout, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast the strides of an operand to `shape`: 0 where it repeats."""
    lead = len(shape) - len(x.shape)
    own = [
        0 if n == 1 and m != 1 else s
        for n, s, m in zip(x.shape, x.strides, shape[lead:], strict=True)
    ]
    return (*[0] * lead, *own)


def is_contiguous(x: Layout) -> bool:
    """Tell whether elements lie row by row; strides of dims of one element do not matter."""
    return are_contiguous(x.shape, x.strides)


def dense(x: Layout) -> bool:
    """Tell whether each place of a range is held exactly once; so it is where there is none."""
    if 0 in x.shape:
        return True
    expected = 1
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


def is_dense(shape: Any, strides: Strides) -> bool:
    """Tell whether a tensor of these strides has neither gaps nor elements that share memory."""
    return strides is None or dense(Layout(tuple(shape), strides))
