"""PyTorch's `torch.optim.optimizer`: the base class, and hooks of all optimizers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from .._core.default_dtype import get_default_dtype
from .._core.dtypes import float32, float64
from .._core.grad_modes import is_grad_enabled, set_grad_enabled
from .._dispatch.conj_neg_bits import view_as_real
from .._tensor.tensor import Tensor
from ._base.groups import required as required
from ._base.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from ._base.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from ._base.optimizer import Optimizer as Optimizer

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Run a `step` with gradients recorded only if its group says `differentiable`."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(is_grad_enabled() and bool(self.defaults.get("differentiable"))):
            return func(self, *args, **kwargs)

    return step


def _get_value(x: Any) -> Any:
    """Return the number of a tensor, and of what is none itself; it is observed."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x: Any) -> Any:
    """Return the argument: nothing is compiled while it runs."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """Return the root of a number or a tensor."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _default_to_fused_or_foreach(
    params: Sequence[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return that an optimizer need not choose kernels of many tensors: its step is one anyway."""
    return False, False


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex parameters, and what belongs to them, by views as pairs of numbers."""
    for i, p in enumerate(params):
        if p.is_complex():
            params[i] = view_as_real(p)
            for each in state_and_grads:
                each[i] = view_as_real(each[i])


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the devices whose counts of steps may be tensors."""
    return ["cpu", "cuda", *(["xla"] if supports_xla else [])]


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype of counts of steps."""
    return float64 if get_default_dtype() is float64 and not is_fused else float32
