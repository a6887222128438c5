"""`matmul`, made of `dot`, `mv`, `mm` and `bmm` as PyTorch makes it.

Which of them, and which views go around it, depends on the ranks, on which operand requires grad
and on strides: a batch is folded into the rows of one matrix where that copies nothing, or saves a
large gradient. All of that is known from the operands' values, so a product is one known call,
however many ops it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from leafax.functional.ops.shape.dimensions import broadcast_shapes
from leafax.functional.program.op import TABLE, Op

from ..._core.trie import local
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._host.compute import compute
from ..._storage.strides import must_copy, stride
from ..._storage.write import written_once
from ..autocast.casts import off, operands
from ..calls import operators_fast
from ..calls.functions import function, named, two_tensors
from ..calls.methods import method
from ..writes.resize_out import resize_output
from ..writes.write_out import check_out

_MATMUL, _MM, _MV = TABLE["matmul"], TABLE["mm"], TABLE["mv"]
_DOT, _BMM = TABLE["dot"], TABLE["bmm"]
_RESHAPE, _EXPAND, _UNSAFE_VIEW = TABLE["reshape"], TABLE["expand"], TABLE["_unsafe_view"]
_SQUEEZE, _UNSQUEEZE, _T, _MT = (TABLE[name] for name in ("squeeze", "unsqueeze", "t", "mT"))
_AS_IT_IS = {(2, 2): _MM, (2, 1): _MV, (1, 1): _DOT}  # ranks of operands that one op multiplies
# `squeeze_` of a matrix that nobody else has seen.
_SQUEEZED = Op(_SQUEEZE.fn, name="squeeze_", backward="SqueezeBackward4")
_mm_into, _mv_into, _bmm_into, _dot_into = (function(op) for op in (_MM, _MV, _BMM, _DOT))


@in_one_step
def product(input: Any, other: Any) -> Any:
    """Compute `input @ other`.

    Args:
      input, other: tensors of at least one dim.
    """
    if local.mode.autocast is not None:
        return _composed(*operands(_MATMUL, (input, other)))
    if input._v.index < 0:
        op = _AS_IT_IS.get((len(input._v.shape), len(other._v.shape)))
        found = None if op is None else compute(op, (input, other), None)
        if found is not None:
            return found
    return _composed(input, other)


def _composed(input: Any, other: Any) -> Any:
    left, right = _ranks(input, other)
    if left == 2 and right == 2:
        return apply(_MM, input, other)
    if left == 1 and right == 1:
        return apply(_DOT, input, other)
    if left == 2 and right == 1:
        return apply(_MV, input, other)
    if left == 1 and right == 2:
        return _written_once(apply(_SQUEEZED, apply(_MM, apply(_UNSQUEEZE, input, 0), other), 0))
    if _folds(input, other, False):
        return _folded(input, other)
    one = _without_batch(input, other)
    if one is not None:
        return _composed(*one)
    return _batched(input, other)


def _written_once(out: Any) -> Any:
    """`out`, whose version says that something was done to it in place."""
    return out if out._v.inference else written_once(out)


def _ranks(input: Any, other: Any) -> tuple[int, int]:
    left, right = len(input._v.shape), len(other._v.shape)
    if not left or not right:
        raise RuntimeError(
            f"both arguments to matmul need to be at least 1D, but they are {left}D and {right}D"
        )
    return left, right


def _folds(input: Any, other: Any, into: bool) -> bool:
    """Tell whether the batch of the larger operand becomes rows of one matrix.

    Args:
      into: the result is written into a tensor that is given.
    """
    larger, smaller = input, other
    if other.dim() > input.dim():
        larger, smaller = other, input
    if larger.dim() < 3 or smaller.dim() > 2:
        return False
    # Else the gradient of the smaller one would be made once for each of the batch, then summed.
    if smaller._tracked and not into:
        return True
    if input.dim() == 2:
        return False
    if not larger.numel():
        return True
    shape, strides = list(larger.shape), list(stride(larger))
    if larger is other:  # it is seen transposed
        shape[-2:], strides[-2:] = shape[:-3:-1], strides[:-3:-1]
    return all(strides[d] == strides[d + 1] * shape[d + 1] for d in range(len(shape) - 2))


def _rows(input: Any, other: Any) -> tuple[Any, Any, tuple[int, ...]]:
    """Return the folded matrix, what it is multiplied by, and the result's shape."""
    turned = other.dim() > input.dim()
    x = apply(_MT, other) if turned else input
    y = (apply(_T, input) if input.dim() == 2 else input) if turned else other
    shape = tuple(x.shape)
    rows = apply(_RESHAPE, x, (prod(shape[:-1]), shape[-1]))
    return rows, y, (*shape[:-1], y.shape[1]) if y.dim() == 2 else shape[:-1]


def _folded(input: Any, other: Any) -> Any:
    rows, y, shape = _rows(input, other)
    if y.dim() == 1:
        return apply(_UNSAFE_VIEW, apply(_MV, rows, y), shape)
    out = apply(_UNSAFE_VIEW, apply(_MM, rows, y), shape)
    return apply(_MT, out).contiguous() if other.dim() > input.dim() else out


def _without_batch(input: Any, other: Any) -> tuple[Any, Any] | None:
    """Two batches of matrices where one is a batch of one: as that matrix, for its gradient."""
    if not input.dim() == other.dim() == 3 or input.shape[0] == other.shape[0]:
        return None
    if input.shape[0] == 1 and input._tracked:
        return apply(_SQUEEZE, input, 0), other
    if other.shape[0] == 1 and other._tracked:
        return input, apply(_SQUEEZE, other, 0)
    return None


def _expanded(input: Any, other: Any) -> tuple[Any, Any, tuple[int, ...], tuple[int, ...]]:
    """Return both as one batch of matrices each, the shape of the batch, and that of the result."""
    a, b = tuple(input.shape), tuple(other.shape)
    batch = tuple(broadcast_shapes(a[:-2], b[:-2]))
    count = prod(batch)
    matrix = a[-2:] if len(a) > 1 else (1, *a)
    x = apply(_RESHAPE, apply(_EXPAND, input, (*batch, *matrix)), (count, *matrix))
    y = apply(_EXPAND, other, (*batch, *b[-2:]))
    if len(b) == 1:
        y = apply(_UNSQUEEZE, apply(_RESHAPE, y, (count, *b)), 2)
    else:
        y = apply(_RESHAPE, y, (count, *b[-2:]))
    shape = (*batch, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))
    return x, y, batch, shape


def _batched(input: Any, other: Any) -> Any:
    x, y, _, shape = _expanded(input, other)
    made = apply(_BMM, x, y)
    if other.dim() == 1:
        made = apply(_SQUEEZE, made, -1)
    return apply(_UNSAFE_VIEW, made, shape)


# Results into a tensor that is given --------------------------------------------------------------


def _into(out: Any, input: Any, other: Any) -> Any:
    """Compute `matmul(input, other, out=out)`."""
    check_out(_MATMUL, out, (input, other))
    left, right = _ranks(input, other)
    if left == 2 and right == 2:
        return _mm_into(input, other, out=out)
    if left == 1 and right == 1:
        return _dot_into(input, other, out=out)
    if left == 2 and right == 1:
        return _mv_into(input, other, out=out)
    if left == 1 and right == 2:
        return _mm_into(apply(_UNSQUEEZE, input, 0), other, out=out).squeeze_(0)
    if _folds(input, other, True):
        x, y, shape = _rows(input, other)
        kernel = _mv_into if y.dim() == 1 else _mm_into
        seen: tuple[int, ...] = (x.shape[0], *y.shape[1:])
    else:
        x, y, batch, shape = _expanded(input, other)
        kernel = _bmm_into
        seen = (prod(batch), x.shape[1], y.shape[2])
    resize_output(out, shape)
    apart = must_copy(_RESHAPE, out, (seen,), {})
    memory = apply(_RESHAPE, out, seen)
    kernel(x, y, out=memory)
    return out.copy_(memory.view(shape)) if apart else out


# What users call ----------------------------------------------------------------------------------


def _called(op: Op, otherwise: Callable[..., Any], is_method: bool) -> Callable[..., Any]:
    """Return the function or method of `op`, which is `matmul` by one of its names.

    Args:
      otherwise: has the words for arguments that are none.
    """

    def fn(*args: Any, **kwargs: Any) -> Any:
        out = None if is_method else kwargs.pop("out", None)
        given = two_tensors(op, args, kwargs)
        if given is None:
            return otherwise(*args, **kwargs)
        if out is None:
            return product(*given)
        mode = local.mode
        if mode.autocast is None:
            return _into(out, *given)
        return off(_into, out, *given)

    return named(fn, op, op.name)


matmul = _called(_MATMUL, function(_MATMUL), False)
linalg_matmul = _called(TABLE["linalg.matmul"], function(TABLE["linalg.matmul"]), False)


def install(cls: Any) -> None:
    """Give the tensor class the method and the operators."""
    cls.matmul = _called(_MATMUL, method(_MATMUL), True)

    def __matmul__(self: Any, other: Any) -> Any:  # noqa: N807
        if type(other) is cls:
            return product(self, other)
        other = operators_fast.operand(other, cls)
        return product(self, other) if isinstance(other, cls) else NotImplemented

    def __rmatmul__(self: Any, other: Any) -> Any:  # noqa: N807
        other = operators_fast.operand(other, cls)
        return product(other, self) if isinstance(other, cls) else NotImplemented

    cls.__matmul__, cls.__rmatmul__ = __matmul__, __rmatmul__
