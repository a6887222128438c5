"""PyTorch's `torch.nn.parallel.scatter_gather`: batches in parts, one for each device."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from ..._core.handle import Handle
from ..._ops.calls.functions import function as _function

cat = _function(_TABLE["cat"])
stack = _function(_TABLE["stack"])

__all__ = ["scatter", "scatter_kwargs", "gather"]

_SCALARS = (
    "Was asked to gather along dimension 0, but all input tensors were scalars; will instead "
    "unsqueeze and return a vector."
)


def _is_namedtuple(x: Any) -> bool:
    return isinstance(x, tuple) and hasattr(x, "_asdict") and hasattr(x, "_fields")


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Split the tensors in `inputs` along `dim`, one part for each device.

    Args:
      inputs: a tensor, or tuples, lists and dicts of anything; what is no tensor goes to each.
      target_gpus: devices, or numbers of GPUs.
      dim: of the batch.

    Returns:
      One copy of `inputs` for each device that gets a part: a tuple for a tensor, else a list.
    """
    if isinstance(inputs, Handle):
        parts = inputs.chunk(len(target_gpus), dim)  # type: ignore[attr-defined]
        return tuple(x.to(where) for x, where in zip(parts, target_gpus, strict=False))
    if isinstance(inputs, (tuple, list, dict)) and len(inputs) > 0:
        items = inputs.items() if isinstance(inputs, dict) else inputs
        each = zip(*(scatter(x, target_gpus, dim) for x in items), strict=False)
        if _is_namedtuple(inputs):
            return [type(inputs)(*x) for x in each]
        return list(each) if isinstance(inputs, tuple) else [type(inputs)(x) for x in each]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """Split positional and keyword arguments, as `scatter` does, into as many of each."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    args.extend(() for _ in range(len(named) - len(args)))
    named.extend({} for _ in range(len(args) - len(named)))
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Join what several devices returned on one of them, along `dim`.

    Args:
      outputs: tensors, or tuples, lists and dicts of tensors, one of each device.
      target_device: a device, or the number of a GPU.

    Raises:
      ValueError: dicts differ in length.
    """
    first = outputs[0]
    if isinstance(first, Handle):
        parts = [x.to(target_device) for x in outputs]
        if dim == 0 and all(x.dim() == 0 for x in parts):
            warnings.warn(_SCALARS, stacklevel=2)
            return stack(parts)
        return cat(parts, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(x) for x in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((k, gather([x[k] for x in outputs], target_device, dim)) for k in first)
    each = [gather(x, target_device, dim) for x in zip(*outputs, strict=True)]
    return type(first)._make(each) if _is_namedtuple(first) else type(first)(each)  # type: ignore[attr-defined]
