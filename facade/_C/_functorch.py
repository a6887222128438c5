"""`torch._C._functorch`: what packages ask of tensors within `torch.func`'s transforms."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import refuse
from ..func._running import debug_unwrap as _debug_unwrap
from ..func._running import running as _running

_INSTEAD = "`leafax.func.vmap` records the function on the first example"
_add_batch_dim, _remove_batch_dim = [
    refuse(f"_C._functorch.{name}", _INSTEAD) for name in ("_add_batch_dim", "_remove_batch_dim")
]


def is_batchedtensor(tensor: Any) -> bool:
    """Tell whether a tensor stands for the examples of a `vmap` that runs."""
    return bool(_running.levels) and _running.innermost(tensor) is not None


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Return False: there is one `vmap` only."""
    return False


def get_unwrapped(tensor: Any) -> Any:
    """Return what a tensor stands for in the innermost `vmap`, to be looked at only."""
    return _debug_unwrap(tensor, recurse=False)
