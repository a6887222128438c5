"""The reentrant checkpoint: forward without a graph, backward through a graph of its own."""

from __future__ import annotations

import warnings
from typing import Any

from .._core.grad_modes import enable_grad
from .._core.handle import Handle
from .._core.trie import local
from .._dispatch.record import record
from .._ops.autocast.snapshot import Autocast
from .._ops.creation.generator import all_go_back, all_places
from .._storage.enter import enter
from .._tracing.inputs import make
from ..autograd import Function, Variable, backward
from ._barrier import BARRIER


class CheckpointFunction(Function):
    """The node of a reentrant checkpoint."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        if not any(isinstance(a, Handle) and a.requires_grad for a in args):  # type: ignore[attr-defined]
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
            )
        ctx.run_function, ctx.preserve = run_function, preserve_rng_state
        ctx.rng = all_places()
        ctx.autocast = Autocast()
        ctx.inputs = [None if isinstance(a, Handle) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Handle)]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Handle)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not Variable._execution_engine.is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can "
                "either set use_reentrant=False, or call .backward() without passing the `inputs` "
                "argument."
            )
        tensors = ctx.saved_tensors
        inputs = list(ctx.inputs)
        hidden = _behind(tensors, grads)
        for i, t, x in zip(ctx.places, tensors, hidden, strict=False):
            inputs[i] = x.requires_grad_(t.requires_grad)
        grads = tuple(hidden[len(tensors) :])
        before = all_places()
        try:
            if ctx.preserve:
                all_go_back(ctx.rng)
            with enable_grad(), ctx.autocast:
                outputs = ctx.run_function(*inputs)
        finally:
            if ctx.preserve:
                all_go_back(before)
        if isinstance(outputs, Handle):
            outputs = (outputs,)
        pairs = [
            (o, g)
            for o, g in zip(outputs, grads, strict=True)
            if isinstance(o, Handle) and o.requires_grad  # type: ignore[attr-defined]
        ]
        if not pairs:
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not necessary"
            )
        backward([o for o, _ in pairs], [g for _, g in pairs])
        return None, None, *[x.grad if isinstance(x, Handle) else None for x in inputs]


def _behind(tensors: Any, grads: Any) -> list[Any]:
    """Return the tensors without history, computed no earlier than the gradients are."""
    given = [*tensors, *[g for g in grads if g is not None]]
    values = [enter(t, local.trace) for t in given]
    state, trace = record(BARRIER, tuple(values), {"n": len(tensors)}, budget=False)
    made = iter([make(v, trace) for v in state.values])
    first = [next(made) for _ in tensors]
    return [*first, *[None if g is None else next(made) for g in grads]]
