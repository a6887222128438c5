"""`x[...]` and `x[...] = y`, as PyTorch reads an index."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional import TABLE, Op

from ._handle import Handle
from ._inplace import apply_inplace, check_inplace
from ._record import apply
from ._trace import local

_NARROW = TABLE["narrow"]
# x[a:b] with step 1: its start may change from call to call without compiling anew.
_SLICE = Op(
    _NARROW.fn, name="slice", backward="SliceBackward0", view=True, numbers=("start",),
    write=_NARROW.write,
)  # fmt: skip
_PLAIN_FILL = TABLE["fill"]
# `fill_` with the number as a tensor, which the graph's nodes show.
_FILL = Op(
    _PLAIN_FILL.fn, name="fill_", backward="FillBackward3", saves=_PLAIN_FILL.saves,
    differentiable=_PLAIN_FILL.differentiable, numbers=_PLAIN_FILL.numbers,
)  # fmt: skip


def get(self: Any, index: Any) -> Any:
    """`self[index]`."""
    if type(index) is slice and index == slice(None) and self.dim():
        return apply(_SLICE, self, 0, 0, self.shape[0])  # no `alias`, as PyTorch has it
    out, advanced = _basic(self, _normalise(self, index))
    if not advanced:
        return out if out is not self else apply(TABLE["alias"], self)
    return apply(TABLE["index"], out, advanced)


def put(self: Any, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    keys = _normalise(self, index)
    number = isinstance(value, (bool, int, float, complex))
    if not isinstance(value, Handle):
        from ._creation import tensor

        if isinstance(value, np.generic):
            value, number = value.item(), True
        if not number:
            value = tensor(value, dtype=self.dtype)
    if len(keys) == 1 and _is_mask(keys[0]) and (number or value.dim() == 0):
        mask = keys[0]
        while mask.dim() < self.dim():
            mask = mask.unsqueeze(-1)
        apply_inplace(TABLE["masked_fill"], self, mask, value)
        return
    target, advanced = _basic(self, keys)
    if advanced:
        if number:
            from ._creation import tensor

            value = tensor(value, dtype=self.dtype)
        check_inplace(target, local.mode.grad and (target.requires_grad or value.requires_grad))
        apply_inplace(TABLE["index_put"], target, advanced, value)
    elif target.dim() == 0 and target is self and (number or value.dim() == 0):  # no broadcast
        from ._creation import tensor

        target.copy_(tensor(value, dtype=self.dtype) if number else value)
    elif number or value.dim() == 0:
        apply_inplace(_FILL, target, value)
    else:
        shape = tuple(value.shape)
        if shape != tuple(target.shape):  # PyTorch strips leading ones, then broadcasts
            ones = next((i for i, n in enumerate(shape) if n != 1), len(shape))
            value = value.view(shape[ones:])
            if shape[ones:] != tuple(target.shape):
                value = value.expand(tuple(target.shape))
        target.copy_(value)


def _is_mask(k: Any) -> bool:
    return isinstance(k, Handle) and k._v.dtype == np.dtype("bool")


def _normalise(self: Any, index: Any) -> list[Any]:
    """The index as a list without Ellipsis; sequences and arrays as tensors."""
    if isinstance(index, list) and any(isinstance(k, (slice, type(None))) for k in index):
        index = tuple(index)
    keys = list(index) if isinstance(index, tuple) else [index]
    keys = [_key(k) for k in keys]
    if sum(k is Ellipsis for k in keys) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(
        k.dim() if _is_mask(k) else 0 if k is None or k is Ellipsis or isinstance(k, bool) else 1
        for k in keys
    )
    if used > self.dim():
        if self.dim() == 0:
            if type(index) is slice:
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if type(index) is int and index:
                raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
            if type(index) is int:
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                )
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    for i, k in enumerate(keys):
        if k is Ellipsis:
            keys[i : i + 1] = [slice(None)] * (self.dim() - used)
            break
    return keys


def _key(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (bool, int, slice)):
        return k
    if isinstance(k, Handle):
        if k._v.dtype.kind in "fc":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        return k
    if isinstance(k, np.integer):
        return int(k)
    if isinstance(k, (list, tuple, np.ndarray, range)):
        from ._creation import tensor

        made = tensor(list(k) if isinstance(k, range) else k)
        return made.long() if made.numel() == 0 else made
    if isinstance(k, str):
        raise TypeError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices (got str)"
        )
    if hasattr(k, "__index__"):
        return int(k.__index__())
    raise TypeError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {type(k).__name__})"
    )


def _bound(x: Any, default: int, size: int) -> int:
    if x is None:
        return default
    x = int(x)
    if x < 0:
        x += size
    return min(max(x, 0), size)


def _basic(self: Any, keys: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Apply ints, slices and None as views; the rest is returned as an advanced index."""
    out = self
    dim = 0
    advanced: list[Any] = []
    for k in keys:
        if k is None:
            out = out.unsqueeze(dim)
            dim += 1
            advanced.append(None)
        elif isinstance(k, bool):
            out = out.unsqueeze(dim)
            advanced.append(_bool_index(k))
            dim += 1
        elif isinstance(k, int):
            out = _select(out, dim, k, self)
        elif isinstance(k, slice):
            out = _slice(out, dim, k)
            dim += 1
            advanced.append(None)
        elif _is_mask(k) or k._v.dtype == np.dtype("uint8"):
            for part in _mask_index(out, dim, k):
                advanced.append(part)
                dim += 1
        else:
            advanced.append(k)
            dim += 1
    if all(a is None for a in advanced):
        return out, ()
    while advanced and advanced[-1] is None:
        advanced.pop()
    return out, tuple(advanced)


def _select(out: Any, dim: int, k: int, self: Any) -> Any:
    size = out.shape[dim]
    if not -size <= k < size:
        raise IndexError(
            f"index {k} is out of bounds for dimension {self.dim() - out.dim() + dim} with size "
            f"{size}"
        )
    return apply(TABLE["select"], out, dim, k if k >= 0 else k + size)


def _slice(out: Any, dim: int, k: slice) -> Any:
    size = out.shape[dim]
    step = 1 if k.step is None else int(k.step)
    if step <= 0:
        raise ValueError("step must be greater than zero")
    start, stop = _bound(k.start, 0, size), _bound(k.stop, size, size)
    if start == 0 and stop == size and step == 1 and k.start is None and k.stop is None:
        return out
    if step == 1:
        return apply(_SLICE, out, dim, start, max(stop - start, 0))
    return apply(TABLE["slice"], out, dim, start, max(stop, start), step)


def _bool_index(k: bool) -> Any:
    from ._creation import zeros

    return zeros(1 if k else 0, dtype=__import__("leafax").int64)


def _mask_index(out: Any, dim: int, mask: Any) -> list[Any]:
    """The positions where a mask is True: what they are only the data can tell."""
    if local.look is not None:
        from .func._refusals import refuse

        refuse(
            mask,
            "vmap: We do not support batching operators that can support dynamic shape. Attempting "
            "to batch over indexing with a boolean mask.",
        )
    for i in range(mask.dim()):
        if mask.shape[i] != out.shape[dim + i]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape "
                f"of the indexed tensor {list(out.shape)} at index {dim + i}"
            )
    return list(nonzero(mask, as_tuple=True))


def nonzero(x: Any, as_tuple: bool = False) -> Any:
    """Where `x` is not zero, `(n, x.dim())` int64, or one index tensor a dimension.

    The number of results depends on the data, so this runs the program.
    """
    from ._creation import from_numpy

    if local.look is not None:
        from .func._refusals import refuse

        refuse(
            x,
            "vmap: We do not support batching operators that can output dynamic shape. Attempted "
            "to vmap over aten::nonzero. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature.",
        )
    values = np.asarray(x.detach().numpy())
    found = np.nonzero(np.atleast_1d(values))
    if as_tuple:
        return tuple(from_numpy(f.astype(np.int64)) for f in found)
    rows = np.stack(found, axis=1).astype(np.int64)
    return from_numpy(np.ascontiguousarray(rows[:, : values.ndim]))
