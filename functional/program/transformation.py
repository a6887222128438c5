"""The JAX transformation that traces this thread's code, and computing outside of it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import jax
from jax._src import core  # what is tracing now JAX says nowhere else

_NONE = core.eval_trace


def transformation() -> Any:
    """Return the JAX trace that is active in this thread, None outside of all transformations."""
    trace = core.trace_ctx.trace
    return None if trace is _NONE else trace


def outside() -> AbstractContextManager[None]:
    """Compute within the block as if no transformation were active."""
    return jax.core.eval_context()  # type: ignore[no-any-return, no-untyped-call]


def within_trace(trace: Any) -> AbstractContextManager[None]:
    """Compute within the block under a JAX trace that encloses the active one."""
    return core.set_current_trace(trace)


def enclosing() -> list[Any]:
    """List the JAX traces that are active, innermost first."""
    found: list[Any] = []
    trace = transformation()
    while trace is not None and trace is not _NONE:
        found.append(trace)
        trace = getattr(trace, "parent_trace", None)
    return found


def name_of_trace(trace: Any) -> str:
    """Name the transformation that a JAX trace belongs to, as users call it."""
    kind = type(trace).__name__
    if kind == "BatchTrace":
        return "jax.vmap"
    return "jax.jit" if kind == "DynamicJaxprTrace" else "jax.grad"
