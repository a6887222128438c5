"""In-place methods with signatures of their own: fillers, index assignment, in-place views."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.op import TABLE, Op

from ..._core.handle import Handle
from ..._core.mask_ops import at, marks
from ..._core.memory_format import preserve_format
from ..._core.size_arguments import check_strides
from ..._core.trie import local
from ..._core.warn_once import warn_once
from ..._dispatch.record import apply
from ..._dispatch.resize import resize_storage
from ..._dispatch.tangents import has_tangent
from ..._rules.strides.channels_last import strides_in, suggested
from ..._signatures.check_arguments import check_signatures, find_op_error
from ..._storage.addresses import storage_bytes
from ..._storage.overlap import check_overlap
from ..._storage.strides import layout
from ..._storage.write import touch
from ..calls.functions import plain
from ..creation.fill_deterministic import fill_tail, fills
from ..creation.generator import key
from ..indexing.masks import check_bool, check_mask, places_of
from ..writes.apply_inplace import apply_inplace, check_inplace, frozen, written_anyway
from ..writes.write_out import write_out
from .shapes import size_argument


def normal_(self: Any, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Fill with draws from the normal distribution."""
    check_inplace(self)
    return apply_inplace(TABLE["fill.normal"], self, mean, std, _key=key(generator, self._v.device))


def bernoulli_(self: Any, p: Any = 0.5, *, generator: Any = None) -> Any:
    """Fill with 1 with probability `p` (a number, or a tensor of probabilities), else 0."""
    check_inplace(self)
    return apply_inplace(TABLE["fill.bernoulli"], self, p, _key=key(generator, self._v.device))


def random_(self: Any, *bounds: Any, generator: Any = None, **kw: Any) -> Any:
    """Fill with integers: `random_()`, `random_(to)`, `random_(low, to)`."""
    check_inplace(self)
    low, high = kw.pop("from", 0), kw.pop("to", None)
    if len(bounds) == 1:
        high = bounds[0]
    elif len(bounds) == 2:
        low, high = bounds
    return apply_inplace(TABLE["random"], self, low, high, _key=key(generator, self._v.device))


def fill_diagonal_(self: Any, fill_value: Any, wrap: bool = False) -> Any:
    """Fill the main diagonal; with `wrap`, go on below in tall matrices."""
    check_signatures(("Number fill_value, bool wrap = False",), (fill_value,), {}, "fill_diagonal_")
    if self.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    rows, columns, *more = self.shape
    if more and len(set(self.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    wraps = wrap and not more and rows > columns + 1
    # A diagonal is a view of any example of a `vmap`, however it lies, and of a piece of
    # `unsafe_split`, whose strides count from itself.
    mapped = local.vmap is not None and not wraps
    if mapped or (self._base_ is None and self.storage_offset()):
        main = self.diagonal()
        while main.dim() > 1:
            main = main.diagonal(0, 0, -1)
    else:
        main = self.as_strided((min(rows, columns),), (sum(self.stride()),), self.storage_offset())
    main.fill_(fill_value)
    if wraps:
        turn = columns + 1
        rest = -(-rows * columns // turn) - min(rows, columns)
        start = self.storage_offset() + self.stride(0) * turn
        self.as_strided((rest,), (sum(self.stride()),), start).fill_(fill_value)
    return self


def _indices(self: Any, indices: Any, values: Any, accumulate: bool) -> tuple[Any, Any]:
    """Return index tensors, and which places they are if masks are among them.

    One value at one mask is `masked_fill`, which does not ask where the mask is True.
    """
    if isinstance(indices, Handle):  # its rows are no indices of several dims
        raise TypeError(
            "index_put(): argument 'indices' (position 2) must be tuple of Tensors, not Tensor"
        )
    given = tuple(indices)
    if len(given) > self.dim():
        raise IndexError(
            f"too many indices for tensor of dimension {self.dim()} (got {len(given)})"
        )
    if len(given) == 1 and marks(given[0]) and values.numel() == 1 and not accumulate:
        check_mask(self, 0, given[0])
        check_bool(given[0])
        return given, ()
    return given, places_of(self, given)


def index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Set `self[indices] = values` in place, or add with `accumulate`."""
    check_inplace(self)
    try:
        indices, where = _indices(self, indices, values, accumulate)
    except IndexError:  # PyTorch looks at masks later
        if values.numel() != 1 or accumulate:
            check_overlap(TABLE["index_put"], self, (values,))
        raise
    op, more = at(TABLE["index_put"], where)
    return apply_inplace(op, self, indices, values, bool(accumulate), *more)


def index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with `values` put at `indices`."""
    indices, where = _indices(self, indices, values, accumulate)
    op, more = at(TABLE["index_put"], where)
    return apply(op, self, indices, values, bool(accumulate), *more)


def _scatter_arguments(op: Op, args: Any, kwargs: dict[str, Any], said: str) -> Any:
    """PyTorch's third positional argument is a tensor or a number."""
    wrong = find_op_error(op, args, kwargs, said)
    if wrong is not None:
        raise wrong
    kwargs = dict(kwargs)
    if len(args) == 4:
        *args, last = args
        kwargs["src" if isinstance(last, Handle) else "value"] = last
    elif isinstance(kwargs.get("value"), Handle):
        kwargs["value"] = kwargs["value"].item()
    return tuple(plain(a) for a in args), {k: plain(v) for k, v in kwargs.items()}


def _warn_of_reduce(op: Any, given: Any, named: Any) -> None:
    found = dict(zip(op.parameters, given, strict=False)) | named
    if found.get("reduce") is not None and isinstance(found.get("src"), Handle):
        warn_once(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be "
            "removed in a future PyTorch release. Use torch.scatter_reduce instead for more "
            "reduction options."
        )


def scatter(input: Any, *args: Any, out: Any = None, **kwargs: Any) -> Any:
    """Return a copy with elements of `src` (or a number) put at `index` along `dim`.

    Args: `(dim, index, src)` or `(dim, index, value)`, and `reduce`: None, "add" or "multiply".
    """
    op = TABLE["scatter"]
    given, named = _scatter_arguments(op, (input, *args), kwargs, "scatter")
    _warn_of_reduce(op, given, named)
    made = apply(op, *given, **named)
    return made if out is None else write_out(op, made, out, (*given, *named.values()))


def scatter_(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply `scatter` in place."""
    check_inplace(self)
    op = TABLE["scatter"]
    given, named = _scatter_arguments(op, (self, *args), kwargs, "scatter_")
    _warn_of_reduce(op, given, named)
    return apply_inplace(op, *given, **named)


def resize_(self: Any, *size: Any, memory_format: Any = None) -> Any:
    """Change the shape in place; elements beyond the old ones mean nothing, see `empty`."""
    if not size:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    shape = tuple(size_argument(size))
    if self._tracked and not (local.mode.inference or frozen(self)):
        raise RuntimeError("cannot resize variables that require grad")
    count = math.prod(shape)
    if count >= 1 << 60 or any(n < 0 for n in shape):  # ATen multiplies sizes without a sign
        if count >= 1 << 63 or any(n < 0 for n in shape):
            raise RuntimeError("numel: integer multiplication overflow")
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    check_strides(shape)
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    strides = strides_in(shape, memory_format) or contiguous_strides(shape)
    laid_out = memory_format is not None and strides != self.stride()
    if shape != tuple(self.shape) or laid_out:
        if frozen(self):
            with written_anyway():
                return resize_(self, shape, memory_format=memory_format)
        check_inplace(self, False)
        resized = shape != tuple(self.shape)
        before = storage_bytes(self) if fills() else None
        resize_storage(self, shape, strides)
        if resized:
            touch(self)
            if before is not None:
                fill_tail(self, before)
    if has_tangent(self):
        raise RuntimeError("cannot resize variables that has a forward grad")
    return self


def resize_as_(self: Any, other: Any, memory_format: Any = None) -> Any:
    """Resize to the shape of `other`; with `preserve_format` to its memory format, too."""
    if memory_format is preserve_format:
        memory_format = suggested(layout(other))
    if self._tracked and frozen(self) and not other.is_inference():
        raise RuntimeError("cannot resize variables that require grad")  # autograd is asked
    return resize_(self, tuple(other.shape), memory_format=memory_format)
