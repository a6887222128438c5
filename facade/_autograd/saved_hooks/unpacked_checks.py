"""PyTorch's refusals of indices and masks that an unpack hook gave back as floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.dtypes import cpp_name, scalar_name
from leafax.functional.program.op import Op

_SCATTER = (RuntimeError, "scatter(): Expected dtype int32/int64 for index")
_KEYS = (IndexError, "tensors used as indices must be long, int, byte or bool tensors")
_FILL = (IndexError, "index_fill_(): Expected dtype int64 for index.")
_PUT = (RuntimeError, "put_(): Expected a long tensor for index, but got {}")
_MASK = (RuntimeError, "masked_fill_ only supports boolean masks, but got mask with dtype {c}")

# By op: the exception of the kernel that its gradient calls.
_REFUSALS: dict[str, tuple[type[Exception], str]] = {
    **dict.fromkeys(
        (
            "sort", "topk", "kthvalue", "mode", "max", "min", "median", "nanmedian", "cummax",
            "cummin", "gather", "scatter",
        ),
        _SCATTER,
    ),
    "scatter_add": (RuntimeError, "gather(): Expected dtype int32/int64 for index"),
    "index": _KEYS,
    "index_put": _KEYS,
    "index_fill": _FILL,
    "index_copy": _FILL,
    "index_select": (
        RuntimeError, "index_add_(): Expected dtype int32/int64 for index but got: {}",
    ),
    "index_add": (RuntimeError, "index_select(): Expected dtype int32 or int64 for index"),
    "take": _PUT,
    "put": _PUT,
    "masked_select": (
        RuntimeError, "masked_scatter_ only supports boolean masks, but got mask with dtype {}",
    ),
    "masked_fill": _MASK,
    "masked_scatter": _MASK,
    "where": (
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
    ),
    "nll_loss": (RuntimeError, "expected scalar type Long but found {}"),
    "embedding": (
        RuntimeError,
        "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
        "Long, Int; but got torch.{}Tensor instead (while checking arguments for "
        "embedding_backward)",
    ),
}  # fmt: skip


# These take no other integers either.
_EXACTLY = (
    _FILL, _PUT, _MASK, *[_REFUSALS[name] for name in ("masked_select", "where", "nll_loss")],
)  # fmt: skip


def check_unpacked(op: Op, saved: np.dtype, t: Any) -> None:
    """Raise if `t` cannot stand for the indices, or the mask, of dtype `saved` that were packed."""
    if saved.kind not in "ib" or t._v.dtype == saved or op.name not in _REFUSALS:
        return
    if t._v.dtype.kind == "f" or _REFUSALS[op.name] in _EXACTLY:
        kind, text = _REFUSALS[op.name]
        raise kind(text.format(scalar_name(t._v.dtype), c=cpp_name(t._v.dtype)))
