"""An `nn.Module` whose forward pass runs again in backward, in place of keeping activations."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Iterator
from typing import Any

from leafax import nn, no_grad
from leafax.utils.checkpoint import checkpoint

#: True while a call runs again: those who watch it have seen it.
again: contextvars.ContextVar[bool] = contextvars.ContextVar("again", default=False)

_FIELD = "_kept_forward"  # the instance's own `forward` before, None if it is the class's


def recompute(module: nn.Module, on: bool) -> None:
    """Call a module through `utils.checkpoint` from now on, or no longer."""
    held = module.__dict__
    if on and _FIELD not in held:
        held[_FIELD] = held.get("forward")
        held["forward"] = functools.partial(_forward, module)
    elif not on and _FIELD in held:
        before = held.pop(_FIELD)
        if before is None:
            del held["forward"]
        else:
            held["forward"] = before


def _forward(module: Any, *args: Any, **kwargs: Any) -> Any:
    """Take the place of `forward()` of a module that is computed again."""
    own = module.__dict__[_FIELD] or functools.partial(type(module).forward, module)
    return checkpoint(
        functools.partial(own, **kwargs), *args, use_reentrant=False,
        context_fn=lambda: (contextlib.nullcontext(), _unseen(module)),
    )  # fmt: skip


@contextlib.contextmanager
def _unseen(module: nn.Module) -> Iterator[None]:
    """Have the second call leave buffers (statistics) as they are, and nobody look at it."""
    with no_grad():
        before = [(b, b.detach().clone()) for b in module.buffers()]
    token = again.set(True)
    try:
        yield
    finally:
        again.reset(token)
        for buffer, value in before:
            buffer.data = value
