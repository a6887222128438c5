"""`func.functionalize`: a function whose writes do not reach its arguments before its end."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._autograd.saved_hooks.context_saved import snapshot
from .._core.dual_levels import copy_tangents
from .._core.handle import Handle
from .._core.memory_format import contiguous_format
from .._core.transforms_running import running_transform
from .._dispatch.conj_neg_bits import storage_numel
from .._dispatch.record import apply
from ._trees import flatten, unflatten


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Make a `func` that writes to its arguments only at its end, once to each that it wrote to.

    Recorded programs have no writes anyway, so this changes what a program is in nothing; it is
    here for those who compose it with other transforms.

    Args:
      remove: "mutations", or "mutations_and_views": then no result is a view.

    Raises:
      RuntimeError: for another `remove`.

    >>> import leafax
    >>> x = leafax.ones(2)
    >>> leafax.func.functionalize(lambda x: x.add_(1) * 2)(x)
    tensor([4., 4.])
    >>> x
    tensor([2., 2.])
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove="
            f"{remove}. Valid options are:\n     remove='mutations': all inplace and out= "
            "operators will be removed from the program, and replaced with their out-of-place "
            "equivalents.\n     remove='mutations_and_views': In addition to the above, all "
            "aliasing operators {view} will be replaced with their non-aliasing counterparts, "
            "{view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, treedef = flatten((args, kwargs))
        work = [_copy(x) if isinstance(x, Handle) else x for x in leaves]
        before = [
            (w._version, w.shape, w.stride()) if isinstance(w, Handle) else None for w in work
        ]
        with running_transform(differentiates=False):
            own_args, own_kwargs = unflatten(treedef, work)
            output = func(*own_args, **own_kwargs)
        back: list[tuple[Any, Any]] = []
        for x, w, was in zip(leaves, work, before, strict=True):
            if was is None:
                continue
            if w._version == was[0]:
                back.append((w, x))
                continue
            if (w.shape, w.stride()) != was[1:]:
                _reshape(x, w, was[2])
            x.copy_(w)  # type: ignore[attr-defined]
        outs, structure = flatten(output)
        made = [_of_argument(o, back) for o in outs]
        if remove == "mutations_and_views":
            # PyTorch's `{view}_copy` gives its copies rows.
            made = [
                o.clone(memory_format=contiguous_format)
                if isinstance(o, Handle) and o._base_ is not None
                else o
                for o in made
            ]
        return unflatten(structure, made)

    return wrapped


def _of_argument(out: Any, back: list[tuple[Any, Any]]) -> Any:
    """Return a result; what is, or views, the stand-in of an unwritten argument is so of that.

    Args:
      back: those stand-ins, each with its argument.
    """
    if not isinstance(out, Handle):
        return out
    for w, x in back:
        if out is w:
            return x
        if out._store is None or out._store is not w._store:
            continue
        detached = out._base_ is not w
        seen = x.detach() if detached and out._base_ is not None else x
        for op, args, kwargs in out._lens if detached else out._blens:
            seen = apply(op, seen, *args, **kwargs)
        return seen.detach() if detached and out._base_ is None else seen
    return out


def _reshape(x: Any, written: Any, strides: tuple[int, ...]) -> None:
    """Give an argument the shape that its stand-in was given in place.

    Args:
      strides: those that the stand-in had at first.
    """
    if x.stride() == strides and storage_numel(x) == storage_numel(written):
        x.as_strided_(written.shape, written.stride(), written.storage_offset())
    else:
        x.resize_(written.shape)


def _copy(x: Any) -> Any:
    """Return the same value in a storage of its own; nothing is copied."""
    return x.clone() if x._tracked else copy_tangents(x, snapshot(x))
