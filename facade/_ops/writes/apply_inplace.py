"""In-place ops: where PyTorch forbids them, and how they are recorded."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from leafax.functional.program.op import Op

from ..._autograd.forward_mode.tangents_of_writes import (
    keep_tangents,
    tangents_after_write,
    write_tangents,
    zero_tangents,
)
from ..._autograd.saved_hooks.hooked_writes import write_through
from ..._core.dual_levels import recording_levels
from ..._core.grad_modes import no_grad, within
from ..._core.handle import Handle
from ..._core.locks import sharing
from ..._core.transforms_running import LEAF_WRITE, active, refuse_argument_write
from ..._core.trie import EXTERNAL, LEAF, NODE, Mode, State, Value, local
from ..._core.view_ops import spell, writing
from ..._core.warn_once import drops_imaginary
from ..._dispatch.record import known, record
from ..._host.writes import write_at_once
from ..._rules.node_edges import WRAPS
from ..._rules.node_names import COMPARISONS
from ..._rules.strides.layouts import elementwise
from ..._storage.as_strided_outside import reaches_out
from ..._storage.autograd_roles import alias, keep_edge
from ..._storage.enter import enter, plain_kind, was_leaf, without_grad
from ..._storage.overlap import ASKS_ARGUMENTS, by_kernel, check_overlap
from ..._storage.write import bump, rebind, write, write_view
from ..._tracing.infer import UNSAVED
from ..._tracing.jax_transforms import refuse_write
from ..._tracing.no_grad_views import ambiguous
from .inplace_ops import _BITS, inplace_of


def check_inplace(t: Any, tracked: bool | None = None) -> None:
    """Raise PyTorch's error where it forbids writing to `t` in this mode.

    Args:
      tracked: whether autograd records the write; by default, whether `t` requires grad and
        is no inference tensor, of which autograd is not asked.
    """
    mode = local.mode
    if local.autograd.guard is not None:
        local.autograd.guard(t)
    refuse_write(t)
    if tracked is None:
        tracked = mode.grad and t._tracked and not frozen(t)
    if not tracked:
        return
    base = t._base_
    if base is not None and t._creation:
        raise RuntimeError(ambiguous(t, "is being"))
    if active.depth:
        refuse_argument_write(t)
        if local.vmap is not None:
            local.vmap.refuse_argument_write(t)
    if base is not None:
        if t._tracked and base._leaf:
            raise RuntimeError("a view of " + LEAF_WRITE)
    if t._v.role == LEAF or base is not None and was_leaf(t) and t._tracked:
        raise RuntimeError(LEAF_WRITE)


def frozen(t: Any) -> bool:
    """Tell whether `t` is an inference tensor, which may not be written to in this mode."""
    return bool(t._v.inference and not local.mode.inference and not t._counts)


@contextmanager
def written_anyway() -> Iterator[None]:
    """Write to an inference tensor outside of its mode: PyTorch writes, and raises then."""
    with within(Mode.of(False, True, local.mode.autocast)):
        yield
    raise RuntimeError(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can "
        "make a clone to get a normal tensor before doing inplace update.See "
        "https://github.com/pytorch/rfcs/pull/17 for more details."
    )


def known_write(op: Op, t: Any, args: tuple[Any, ...]) -> bool:
    """Write a result that was seen before to a tensor that shares nothing and has no history.

    Returns whether it was as simple as that; else nothing has happened.
    """
    v, trace = t._v, local.trace
    if t._trace is not trace or v.index < 0 or v.requires_grad or v.inference:
        return False
    if t._shares or local.autograd.guard is not None:
        return False
    if local.vmap is not None or local.mode.dual or local.mode.inference:
        return False
    for a in args:
        kind = type(a)
        if kind is not float and kind is not int:
            if not isinstance(a, Handle) or a is t or a._v.requires_grad:
                return False
    with sharing:
        if t._shares or t._v is not v:  # or another thread took it
            return False
        made = known(inplace_of(op), (t, *args))
        if made is None:
            return False
        bump(t)
        rebind(t, made._v)
    return True


def apply_inplace(op: Op, t: Any, *args: Any, _key: Any = None, **kwargs: Any) -> Any:
    """Record the in-place variant of `op` on `t` and write its result; returns `t`."""
    if _key is None:
        if not kwargs and known_write(op, t, args):
            return t
        if t._v.index < 0 and write_at_once(inplace_of(op), t, args, kwargs):
            return t
    with sharing:  # a write reads the whole memory, and replaces it
        return _write(op, t, *args, _key=_key, **kwargs)


def _write(op: Op, t: Any, *args: Any, _key: Any = None, **kwargs: Any) -> Any:
    tracked = local.mode.grad and (op.differentiable or op.name in COMPARISONS)
    tracked = tracked and _wants(t, args, kwargs) and not _unasked(op, t, args)
    check_inplace(t, tracked)
    if t._creation and t._stale is not None and local.mode.grad and not tracked:
        with no_grad():  # a history that nobody can tell is not asked for
            return apply_inplace(op, t, *args, _key=_key, **kwargs)
    if local.vmap is not None:
        local.vmap.refuse_write(op, t, [*args, *kwargs.values()])
    if frozen(t):
        with written_anyway():
            apply_inplace(op, t, *args, _key=_key, **kwargs)
            if op.name in ("copy", "fill", "fill_") and isinstance(args[0], Handle):
                drops_imaginary(args[0]._v.dtype, t._v.dtype, t._v.numel)  # type: ignore[attr-defined]
    if local.mode.dual:
        compares = op.name in COMPARISONS
        if compares:
            tangents: Any = zero_tangents(t)
        else:
            tangents = tangents_after_write(op, inplace_of(op), t, args, _key, kwargs)
        if tracked and op.differentiable:
            keep_tangents(t, (*args, *kwargs.values()))
        with recording_levels(()):
            apply_inplace(op, t, *args, _key=_key, **kwargs)
        if tangents:
            write_tangents(t, tangents)
        return t
    if local.mode.grad and (op.differentiable or op.name in COMPARISONS or op.name in _BITS):
        for a in args:
            if isinstance(a, Handle) and a._stale is not None:  # type: ignore[attr-defined]
                enter(a, local.trace)  # autograd asks it for its history before all else
    before = () if _key is None else (_key,)
    if t._shares or len(args) + len(kwargs) > 1:
        try:
            check_overlap(op, t, (*args, *kwargs.values()) if kwargs else args)
        except RuntimeError:
            if op.name in ASKS_ARGUMENTS:
                with no_grad():  # for what it says of its arguments
                    record(_asking(op), (*before, t, *args), kwargs)
            elif elementwise(op, [t, *args]):
                _check_dtypes(op, before, (t, *args), kwargs)
            if tracked:
                _saved_first(op, t, before, args, kwargs)
            raise
    if tracked and t._base_ is not None:
        if t._base_._store is not t._store:
            raise RuntimeError(
                "The `.data` of this view's base (or of the view) was set, so that the two lie in "
                "memory apart: writing to the view under autograd is not supported. Write to a "
                "clone of it, or in torch.no_grad()."
            )
        own = (
            without_grad(lambda: _plainly(op, t, before, args, kwargs)) if reaches_out(t) else None
        )
        structure, flat = spell(t._blens)
        through = writing(inplace_of(op), len(args), structure)
        call = through, (*before, t._base_, *args, *flat), kwargs
        if local.mode.hooks:  # they see the view, and so does the gradient
            if write_through(inplace_of(op), t, (*before, t, *args), kwargs, call, own):
                return t
        state, _ = record(*call)
        assert state.value is not None
        write_view(t, state.value, own)
        return t
    state, trace = record(inplace_of(op), (*before, t, *args), kwargs)
    value = state.value
    assert value is not None
    old = enter(t, trace)
    if old.requires_grad and not value.requires_grad and old.role:
        value = keep_edge(trace, value, old)
        if value.edge in trace.sources:
            trace.sources[value] = trace.sources[value.edge]
    write(t, value, tracked and value.role in (NODE, EXTERNAL))
    if type(state) is not State:  # saved-tensor hooks may hold the new value
        tie = getattr(state, "tie_written", None)
        if tie is not None:
            tie(t)
    return t


def _saved_first(op: Op, t: Any, before: Any, args: Any, kwargs: Any) -> None:
    """Raise if backward would save an inference tensor: that comes before any look at memory."""
    if not any(isinstance(a, Handle) and a._v.inference for a in (t, *args)):  # type: ignore[attr-defined]
        return
    try:
        record(inplace_of(op), (*before, t, *args), kwargs)
    except RuntimeError as refusal:
        if str(refusal) == UNSAVED:
            raise


@cache
def _asking(op: Op) -> Op:
    """Make an op that checks arguments as the in-place variant does, and writes nothing."""
    fn = inplace_of(op).fn
    return Op(fn, name=op.name, namespace=op.namespace, random=op.random, numbers=op.numbers)


def _check_dtypes(op: Op, before: Any, args: Any, kwargs: Any) -> None:
    """Raise what PyTorch says of the operands' dtypes before it looks at memory."""

    def single(a: Any) -> Any:
        return a.new_zeros(()) if isinstance(a, Handle) else a  # type: ignore[attr-defined]

    try:
        with no_grad():
            named = {name: single(a) for name, a in kwargs.items()}
            record(_asking(op), (*before, *map(single, args)), named)
    except RuntimeError as refusal:
        if not by_kernel(refusal):
            raise refusal from None


def _plainly(op: Op, t: Any, before: Any, args: Any, kwargs: Any) -> Value:
    """Return what the write makes of `t`, without autograd."""
    call = inplace_of(op), (*before, t, *args), kwargs
    value = without_grad(lambda: record(*call)[0].value)
    return alias(local.trace, value, plain_kind(value))


def _unasked(op: Op, t: Any, args: Any) -> bool:
    """Tell whether all operands are inference tensors, so that autograd is not asked."""
    if not frozen(t) or op.name in WRAPS and any(not isinstance(a, Handle) for a in args):
        return False
    return all(a._v.inference for a in args if isinstance(a, Handle))  # type: ignore[attr-defined]


def _wants(t: Any, args: Any, kwargs: Any) -> bool:
    """Tell whether an operand requires grad."""
    if t._tracked:
        return True
    for a in (*args, *kwargs.values()):
        if isinstance(a, Handle):
            if a._tracked:  # type: ignore[attr-defined]
                return True
        elif type(a) in (tuple, list) and _wants(t, a, {}):
            return True
    return False
