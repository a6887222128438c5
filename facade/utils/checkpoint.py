"""PyTorch's `torch.utils.checkpoint`: forget intermediate values, compute them again."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from .._autograd.saved_hooks.saved_tensors_hooks import check_checkpoint, saving, unhooked
from .._core.handle import Handle
from .._core.trie import local
from .._tracing.infer import UNSAVED
from .._tracing.loop_cuts import uncut
from ._checkpoint_states import DefaultDeviceType as DefaultDeviceType
from ._checkpoint_states import check_backward_validity as check_backward_validity
from ._checkpoint_states import detach_variable as detach_variable
from ._checkpoint_states import get_device_states as get_device_states
from ._checkpoint_states import set_device_states as set_device_states
from ._frame import Frame, StopRecomputation
from ._group import GraphExecGroup as GraphExecGroup
from ._mismatch import CheckpointError as CheckpointError
from ._mismatch import metadata_of
from ._reentrant import CheckpointFunction as CheckpointFunction
from ._selective import SAC_IGNORED_OPS as SAC_IGNORED_OPS
from ._selective import Caching
from ._selective import CheckpointPolicy as CheckpointPolicy
from ._selective import SelectiveCheckpointContext as SelectiveCheckpointContext
from ._selective import create_selective_checkpoint_contexts as create_selective_checkpoint_contexts

_debug_enabled: bool | None = None
_early_stop: bool | None = None
_METADATA: dict[str, Any] = {"default": metadata_of, "none": lambda _: None}


def noop_context_fn() -> tuple[Any, Any]:
    """Return the default `context_fn`: no contexts."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """For a block, override `checkpoint`'s argument `debug`; None leaves it as it is."""
    global _debug_enabled
    before, _debug_enabled = _debug_enabled, enabled
    try:
        yield
    finally:
        _debug_enabled = before


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """For a block, override `checkpoint`'s argument `early_stop`."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Any] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call `function(*args, **kwargs)`; its intermediate values are not kept for backward.

    Backward calls `function` again and computes them anew, when they are needed. A function that
    looks at values is called as if without checkpoint unless `use_reentrant`: it is right, and
    saves no memory.

    Args:
      use_reentrant: True for PyTorch's older variant: forward runs without gradients, backward
        runs the function's own graph; no gradients unless one of `args` requires grad.
      preserve_rng_state: the function draws the same random numbers both times.
      context_fn: returns the contexts of the first call and of the second, for instance
        `create_selective_checkpoint_contexts`.
      determinism_check: "default" compares what both calls saved, "none" does not.
      debug: an error of that check lists the ops of both calls.
      early_stop: end the second call as soon as all was saved that the first one saved.

    Raises:
      CheckpointError: in backward, if the second call differs from the first.
      ValueError: for arguments that do not go together.
      RuntimeError: for inference tensors among `args`, which cannot be saved; where
        `autograd.graph.disable_saved_tensors_hooks` is in force.

    >>> import leafax
    >>> from leafax.utils.checkpoint import checkpoint
    >>> x = leafax.tensor([2.0], requires_grad=True)
    >>> checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False).backward()
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. "
            "Starting in PyTorch 2.9, calling checkpoint without use_reentrant will raise an "
            "exception. use_reentrant=False is recommended, but if you need to preserve the "
            "current default behavior, you can pass use_reentrant=True. Refer to docs for more "
            "details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(arg for arg in kwargs))
    if use_reentrant:
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if _debug_enabled is None else _debug_enabled
    if debug:
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _METADATA:
        raise ValueError(
            f"determinism_check should be one of {list(_METADATA)}, but got {determinism_check}"
        )
    forward, again = context_fn()
    if not local.mode.enabled:
        return function(*args, **kwargs)
    if any(isinstance(a, Handle) and a._v.inference for a in args):
        raise RuntimeError(UNSAVED)  # the arguments are
    check_checkpoint()
    completed: list[Any] = []
    with uncut():
        frame = Frame(
            function, args, kwargs, preserve=preserve, context=again, debug=debug,
            metadata_fn=_METADATA[determinism_check],
            early_stop=early_stop if _early_stop is None else _early_stop,
        )  # fmt: skip
        try:
            with unhooked(), forward, saving(frame):
                completed.append(function(*args, **kwargs))
        except StopRecomputation:  # of a checkpoint around this one
            _close(frame, forward)
            raise
    if not completed:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an "
            "exception raised during the checkpointed forward. This is not supported because "
            "checkpoint cannot return a value for a failed forward."
        )
    _close(frame, forward)
    return completed[0]


def _close(frame: Frame, forward: Any) -> None:
    """End the forward of a checkpoint: what it recorded is computed again, or kept by policy."""
    if frame.region.intact() and not frame.took_duals():
        frame.close()
        if isinstance(forward, Caching):
            forward.decide(frame.steps, local.trace)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call `functions` one after another, in `segments` checkpointed parts.

    Args:
      functions: a list of functions of one tensor, or a `Sequential` module.
      segments: how many parts; the last one is not checkpointed.
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be "
            "passed explicitly. In version 2.9 we will raise an exception if use_reentrant is not "
            "passed. use_reentrant=False is recommended, but if you need to preserve the current "
            "default behavior, you can pass use_reentrant=True. Refer to docs for more details on "
            "the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(arg for arg in kwargs))
    parts = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(parts) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            _chain(parts[start:end]), input, use_reentrant=use_reentrant,
            preserve_rng_state=preserve,
        )  # fmt: skip
    return _chain(parts[end:])(input)


def _chain(parts: Sequence[Any]) -> Callable[[Any], Any]:
    def forward(x: Any) -> Any:
        for part in parts:
            x = part(x)
        return x

    return forward
