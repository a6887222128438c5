"""PyTorch's `torch.utils.checkpoint`: forget a function's intermediate values, compute them again.

The function is recorded as usual; the steps that it took become one op, wrapped in
`jax.checkpoint`. So the program keeps its inputs alone between forward and backward, and random
numbers are the same both times by construction (their keys are inputs).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import jax

from leafax.functional import Op

from .._enter import enter, make
from .._handle import Handle
from .._modes import no_grad
from .._names import node_name
from .._record import record
from .._region import Region
from .._trace import NODE, local


def noop_context_fn() -> tuple[Any, Any]:
    """The default `context_fn`: no contexts."""
    return nullcontext(), nullcontext()


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

    A function that looks at values (or calls an `autograd.Function`) is called as if without
    checkpoint: it is right, and saves no memory.

    Args:
      use_reentrant: True as in PyTorch: no gradients unless one of `args` requires grad.
      preserve_rng_state: random numbers are always the same both times.
      determinism_check, debug, early_stop: accepted for PyTorch's sake.

    Raises:
      NotImplementedError: for a `context_fn` (selective checkpointing).

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
    kwargs.pop("preserve_rng_state", True)
    if kwargs and use_reentrant:
        raise ValueError("Unexpected keyword arguments: " + ",".join(arg for arg in kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        if use_reentrant:
            raise ValueError(
                "Passing `context_fn` or `debug` is only supported when use_reentrant=False."
            )
        if context_fn is not noop_context_fn:
            raise NotImplementedError(
                "`context_fn` (selective checkpointing) is not implemented in leafax: checkpoint "
                "smaller functions, or use jax.checkpoint with a policy in leafax.jax_function"
            )
    if use_reentrant and local.mode.grad:
        tensors = [a for a in args if isinstance(a, Handle)]
        if not any(t.requires_grad for t in tensors):  # type: ignore[attr-defined]
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2
            )
            return _without_grad(function, args)
    return _rematerialized(function, args, kwargs, use_reentrant)


def _without_grad(function: Any, args: Any) -> Any:
    with no_grad():
        return function(*args)


def _rematerialized(function: Any, args: Any, kwargs: Any, reentrant: bool) -> Any:
    for a in args:
        if isinstance(a, Handle):
            enter(a, local.trace)
    region = Region()
    output = function(*args, **kwargs)
    flat, treedef = jax.tree.flatten(output, is_leaf=lambda x: isinstance(x, Handle))
    outs = [x for x in flat if isinstance(x, Handle) and x.requires_grad]  # type: ignore[attr-defined]
    mode = local.mode
    special = mode.hooks or mode.dual or not mode.grad
    if not outs or special or not region.intact() or region.has_custom():
        return output
    values = [enter(t, region.trace) for t in outs]
    if any(v.edge is None or v.edge.role != NODE for v in values):
        return output  # an argument came back as it was
    key = ("checkpoint", region.key(values), reentrant)
    known = local.trace.state.next.get(key)
    if known is None:
        fn = region.function(outs)
        edge = values[0].edge
        assert edge is not None
        name = "CheckpointFunctionBackward" if reentrant else node_name(edge.state)
        known = (_op(fn, name), region.free)
        local.trace.state.next[key] = known
    op, free = known
    state, trace = record(op, free, {}, budget=False)
    made = iter([make(v, trace) for v in state.values])
    ids = {id(t) for t in outs}
    return jax.tree.unflatten(treedef, [next(made) if id(x) in ids else x for x in flat])


def _op(fn: Any, name: str) -> Op:
    remat = jax.checkpoint(fn)

    def checkpointed(*arrays: Any) -> Any:
        return remat(*arrays)

    return Op(checkpointed, name="checkpoint", namespace="opaque", backward=name)


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
