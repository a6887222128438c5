"""PyTorch's `torch._dynamo.eval_frame`: the class of compiled modules, for `isinstance`."""

from __future__ import annotations

from typing import Any

from .._api.compile import OptimizedModule as OptimizedModule
from .._core.absent.stand_ins import leave, refuse

_EXPORTED = "`leafax.functional.lower` exports what was recorded as a JAX function"


explain = refuse("_dynamo.explain", "`leafax.explain()` tells what ran")
export = refuse("_dynamo.export", _EXPORTED)


def optimize(*args: Any, **options: Any) -> Any:
    """Return a decorator that returns its function: a step is compiled as it is."""
    return leave()


def is_dynamo_supported() -> bool:
    """Return False: nothing rewrites bytecode."""
    return False


def is_inductor_supported() -> bool:
    """Return False: XLA compiles."""
    return False
