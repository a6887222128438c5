"""`x[...]` and `x[...] = y`, as PyTorch reads an index."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from leafax.functional import TABLE, Op

from ._bits import held
from ._cautions import drops_imaginary
from ._dtype import type_string
from ._enter import enter
from ._handle import Handle
from ._inplace import apply_inplace, check_inplace
from ._overlap import check_overlap
from ._record import apply
from ._trace import local
from ._vmapped import refuse

_NARROW, _SELECT = TABLE["narrow"], TABLE["select"]
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


_SIMPLE = frozenset({int, slice})  # what an index may hold that means what it says
_ALL = slice(None)  # for a dim that an ellipsis stands for


def get(self: Any, index: Any) -> Any:
    """`self[index]`."""
    kind, shape = type(index), self._v.shape
    if kind is int and shape and -shape[0] <= index < shape[0]:
        return apply(_SELECT, self, 0, index)
    if kind is slice and shape:
        return _slice(self, 0, index, False)  # no `alias`, as PyTorch has it
    keys: Any = index if kind is tuple else None
    places: Any = None
    if keys is None or len(keys) > len(shape) or not _SIMPLE.issuperset(map(type, keys)):
        keys, places = _normalise(self, index)
    out, advanced = _basic(self, keys, places)
    if not advanced:
        return out if out is not self else apply(TABLE["alias"], self)
    return apply(TABLE["index"], out, advanced)


def put(self: Any, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    if isinstance(value, np.integer):
        value = int(value)
    number = isinstance(value, (bool, int, float, complex))
    if number:
        _check_number(value, self._v.dtype)
    elif not isinstance(value, Handle):
        kind = type(value)
        name = kind.__name__ if kind.__module__ != "numpy" else f"numpy.{kind.__name__}"
        raise TypeError(f"can't assign a {name} to a {type_string(self._v.dtype)}")
    if index is False:
        return
    if index is True:
        _copy_to(self, self.unsqueeze(0), value, number)
        return
    keys, places = _normalise(self, index)
    try:
        if len(keys) == 1 and _is_mask(keys[0]) and keys[0].dim():
            if number or value.numel() == 1:  # what the data says is not asked for
                check_mask(self, 0, keys[0])
                _put(self, (keys[0],), value, number)
                return
        if number or value.numel() == 1:
            tensors = [k for k in keys if isinstance(k, Handle)]
            if len(tensors) == 1:
                if len(keys) == 1 and _masks(tensors[0]):
                    check_mask(self, 0, tensors[0])
                check_bool(tensors[0])
                if not number and _is_mask(tensors[0]) and value.dtype != self.dtype:
                    value = value.to(self.dtype)  # one mask alone: `masked_fill_` writes it
        target, advanced = _basic(self, keys, places)
    except MaskError:  # PyTorch looks at the mask later
        target, _ = _basic(self, *_without_masks(keys, places))
        check_inplace(target)
        if not number and value.numel() != 1:
            check_overlap(TABLE["index_put"], target, (value,))
        raise
    if advanced:
        _put(target, advanced, value, number)
    else:
        _copy_to(self, target, value, number)


def _without_masks(keys: Sequence[Any], places: Sequence[int]) -> tuple[list[Any], list[int]]:
    """The keys with whole slices in place of tensors: what is left are views."""
    found: list[Any] = []
    at: list[int] = []
    for k, place in zip(keys, places, strict=True):
        dims = 1 if not isinstance(k, Handle) or not _masks(k) else k.dim()
        found += [_ALL] * dims if isinstance(k, Handle) else [k]
        at += [place] * dims
    return found, at


# Which of C++'s types a number that does not fit is said not to fit.
_CPP = {"float64": "double", "float32": "float", "int32": "int", "float16": "at::Half",
        "bfloat16": "at::BFloat16"}  # fmt: skip


def _check_number(value: Any, dtype: Any) -> None:
    if type(value) is int and not -(1 << 63) <= value < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    if isinstance(value, complex) and value.imag and dtype.kind not in "cb":
        kind = _CPP.get(dtype.name, f"{dtype.name}_t")
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")


def _put(target: Any, indices: tuple[Any, ...], value: Any, number: bool) -> None:
    """Write at index tensors."""
    if number:
        value = _as_tensor(value, target)
    elif _without_ones(value) != tuple(value.shape):
        value = value.view(_without_ones(value))
    check_inplace(target, local.mode.grad and (target.requires_grad or value.requires_grad))
    apply_inplace(TABLE["index_put"], target, indices, value)


def _copy_to(self: Any, target: Any, value: Any, number: bool) -> None:
    """Write to a view of `self`, or to `self`."""
    if target.dim() == 0 and target is self and (number or value.dim() == 0):  # no broadcast
        target.copy_(_as_tensor(value, self) if number else value)
    elif number or value.dim() == 0:
        apply_inplace(_FILL, target, _as_tensor(value, self) if type(value) is bool else value)
        if not number:
            drops_imaginary(value._v.dtype, self._v.dtype, target._v.numel)
    else:
        if tuple(value.shape) != tuple(target.shape):  # PyTorch strips leading ones
            shape = _without_ones(value)
            value = value.view(shape)
            if shape != tuple(target.shape):
                value = value.expand(tuple(target.shape))
        target.copy_(value)


def _as_tensor(value: Any, like: Any) -> Any:
    from ._from_data import tensor

    return tensor(value, dtype=like.dtype)


def _without_ones(value: Any) -> tuple[int, ...]:
    """The shape without the ones that it begins with."""
    shape = tuple(value.shape)
    return shape[next((i for i, n in enumerate(shape) if n != 1), len(shape)) :]


class MaskError(IndexError):
    """A mask that does not fit."""


MaskError.__name__ = "IndexError"


def _is_mask(k: Any) -> bool:
    return isinstance(k, Handle) and k._v.dtype == np.dtype("bool")


def _masks(k: Any) -> bool:
    """Whether a tensor says by its values which places are meant, not by their numbers."""
    return k._v.dtype.name in ("bool", "uint8")


def _dims_of(k: Any) -> int:
    """How many dims PyTorch counts for a key: it looks only at tensors whether they are masks."""
    if isinstance(k, Handle):
        return k.dim() if _masks(k) else 1
    return 0 if k is None or k is Ellipsis or k is True or k is False else 1


def _normalise(self: Any, index: Any) -> tuple[list[Any], list[int]]:
    """The index as a list without Ellipsis; sequences and arrays as tensors.

    Returns:
      the keys, and the place in the index that each comes from.
    """
    if isinstance(index, (list, str)) and len(index) < 32 and any(_nested(k) for k in index):
        warnings.warn(_NOT_A_TUPLE, UserWarning, stacklevel=4)
        index = tuple(index)
    given = list(index) if isinstance(index, tuple) else [index]
    used = sum(map(_dims_of, given))
    keys = [_key(k) for k in given]
    if used > self.dim():
        if self.dim() == 0:
            if type(index) is slice:
                enter(self, local.trace)  # autograd asks for its history first
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            if isinstance(index, np.integer):
                index = int(index)
            if type(index) is int and index:
                raise IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
            if type(index) is int:
                raise IndexError(
                    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                    "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
                )
        raise IndexError(f"too many indices for tensor of dimension {self.dim()}")
    return _expanded(keys, self.dim() - used)


def _expanded(keys: list[Any], missing: int) -> tuple[list[Any], list[int]]:
    """The keys with slices for the dims that an ellipsis stands for, and where they come from.

    PyTorch counts the missing dims for each ellipsis, so that behind a second one none is left.
    """
    places = [i for i, k in enumerate(keys) if k is Ellipsis]
    if not places:
        return keys, list(range(len(keys)))
    first = places[0]
    if missing and len(places) > 1:
        second = places[1]
        for i, k in enumerate(keys[second:], second):
            if k is not Ellipsis:
                k = 0 if isinstance(k, slice) else k
                raise IndexError(f"index {k} is out of bounds for dimension {i} with size 0")
    rest = [i for i in range(first + 1, len(keys)) if keys[i] is not Ellipsis]
    return (
        [*keys[:first], *[_ALL] * missing, *[keys[i] for i in rest]],
        [*range(first), *[first] * missing, *rest],
    )


_NOT_A_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in "
    "pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as "
    "tensor index, x[torch.tensor(seq)], which will result either in an error or a different result"
)


def _nested(k: Any) -> bool:
    """Whether a list with this in it is read as a tuple of indices."""
    return (
        k is None
        or k is Ellipsis
        or isinstance(k, (slice, Handle, list, tuple, range, str, np.ndarray))
    )


def _key(k: Any) -> Any:
    if k is None or k is Ellipsis or isinstance(k, (bool, int, slice)):
        return k
    if isinstance(k, Handle):
        if k._v.dtype.kind in "fc":
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if k.dim() or local.look is not None:
            return k
        # Without dims it is a number, and what is read is a view.
        return bool(k) if _masks(k) else int(k)
    if isinstance(k, np.integer):
        return int(k)
    if isinstance(k, (list, tuple, np.ndarray, range)):
        from ._from_data import tensor

        made = tensor(list(k) if isinstance(k, range) else k)
        # PyTorch makes a tensor of int64 of what is no mask.
        return _key(made if _masks(made) else made.long())
    kind = type(k)
    if isinstance(k, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{kind.__name__}'")
    if hasattr(k, "__index__"):
        return int(k.__index__())
    name = f"numpy.{kind.__name__}" if isinstance(k, np.generic) else kind.__name__
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        f"indices (got {name})"
    )


def _whole(x: Any) -> int:
    """A bound or the step of a slice as an int."""
    if not hasattr(x, "__index__"):
        raise TypeError("slice indices must be integers or None or have an __index__ method")
    return operator.index(x)


def _bound(x: int, size: int) -> int:
    """A bound of a slice, counted from the front."""
    return min(max(x + size if x < 0 else x, 0), size)


def _basic(
    self: Any, keys: Sequence[Any], places: Sequence[int] | None = None
) -> tuple[Any, tuple[Any, ...]]:
    """Apply ints, slices and None as views; the rest is returned as an advanced index.

    Args:
      places: where in the caller's index each key stood, which errors tell.
    """
    out = self
    dim = 0
    advanced: list[Any] = []
    masked = False
    for i, k in enumerate(keys):
        if k is None:
            out = out.unsqueeze(dim)
            dim += 1
            advanced.append(None)
        elif type(k) is int:
            out = _select(out, dim, k, i if places is None else places[i])
        elif type(k) is slice:
            out = _slice(out, dim, k) if k is not _ALL else out
            dim += 1
            advanced.append(None)
        elif isinstance(k, bool):
            out = out.unsqueeze(dim)
            advanced.append(_bool_index(k))
            dim += 1
        else:
            advanced.append(k)
            masks = _masks(k)
            masked = masked or masks
            dim += k.dim() if masks else 1
    if all(a is None for a in advanced):
        return out, ()
    if masked:  # of what the views have left
        found: list[Any] = []
        for k in advanced:
            found += [k] if k is None or not _masks(k) else _mask_index(out, len(found), k)
        advanced = found
    while advanced and advanced[-1] is None:
        advanced.pop()
    return out, tuple(advanced)


def _select(out: Any, dim: int, k: int, place: int) -> Any:
    size = out.shape[dim] if dim < out.dim() else 0
    if not -size <= k < size:
        if not -(1 << 63) <= k < 1 << 63:
            raise ValueError("Overflow when unpacking long long")
        raise IndexError(f"index {k} is out of bounds for dimension {place} with size {size}")
    return apply(_SELECT, out, dim, k)  # as it was said: the node tells it


def _slice(out: Any, dim: int, k: slice, may_skip: bool = True) -> Any:
    """A slice along one dim; `out` itself where it `may_skip` a slice that leaves nothing out."""
    size = out.shape[dim]
    step = 1 if k.step is None else _whole(k.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    first = 0 if k.start is None else _whole(k.start)
    last = None if k.stop is None else _whole(k.stop)
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, stop = _bound(first, size), size if last is None else _bound(last, size)
    if may_skip and step == 1 and first == 0 and (last is None or last >= size):
        return out
    if step == 1 and first == start and last == stop and start <= stop:
        return apply(_SLICE, out, dim, start, stop - start)
    return apply(TABLE["slice"], out, dim, first, last, step)  # as it was said, for the node


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
    warn_of_bytes(mask)
    check_mask(out, dim, mask)
    return list(nonzero(mask, as_tuple=True))


def check_bool(mask: Any) -> None:
    """Raise PyTorch's error for one value at a mask of uint8."""
    if mask._v.dtype.name == "uint8":
        raise RuntimeError(
            "masked_fill_ only supports boolean masks, but got mask with dtype unsigned char"
        )


def warn_of_bytes(mask: Any) -> None:
    """Warn as PyTorch does of a mask of uint8."""
    if mask._v.dtype.name == "uint8":
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool "
            "instead.",
            UserWarning,
            stacklevel=6,
        )


def check_mask(out: Any, dim: int, mask: Any) -> None:
    for i in range(mask.dim()):
        if mask.shape[i] != out.size(dim + i):
            raise MaskError(
                f"The shape of the mask {list(mask.shape)} at index {i} does not match the shape "
                f"of the indexed tensor {list(out.shape)} at index {dim + i}"
            )


_NONZERO = Op(lambda x: x, name="nonzero", differentiable=False)


def nonzero(x: Any, as_tuple: bool = False, *, out: Any = None) -> Any:
    """Where `x` is not zero, `(n, x.dim())` int64, or one index tensor a dimension.

    The number of results depends on the data, so this runs the program.
    """
    from ._from_data import from_numpy
    from ._strided import lie

    refuse("nonzero", x)
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    values = held(x)
    found = np.nonzero(np.atleast_1d(values))
    rows = np.stack(found, axis=1).astype(np.int64)
    if as_tuple:
        return lie(from_numpy(rows), (1, len(rows))).unbind(1)
    made = from_numpy(np.ascontiguousarray(rows[:, : values.ndim]))
    if out is not None:
        from ._out import write_out

        return write_out(_NONZERO, made, out)
    return lie(made, (1, len(rows)))  # PyTorch finds them dim by dim
