"""`func.replace_all_batch_norm_modules_`: batch norm without running statistics."""

from __future__ import annotations

from typing import Any


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Make all batch norms of a module use their batch alone, in place; return the module.

    Args:
      root: an `nn.Module`.
    """
    for module in root.modules():
        kinds = [cls.__name__ for cls in type(module).__mro__]
        if "_BatchNorm" in kinds:  # of `nn`, which stands above this package
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
