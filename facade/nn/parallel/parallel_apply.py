"""PyTorch's `torch.nn.parallel.parallel_apply`: several modules, each with its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.handle import Handle

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """Return the first tensor in tuples, lists and dicts, or None."""
    if isinstance(obj, Handle):
        return obj
    if isinstance(obj, dict):
        obj = list(obj.items())
    if isinstance(obj, (list, tuple)):
        for found in map(get_a_var, obj):
            if found is not None:
                return found
    return None


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its arguments; the calls are recorded one after the other.

    Args:
      inputs: a tuple of arguments for each, or the only one.
      kwargs_tup: keyword arguments for each.
      devices: where each is; what the arguments are on if None.

    Raises:
      AssertionError: there are not as many of each.
    """
    for name, given in (("inputs", inputs), ("kwargs_tup", kwargs_tup), ("devices", devices)):
        if given is not None and len(modules) != len(given):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to "
                f"the number of {name} {len(given)}"
            )
    named = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    results = []
    for module, args, kwargs in zip(modules, inputs, named, strict=True):
        args = args if isinstance(args, (list, tuple)) else (args,)
        results.append(module(*args, **kwargs))
    return results
