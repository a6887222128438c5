"""Methods and functions about shapes that are not an op of their own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from leafax.functional.program.dtypes import scalar_name

from ..._core.dtypes import Size, int64
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.size_arguments import need_shape, size_of
from ..._core.trie import local
from ..._core.vmap_checks import adopt_example
from ..._signatures.overload_errors import describe_mismatch
from ..creation import factories
from ..creation.from_data import copied, tensor
from ..creation.legacy_constructors import make
from ..creation.make_strided import empty_strided
from ..creation.to import device_like
from .complex_parts import tensor_split as slices


def broadcast_shapes(*shapes: Any) -> Size:
    """Return the common shape that tensors of these shapes broadcast to; skips None."""
    sizes = [(s,) if isinstance(s, int) else s for s in shapes if s is not None]
    for s in sizes:
        if not isinstance(s, (tuple, list)):
            raise RuntimeError(
                f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}"
            )
    out = [1] * max((len(s) for s in sizes), default=0)
    for place, shape in enumerate(sizes):
        for i in range(-1, -1 - len(shape), -1):
            n = shape[i]
            if n == out[i]:
                continue
            if out[i] == 1:
                if n < 0:
                    raise ValueError("Attempting to broadcast a dimension with negative length!")
                out[i] = n
            elif n != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {n} at {i}! Mismatching "
                    f"argument at index {place} had {shape}; but expected shape should be "
                    f"broadcastable to {out}"
                )
    return Size(out)


def view_as(self: Any, other: Any) -> Any:
    """View in the shape of `other`."""
    return self.view(tuple(other.shape))


def reshape_as(self: Any, other: Any) -> Any:
    """Reshape to the shape of `other`."""
    return self.reshape(tuple(other.shape))


def expand_as(self: Any, other: Any) -> Any:
    """Expand to the shape of `other`."""
    return self.expand(tuple(other.shape))


def type_as(self: Any, other: Any) -> Any:
    """Return this tensor in the dtype of `other`."""
    return self.to(other.dtype)


def is_same_size(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same shape."""
    return tuple(input.shape) == tuple(other.shape)


def sum_to_size(self: Any, *size: Any) -> Any:
    """Sum over what broadcasting from `size` to this shape has repeated; this tensor if nothing."""
    if len(size) == 1 and not isinstance(size[0], int):
        size = tuple(size[0])
    shape = tuple(self.shape)
    lead = len(shape) - len(size)
    bad = lead < 0 or any(n not in (1, m) for n, m in zip(size, shape[lead:], strict=True))
    if bad:
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{list(shape)}}}.")
    if not size:
        return self.sum()
    dims = [*range(lead)]
    dims += [i + lead for i, n in enumerate(size) if n == 1 and shape[i + lead] != 1]
    out = self.sum(tuple(dims), keepdim=True) if dims else self
    if lead > 0:
        return out.view(size)
    return out


def is_nonzero(input: Any) -> bool:
    """Tell whether a tensor of one element is not zero; runs the program."""
    if input.numel() != 1:
        count = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {count} is ambiguous")
    return bool(input)


def need_tensors(given: tuple[Any, ...]) -> None:
    """Raise PyTorch's error for what is no tensor among a function's arguments."""
    for place, x in enumerate(given):
        if not isinstance(x, Handle):
            raise TypeError(
                f"expected Tensor as element {place} in argument 0, but got {name_of_type(x)}"
            )


def _atleast(ndim: int) -> Callable[..., Any]:
    def one(x: Any) -> Any:
        if x.dim() >= ndim:
            return x
        if x.dim() == 0:
            return x.reshape((1,) * ndim)
        if ndim == 2:
            return x.unsqueeze(0)
        return x.unsqueeze(0).unsqueeze(-1) if x.dim() == 1 else x.unsqueeze(-1)

    def atleast(*tensors: Any) -> Any:
        if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
            need_tensors(tuple(tensors[0]))
            return tuple(one(x) for x in tensors[0])
        if len(tensors) == 1 and not isinstance(tensors[0], Handle):
            name, text = f"atleast_{ndim}d", "Tensor input\ntuple of Tensors tensors"
            raise TypeError(describe_mismatch(text.splitlines(), tensors, {}, name))
        need_tensors(tensors)
        return one(tensors[0]) if len(tensors) == 1 else tuple(one(x) for x in tensors)

    atleast.__name__ = atleast.__qualname__ = f"atleast_{ndim}d"
    atleast.__doc__ = f"Each tensor with {ndim} dimensions or more."
    return atleast


atleast_1d, atleast_2d, atleast_3d = _atleast(1), _atleast(2), _atleast(3)


def _split_along(name: str, least: int, place: Callable[[Any], int]) -> Callable[..., Any]:
    def split(input: Any, *args: Any, sections: Any = None, indices: Any = None) -> Any:
        parts = args[0] if len(args) == 1 else args or (indices if sections is None else sections)
        if input.dim() < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor "
                f"with {input.dim()} dimensions!"
            )
        dim = place(input)
        if isinstance(parts, Handle):
            parts = parts.tolist()  # type: ignore[attr-defined]
        if isinstance(parts, int):
            if parts == 0 or input.shape[dim] % parts:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                    f"dimension {input.shape[dim]} is not divisible by the split_size "
                    f"{parts}!"
                )
        return input.tensor_split(parts, dim)

    split.__name__ = split.__qualname__ = name
    split.__doc__ = "Split along one dim, into equal parts or at indices."
    return split


hsplit = _split_along("hsplit", 1, lambda x: 0 if x.dim() == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda x: 0)
dsplit = _split_along("dsplit", 3, lambda x: 2)


def tensor_split(
    input: Any, indices_or_sections: Any = None, dim: int = 0, *, indices: Any = None,
    sections: int | None = None, tensor_indices_or_sections: Any = None,
) -> Any:  # fmt: skip
    """Split into as many parts, or at these indices; a tensor of them runs the program."""
    forms = (indices_or_sections, indices, sections, tensor_indices_or_sections)
    given = [x for x in forms if x is not None]
    if len(given) != 1:
        raise TypeError("tensor_split() needs indices or sections")
    where = given[0]
    if isinstance(where, Handle):
        if str(where.dtype) != "torch.int64":  # type: ignore[attr-defined]
            raise RuntimeError("tensor_split expected tensor_indices_or_sections to have dtype of "
                               f"long, but got {scalar_name(where._v.dtype)}")  # type: ignore[attr-defined]  # fmt: skip
        if where.dim() > 1:  # type: ignore[attr-defined]
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
                f"one-dimensional tensor, but got a tensor with {where.dim()} dims"  # type: ignore[attr-defined]
            )
        where = where.tolist()  # type: ignore[attr-defined]
    where = where if isinstance(where, int) else tuple(int(i) for i in where)
    return slices(input, where, dim)


def new_tensor(
    self: Any, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Any:
    """Return a new leaf with a copy of `data`, in this tensor's dtype."""
    dtype, device = dtype or self.dtype, device_like(self, device)
    if isinstance(data, Handle):
        return copied(data, dtype, device, requires_grad, "tensor.new_tensor")
    return tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def new(self: Any, *args: Any, size: Any = None, device: Any = None) -> Any:
    """Make an empty tensor of these sizes, or a copy of a sequence or tensor, in this dtype."""
    named = {} if size is None else {"size": size}
    return make(args, named, self.dtype, device_like(self, device), "new")


def _new(name: str) -> Callable[..., Any]:
    def new(self: Any, *size: Any, dtype: Any = None, **kwargs: Any) -> Any:
        for unused in ("layout", "pin_memory"):
            kwargs.pop(unused, None)
        if "size" not in kwargs:  # in the words of this method
            if name == "full" and size:
                need_shape("new_full", size[0])
            shape, size = size[:1] if name == "full" else size, size[1:] if name == "full" else ()
            size = (size_of(shape, "new_" + name), *size)
        kwargs["device"] = device_like(self, kwargs.get("device"))
        made = getattr(factories, name)(*size, dtype=dtype or self.dtype, **kwargs)
        return adopt_example(self, made)

    new.__name__ = new.__qualname__ = "new_" + name
    new.__doc__ = f"`{name}` in this tensor's dtype."
    return new


new_zeros, new_ones, new_empty, new_full = _new("zeros"), _new("ones"), _new("empty"), _new("full")


def new_empty_strided(self: Any, size: Any, stride: Any, *, dtype: Any = None, **kw: Any) -> Any:
    """Make an `empty_strided` tensor in this tensor's dtype."""
    kw["dtype"], kw["device"] = dtype or self.dtype, device_like(self, kw.get("device"))
    if local.vmap is not None:
        example = local.vmap.new_empty_strided(self, tuple(size), tuple(stride), kw)
        if example is not None:
            return example
    return empty_strided(size, stride, **kw)


def unravel_index(indices: Any, shape: Any) -> tuple[Any, ...]:
    """Return the places in a tensor of `shape` of positions in its flat form, one tensor a dim."""
    if indices._v.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, tuple, list, str)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for n in sizes:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    steps = [math.prod(sizes[d + 1 :]) for d in range(max(1, len(sizes)))]
    places = indices.unsqueeze(-1).floor_divide(tensor(steps)) % tensor(sizes, dtype=int64)
    return tuple(places.unbind(-1))


def size_argument(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Read `(2, 3)` from `f(2, 3)` and `f((2, 3))` alike."""
    if len(args) == 1 and not isinstance(args[0], (int, Handle)):
        return tuple(args[0])
    return args
