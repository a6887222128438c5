"""`kron`, as PyTorch makes it: one product of both operands with dims of one between their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.ops.shape.strides import NOT_VIEWABLE
from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._dispatch.known_calls import in_one_step
from ..._dispatch.record import apply
from ..._rules.strides.layouts import followed, laid
from ..._runtime.version_counters import _unsafe_preserve_version_counter
from ..calls.functions import function, named, two_tensors
from ..calls.methods import method
from ..writes.write_out import check_out, write_out

_KRON, _MUL = TABLE["kron"], TABLE["mul"]
_VIEW, _UNSAFE_VIEW = TABLE["view"], TABLE["_unsafe_view"]


@in_one_step
def _composed(input: Any, other: Any) -> Any:
    """Return the product.

    Raises:
      RuntimeError: if its dims cannot be merged without a copy, for how the operands lie.
    """
    a, b = tuple(input.shape), tuple(other.shape)
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + a, (1,) * (ndim - len(b)) + b
    apart = tuple(n for pair in zip(a, (1,) * ndim, strict=True) for n in pair)
    between = tuple(n for pair in zip((1,) * ndim, b, strict=True) for n in pair)
    product = apply(_MUL, apply(_UNSAFE_VIEW, input, apart), apply(_UNSAFE_VIEW, other, between))
    shape = tuple(n * m for n, m in zip(a, b, strict=True))
    if product.numel() and followed(_VIEW, laid(product._v), (shape,), {}) is None:
        raise RuntimeError(NOT_VIEWABLE)
    return apply(_UNSAFE_VIEW, product, shape)


def _called(otherwise: Callable[..., Any], is_method: bool) -> Callable[..., Any]:
    """Return the function or the method; `otherwise` has the words for arguments that are none."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        out = None if is_method else kwargs.pop("out", None)
        given = two_tensors(_KRON, args, kwargs)
        if given is None:
            return otherwise(*args, **kwargs)
        if out is not None:
            check_out(_MUL if isinstance(out, Handle) else _KRON, out, given)
            with _unsafe_preserve_version_counter(out):  # it is written to in another shape
                return write_out(_MUL, _composed(*given).contiguous(), out, given)
        return _composed(*given)

    return named(fn, _KRON, "kron")


kron = _called(function(_KRON), False)
kron_method = _called(method(_KRON), True)
