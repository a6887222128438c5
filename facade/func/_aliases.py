"""Views of the batch in place of results that are views of an example.

An argument that comes back is the batch itself, a view of it is the same view of the batch, one
dimension up, and what all examples share is expanded. So writes to a result reach the argument,
and its `grad_fn` is the view's, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from leafax.functional.program.op import TABLE, Op

from .._core.trie import local
from .._core.view_ops import PICKED, Lens
from .._dispatch.conj_neg_bits import view_as_real
from .._dispatch.record import apply
from .._ops.calls.functions import function
from .._ops.composites.complex_parts import conj
from .._storage.as_strided_outside import reach
from .._storage.shared_storage import MANY
from .._storage.strides import after, layout
from ._level import Example

_NARROW = TABLE["narrow"].fn


class Alias(NamedTuple):
    """Describe a result that reads the memory of an example: `lens` leads to it.

    Attributes:
      dim: the mapped dimension of the batch; None if it is the same for all examples.
      detached: autograd does not know of the way; that ends in `detach` or, `of_detached`, begins
        with it.
    """

    batch: Any
    dim: int | None
    first: Any
    lens: Lens
    detached: bool
    of_detached: bool = False


def find_alias(out: Any, examples: list[Example]) -> Alias | None:
    """Tell how `out` is one of these examples, or a view of one.

    None if it is not, or if that view cannot be told of the batch.
    """
    if local.mode.dual:  # tangents of views are theirs, or what the function made them
        return None
    for batch, dim, first, _, _ in examples:
        if first._lens:  # turned in place, and the batch will be
            continue
        if out is first:
            return Alias(batch, dim, first, (), False)
        if not (out._shares and first._shares) or out._store is None:
            continue
        if out._store is not first._store:
            continue
        detached = out._base_ is not first and not first._v.inference
        lens = out._lens if detached or first._v.inference else out._blens
        if detached:
            same = not out._tracked
        else:
            same = out._tracked == first._tracked
            same = same and not (out._tracked and (out._hooks or out.retains_grad))
        known = all(_name(op) in _RULES for op, _, _ in lens)
        if not (same and known):
            return None
        return Alias(batch, dim, first, lens, detached, detached and out._base_ is not None)
    return None


def find_tied_results(outs: list[Any], own: list[int]) -> dict[int, tuple[int, Alias]]:
    """Find the results that are another one or a view of it, with its place and the way to it.

    Args:
      own: the places of those that are no views of the arguments.
    """
    places: dict[int, int] = {}
    for k in own:
        places.setdefault(id(outs[k]), k)
    found = {}
    for k in own:
        out = outs[k]
        if places[id(out)] < k:
            found[k] = places[id(out)], Alias(None, 0, out, (), False)
        elif id(out._base_) in places:
            how = find_alias(out, [Example(None, 0, out._base_, None, None)])
            if how is not None:
                found[k] = places[id(out._base_)], how
    return found


class Views:
    """Make views of batches; several results of one `split` come from one call."""

    def __init__(self) -> None:
        self._many: dict[Any, Any] = {}

    def view(self, found: Alias, out_dim: int, size: int) -> Any:
        """Return the view of the whole batch, of this many examples along `out_dim`."""
        x = found.batch
        if found.dim is None:
            return x.expand(size, *x.shape)
        rank = x.dim()
        if not found.lens:
            x = x.detach() if found.detached else x
            out_dim = out_dim % rank
            return x if out_dim == found.dim else x.movedim(found.dim, out_dim)
        x = x if found.dim == 0 else x.movedim(found.dim, 0)
        first = found.detached and found.of_detached
        x = x.detach() if first else x
        path: tuple[Any, ...] = (id(found.first),)
        for op, args, kwargs in found.lens:
            path += ((op.name, repr(args), repr(kwargs)),)
            rule = _RULES[_name(op)]
            if op.name in MANY and op in PICKED:
                if path not in self._many:
                    self._many[path] = rule(x, *args, **kwargs)
                x = self._many[path][PICKED[op]]
                path += (PICKED[op],)
            else:
                x = rule(x, *args, **kwargs)
        if found.detached and not first:
            x = x.detach()
        out_dim = out_dim % x.dim()
        return x if out_dim == 0 else x.movedim(0, out_dim)


def _name(op: Op) -> str:
    """Return the rule's name: a slice of step 1 is taken as `narrow` is."""
    return "narrow" if op.fn is _NARROW else op.name


def _up(d: Any) -> Any:
    """Return a dimension of an example as one of the batch; or several."""
    if isinstance(d, int):
        return d + 1 if d >= 0 else d
    return tuple(_up(x) for x in d)


def _view(x: Any, size: Any) -> Any:
    return x.view(x.shape[0], *_whole(x, size))


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    if x.dim() == 1:  # examples of no dims: one window of one element, or of none
        return x.unsqueeze(1).unfold(1, size, step).select(1, 0)
    return x.unfold(_up(dimension), size, step)


def _whole(x: Any, size: Any) -> list[int]:
    """Return a size with the length that -1 stands for."""
    rest = math.prod(s for s in size if s != -1)
    return [math.prod(x.shape[1:]) // rest if s == -1 and rest else s for s in size]


def _expand(x: Any, size: Any) -> Any:
    for _ in range(len(size) - (x.dim() - 1)):
        x = x.unsqueeze(1)
    return x.expand(x.shape[0], *size)


def _transpose(x: Any, dim0: int, dim1: int) -> Any:
    return x if x.dim() == 1 else x.transpose(_up(dim0), _up(dim1))


def _permute(x: Any, dims: Any) -> Any:
    n = x.dim() - 1
    return x.permute(0, *[d % n + 1 for d in dims])


def _squeeze(x: Any, dim: Any = None) -> Any:
    n = x.dim() - 1
    if dim is None:
        return x.view(x.shape[0], *[s for s in x.shape[1:] if s != 1])
    dims = tuple(d % n for d in ((dim,) if isinstance(dim, int) else dim)) if n else ()
    return x.squeeze(tuple(d + 1 for d in dims))


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return x.diagonal(offset, _up(dim1), _up(dim2))


def _reshape(x: Any, shape: Any) -> Any:
    """Return a view where there is one, so that its node says so."""
    size = (x.shape[0], *_whole(x, shape))
    if after(TABLE["view"], layout(x), (size,), {}) is None:
        return x.reshape(size)
    return x.view(size)


def _flatten(x: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    shape = tuple(x.shape[1:]) or (1,)
    start, end = start_dim % len(shape), end_dim % len(shape)
    return _reshape(x, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]))


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    index: list[Any] = [slice(None)] * x.dim()
    index[dim % (x.dim() - 1) + 1] = slice(start, end, step)
    return x[tuple(index)]


def _narrow(x: Any, dim: int, start: int, length: int) -> Any:
    return x.narrow(_up(dim), start, length)


def _movedim(x: Any, source: Any, destination: Any) -> Any:
    return x if x.dim() == 1 else x.movedim(_up(source), _up(destination))


def _as_strided(x: Any, size: Any, stride: Any, storage_offset: int | None = None) -> Any:
    begin = x.storage_offset() + (storage_offset or 0)
    return x.as_strided((x.shape[0], *size), (x.stride(0), *stride), begin)


def _memory(x: Any, stride: Any) -> Any:
    span = (x.shape[0], reach(x.shape[1:], x.stride()[1:]))
    return x.as_strided(span, (x.stride(0), 1), x.storage_offset())


_RULES: dict[str, Callable[..., Any]] = {
    "alias": lambda x: apply(TABLE["alias"], x),
    "view": _view,
    "reshape": _reshape,
    "t": lambda x: _transpose(x, 0, max(x.dim() - 2, 0)),
    "T": lambda x: x.permute(0, *range(x.dim() - 1, 0, -1)),
    "mT": lambda x: x.mT,
    "transpose": _transpose,
    "swapaxes": lambda x, axis0, axis1: _transpose(x, axis0, axis1),
    "swapdims": lambda x, dim0, dim1: _transpose(x, dim0, dim1),
    "permute": _permute,
    "expand": _expand,
    "broadcast_to": _expand,
    "narrow": _narrow,
    "select": lambda x, dim, index: x.select(_up(dim), index),
    "slice": _slice,
    "unsqueeze": lambda x, dim: x.unsqueeze(_up(dim)),
    "squeeze": _squeeze,
    "diagonal": _diagonal,
    "unbind": lambda x, dim=0: x.unbind(_up(dim)),
    "split": lambda x, split_size_or_sections, dim=0: x.split(split_size_or_sections, _up(dim)),
    "split_with_sizes": lambda x, split_sizes, dim=0: x.split_with_sizes(split_sizes, _up(dim)),
    "chunk": lambda x, chunks, dim=0: x.chunk(chunks, _up(dim)),
    "unfold": _unfold,
    "movedim": _movedim,
    "moveaxis": _movedim,
    "unflatten": lambda x, dim, sizes: x.unflatten(_up(dim), sizes),
    "flatten": _flatten,
    "ravel": _flatten,
    "H": lambda x: x.mH,
    "mH": lambda x: x.mH,
    "adjoint": lambda x: x.mH,
    "as_strided": _as_strided,
    "memory": _memory,
    "conj": conj,
    "view_as_real": view_as_real,
    "view_as_complex": function(TABLE["view_as_complex"]),
}
