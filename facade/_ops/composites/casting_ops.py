"""Ops that PyTorch casts its tensors for, or whose results it writes to before it returns them.

The casts have nodes of their own in the graph, and the writes count in the result's `_version`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE, Op

from ..._core.handle import Handle
from ..._core.vmap_checks import differs_in_vmap
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..._storage.lay_out import lay_out
from ..._storage.write import written
from .registry import composes

_F = "nn.functional."


@composes("index_select")
def _index_select(input: Any, dim: int, index: Any) -> Any:
    """Inside `vmap` PyTorch gathers along an index of the input's dims."""
    if not differs_in_vmap(input, index) or index.dim() >= input.dim():
        return None
    if index.dim():
        shape = [1] * input.dim()
        shape[dim] = index.shape[0]
        index = index.view(shape)
    sizes = list(input.shape)
    if index.dim():
        sizes[dim] = index.shape[dim]
    return apply(TABLE["gather"], input, dim, index.expand(sizes))


def _itself(name: str) -> Op:
    """Return an op of the table as one that is not composed of others."""
    op = TABLE[name]
    return Op(
        op.fn, name=op.name, namespace=op.namespace, backward=op.backward, saves=op.saves,
        differentiable=op.differentiable, check=op.check, sizes=op.sizes,
    )  # fmt: skip


_CAST, _POW = TABLE["_to_copy"], TABLE["pow"]
_SOFTMAX, _LOG_SOFTMAX = TABLE["softmax"], TABLE["log_softmax"]
_ISCLOSE, _ONE_HOT = _itself("isclose"), _itself(_F + "one_hot")
_MATRIX_RANK, _STFT = _itself("linalg.matrix_rank"), _itself("stft")
_PAIRS = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
    "complex tensors for all inputs, and return_complex=False will raise an error.\n"
    "Note: you can still call torch.view_as_real on the complex output to recover the old return "
    "format."
)


@composes("softmax")
def _softmax(input: Any, dim: int, dtype: Any) -> Any:
    return _cast_first(_SOFTMAX, input, dim, dtype)


@composes("log_softmax")
def _log_softmax(input: Any, dim: int, dtype: Any) -> Any:
    return _cast_first(_LOG_SOFTMAX, input, dim, dtype)


def _cast_first(op: Op, input: Any, dim: int, dtype: Any) -> Any:
    if dtype is None:
        return None
    same = input._v.dtype == dtype
    return apply(op, input if same else apply(_CAST, input, np.dtype(dtype)), dim)


@composes("float_power")
def _float_power(input: Any, exponent: Any) -> Any:
    given = (input, exponent)
    kinds = [x._v.dtype.kind == "c" if isinstance(x, Handle) else isinstance(x, complex)
             for x in given]  # fmt: skip
    number: Any = complex if any(kinds) else float
    dtype = np.dtype(number)

    def wide(x: Any) -> Any:
        if not isinstance(x, Handle):
            return number(x)
        return x if x._v.dtype == dtype else apply(_CAST, x, dtype)

    return apply(_POW, *map(wide, given))


@composes("isclose")
def _isclose(input: Any, other: Any, rtol: float, atol: float, equal_nan: bool) -> Any:
    near = apply(_ISCLOSE, input, other, rtol, atol, equal_nan)
    nans = equal_nan and input._v.dtype.kind not in "biu"
    return written(near, int(nans) + int(rtol != 0 or atol != 0))


@composes(_F + "one_hot")
def _one_hot(input: Any, num_classes: int) -> Any:
    return written(apply(_ONE_HOT, input, num_classes), 2 if input.numel() else 0)


@composes("stft")
def _stft(input: Any, *args: Any) -> Any:
    """Frame by frame in memory, turned round in place, as a batch whose dim is dropped so, too."""
    *args, return_complex, align_to_window = args  # type: ignore[assignment]
    if return_complex is False:
        warn_once(_PAIRS)
    made = apply(_STFT, input, *args, True, align_to_window)
    *batch, frequencies, frames = made.shape
    strides = (1, frequencies)
    lay_out(made, (frequencies * frames, *strides) if batch else strides)
    written(made, 1 if batch else 2)
    return made if return_complex is not False else apply(TABLE["view_as_real"], made)


@composes("linalg.matrix_rank")
def _matrix_rank(*args: Any, **kwargs: Any) -> Any:
    return written(apply(_MATRIX_RANK, *args, **kwargs))
