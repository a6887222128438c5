"""Strides of results: elementwise ops keep the order in which their operands lie in memory.

JAX arrays are row-major to the eye; PyTorch's `x.t() * 2` lies as `x.t()` does, and `view` refuses
what it would refuse there. So a `Value` knows its strides, worked out once, when its step is first
recorded; None stands for row-major, which is what all other ops make.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.ops.shape.strides import VIEW_RULES, Layout, contiguous_strides
from leafax.functional.program.op import TABLE, Op
from leafax.functional.program.program import Slot

from ..._core.memory_format import preserve_format
from ..._core.view_ops import PICKED, path_of
from .channels_last import ON_IMAGES, kept, memory_format_of
from .column_major import columns
from .of_attention import QUALIFIED as ATTENTION
from .of_attention import is_fused
from .of_fft import TRANSFORMS, transformed
from .of_moved import NAMES as _MOVED
from .of_moved import moved

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
_COPYING = frozenset({"clone", "_to_copy", "flip", "fliplr", "flipud"})
# These write into a copy that lies as what it is of; this one into one that is row-major.
_INTO_A_COPY = frozenset({
    "index_fill", "index_put", "put", "select_scatter", "diagonal_scatter", "sort", "argsort",
})  # fmt: skip
_INTO_ROWS = frozenset({"masked_fill"})
_REDUCING = frozenset({"max", "min"})


def strides_of(call: Any, inputs: list[Any], avals: Any) -> tuple[Strides, ...] | None:
    """The strides of a call's results, None if all are row-major.

    Args:
      inputs: the values that it takes.
    """
    op = getattr(call, "op", None)
    if type(call) is VjpCall:
        from .of_gradients import gradient_strides

        return gradient_strides(call, inputs, avals)
    if op is None or not inputs:
        return None
    if op.view:
        base = laid(inputs[0])
        found = followed(op, base, call.args[1:], call.kwargs)
        found = found if isinstance(found, list) else [found]
        if len(found) != len(avals):
            return None
        return tuple(_told(f, a.shape) for f, a in zip(found, avals, strict=True))
    if op.name == "_unsafe_view":
        seen = followed(TABLE["view"], laid(inputs[0]), call.args[1:], call.kwargs)
        return (_told(seen, avals[0].shape),)
    if op.name == "copy_slices":
        return (inputs[0].strides,)
    if op.name == "optimization_barrier":
        return tuple(v.strides for v in inputs)
    if op.name == "rot90":
        others = {k: x for k, x in call.kwargs.items() if k != "input"}
        return (_told(_rotated(laid(inputs[0]), *call.args[1:], **others), avals[0].shape),)
    if op.name in TRANSFORMS:
        return (transformed(op, call, laid(inputs[0]), tuple(avals[0].shape)),)
    if op.name in ON_IMAGES:
        found_last = kept(op, call, [laid(v) for v in inputs], avals)
        if found_last is not None:
            return found_last
    by_columns = columns(op, call, inputs, avals)
    if by_columns is not None:
        return by_columns
    if all(v.strides is None for v in inputs):
        return None
    if op.name in _MOVED:
        return (moved(op, call, [laid(v) for v in inputs], avals, iterated),)
    if op.name in _INTO_A_COPY or op.qualified == ATTENTION and is_fused(call, inputs):
        return (copied(laid(inputs[0])),) * len(avals)
    if op.name == "addr":  # elementwise, of one vector as a column
        x, first, second = map(laid, inputs[:3])
        column = Layout((*first.shape, 1), (*first.strides, 1))
        return (iterated(tuple(avals[0].shape), [x, column, second]),)
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


def _rotated(base: Layout, k: int = 1, dims: Any = (0, 1)) -> Layout:
    """The layout of `rot90`: flipped, then for odd `k` transposed."""
    if k % 4 == 0:
        return Layout(base.shape, contiguous_strides(base.shape))
    strides = copied(base) or contiguous_strides(base.shape)
    order = list(range(len(base.shape)))
    if k % 2:
        a, b = (d % len(order) for d in dims)
        order[a], order[b] = b, a
    return Layout(tuple(base.shape[d] for d in order), tuple(strides[d] for d in order))


def _in_rows(op: Op, call: Any) -> bool:
    """Whether a copy is asked to be row-major."""
    return (memory_format_of(op, call) or preserve_format) is not preserve_format


def laid(value: Any) -> Layout:
    """The layout of a value, from the first of its elements on."""
    shape = tuple(value.shape)
    strides = value.strides
    return Layout(shape, contiguous_strides(shape) if strides is None else strides)


def elementwise(op: Op, inputs: list[Any]) -> bool:
    if op.name in _REDUCING:
        return len(inputs) == 2
    if op.name in _INTO_ROWS:
        return False
    return op.elementwise or op.name in _OPS


def _told(found: Layout | None, shape: Any) -> Strides:
    if found is None or found.shape != tuple(shape):
        return None
    return None if found.strides == contiguous_strides(found.shape) else found.strides


def followed(op: Op, base: Layout, args: Any, kwargs: Any) -> Any:
    """The layout of a view, by the rule of its op or of each op of a lens."""
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
    """A number that became an input says where a view begins: any will do."""
    return 0 if isinstance(a, Slot) else a


def copied(found: Layout) -> Strides:
    """The strides of a copy of what lies like this."""
    return found.strides if dense(found) else iterated(found.shape, [found])


def iterated(shape: tuple[int, ...], operands: list[Layout]) -> Strides:
    """The strides that ATen's `TensorIterator` gives a result of this shape.

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
    """Strides of an operand that is broadcast to `shape`: 0 where it repeats."""
    lead = len(shape) - len(x.shape)
    own = [
        0 if n == 1 and m != 1 else s
        for n, s, m in zip(x.shape, x.strides, shape[lead:], strict=True)
    ]
    return (*[0] * lead, *own)


def is_contiguous(x: Layout) -> bool:
    """Whether elements lie row by row; strides of dims of one element do not matter."""
    if 0 in x.shape:
        return True
    expected = 1
    for n, s in zip(reversed(x.shape), reversed(x.strides), strict=True):
        if n != 1 and s != expected:
            return False
        expected *= n
    return True


def dense(x: Layout) -> bool:
    """Whether each place of a range is held exactly once; so it is where there is none."""
    if 0 in x.shape:
        return True
    expected = 1
    for stride, n in sorted((s, n) for s, n in zip(x.strides, x.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= n
    return True


def is_dense(shape: Any, strides: Strides) -> bool:
    """Whether a tensor of these strides has neither gaps nor elements that share memory."""
    return strides is None or dense(Layout(tuple(shape), strides))
