"""`normal`: draws from normal distributions, whose parameters may be tensors."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.trie import local
from ..calls.functions import function
from ..composites.shapes import broadcast_shapes
from ..writes.resize_out import resize_output
from .from_arrays import finish
from .generator import generator_of_new

_draw = function(TABLE["normal"])


def normal(
    *args: Any, layout: Any = None, device: Any = None, pin_memory: bool = False,
    requires_grad: bool = False, **kwargs: Any,
) -> Any:  # fmt: skip
    """Draw from normal distributions: `normal(mean, std, size=None, *, generator, out, dtype)`.

    Args:
      mean, std: numbers, or tensors that broadcast with each other.
      size: the result's shape, where both are numbers.
    """
    if kwargs.get("out") is not None and local.vmap is None:  # which `vmap` refuses
        return _normal_into(*args, **kwargs)
    numbers = not any(isinstance(x, Handle) for x in (*args, *kwargs.values()))
    if numbers and kwargs.get("generator") is None:
        kwargs["generator"] = generator_of_new(device)
    return finish(_draw(*args, **kwargs), requires_grad, device)


def _normal_into(
    mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, out: Any, generator: Any = None,
    dtype: Any = None,
) -> Any:  # fmt: skip
    """Draw into `out`, whose dtype may be any that the draws have a kernel for."""
    with no_grad():
        if isinstance(std, Handle):
            shape = broadcast_shapes(std.shape, mean.shape if isinstance(mean, Handle) else ())  # type: ignore[attr-defined]
            resize_output(out, tuple(shape))
            return out.normal_(0.0, 1.0, generator=generator).mul_(std).add_(mean)
        if isinstance(mean, Handle):  # it is added to what is there, of whatever shape
            return out.normal_(0.0, std, generator=generator).add_(mean)
        if size is not None:
            out.resize_(size)
        return out.normal_(mean, std, generator=generator)
