"""PyTorch's `torch.autograd.grad_mode`: the modes under which ops are recorded."""

from .._core.grad_modes import _force_original_view_tracking as _force_original_view_tracking
from .._core.grad_modes import enable_grad as enable_grad
from .._core.grad_modes import enforce_grad_layout_policy as enforce_grad_layout_policy
from .._core.grad_modes import inference_mode as inference_mode
from .._core.grad_modes import no_grad as no_grad
from .._core.grad_modes import set_grad_enabled as set_grad_enabled
from .._core.grad_modes import set_multithreading_enabled as set_multithreading_enabled
from .._runtime.version_counters import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
