"""PyTorch's `torch.fx.experimental.proxy_tensor`: nothing is traced below functions here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def get_proxy_mode() -> None:
    """Return None: ops are recorded by leafax itself."""


def make_fx(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Refuse: `symbolic_trace` records functions, `leafax.functional.lower` what they compute.

    Raises:
      NotImplementedError: always.
    """
    raise NotImplementedError(
        "make_fx traces PyTorch's dispatcher; `leafax.fx.symbolic_trace` records a module's calls "
        "of functions, and `leafax.functional.lower` gives the JAX function of what it computes"
    )
