"""Forward mode of an `autograd.Function`: its `jvp` rule, called after `forward`."""

from __future__ import annotations

from typing import Any

from .._autograd.forward_mode.tangents_of_writes import write_tangents
from .._autograd.graph.fit_gradient import zeros
from .._core.dual_levels import levels_below, recording_levels, set_tangent
from .._core.handle import Handle
from .._core.trie import local
from .._dispatch.tangents import dual_base, get_tangent


def carry_tangents(cls: Any, ctx: Any, args: tuple[Any, ...], outs: list[Any]) -> None:
    """Give the outputs the tangents that the Function's rule makes, level by level."""
    for level in local.mode.dual:
        given = [get_tangent(a, level) if isinstance(a, Handle) else None for a in args]
        if any(t is not None for t in given):
            _level(cls, ctx, args, given, outs, level)


def _level(
    cls: Any, ctx: Any, args: tuple[Any, ...], given: list[Any], outs: list[Any], level: int
) -> None:
    versions = [None if t is None else t._version for t in given]
    passed = given
    if ctx._materialize:
        passed = [
            zeros(a._v) if t is None and isinstance(a, Handle) and _floats(a) else t
            for a, t in zip(args, given, strict=True)
        ]
    with recording_levels(levels_below(level)):
        ctx._in_forward_mode = True
        try:
            result = cls.jvp(ctx, *passed)
        finally:
            ctx._in_forward_mode = False
    found = list(result) if isinstance(result, tuple) else [result]
    if len(found) != len(outs):
        raise RuntimeError(
            "Function's jvp returned an invalid number of forward gradients (expected "
            f"{len(outs)} but got {len(found)})"
        )
    for k, t in enumerate(found):
        if t is not None and not isinstance(t, Handle):
            raise RuntimeError(
                f"expected Variable or None (got {type(t).__name__}) for grad output {k}."
            )
    inputs = {id(a): i for i, a in enumerate(args) if isinstance(a, Handle)}
    dirty = {id(t) for t in ctx.dirty_tensors or ()}
    for k, (out, along) in enumerate(zip(outs, found, strict=True)):
        if not isinstance(out, Handle):
            continue
        if not _differentiable(ctx, out):
            if along is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {k}, but  the corresponding "
                    "forward output is not a differentiable Tensor.You should return None at "
                    "that position instead."
                )
            continue
        if id(out) in dirty:
            i = inputs[id(out)]
            _written(out, given[i], versions[i], along, level)
        else:
            _check_view(out, args, level, along)
            if along is not None:
                _set(out, along, level)


def _differentiable(ctx: Any, out: Any) -> bool:
    return not any(out is t for t in ctx.non_differentiable or ()) and _floats(out)


def _floats(t: Any) -> bool:
    return bool(t.is_floating_point() or t.is_complex())


def _set(out: Any, along: Any, level: int) -> None:
    if tuple(along.shape) != tuple(out.shape):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original "
            f"Tensor, this is not supported. Tensor is of size {list(out.shape)} while the given "
            f"forward gradient is of size {list(along.shape)}."
        )
    set_tangent(out, level, along)


def _written(out: Any, old: Any, version: Any, along: Any, level: int) -> None:
    if old is None:
        if along is not None:
            write_tangents(out, {level: along})
        return
    if along is None or along._version == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If "
            "the forward is modifying an input inplace, then the jvp function must modify the "
            "corresponding gradient inplace."
        )
    if along is not old:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the "
            "forward is modifying an input inplace, then the jvp function must modify the gradient "
            "inplace and return it as-is."
        )


_NO_VIEW = (
    "A custom Function's forward is returning a view (or an input as-is) but the jvp is not "
    "returning a view."
)
_OTHER = "A custom Function is returning a view but the jvp is not returning a view of the "


def _check_view(out: Any, args: tuple[Any, ...], level: int, along: Any) -> None:
    """Raise if a view of an input has no view of its tangent."""
    base, _ = dual_base(out)
    if base is None:
        return
    for a in args:
        if not isinstance(a, Handle) or (a is not base and dual_base(a)[0] is not base):
            continue
        old = get_tangent(a, level)
        if old is None:
            continue
        found = None if along is None else dual_base(along)[0]
        if found is None:
            raise RuntimeError(_NO_VIEW)
        shared = dual_base(old)[0]
        if shared is not None and found is not shared:
            raise RuntimeError(_OTHER + "same base as the given grad input.")
        if shared is None and found is not old:
            raise RuntimeError(_OTHER + "given grad input.")
