"""PyTorch's `torch.autograd`."""

import sys as _sys
import typing as _typing

from .._autograd.backward import backward as backward
from .._autograd.backward import grad as grad
from .._autograd.backward_arguments import _calculate_shape as _calculate_shape
from .._autograd.saved_hooks.saved_tensor import SavedTensor as SavedTensor
from .._core import missing_names as _missing_names
from .._core.grad_modes import _force_original_view_tracking as _force_original_view_tracking
from .._core.grad_modes import enable_grad as enable_grad
from .._core.grad_modes import enforce_grad_layout_policy as enforce_grad_layout_policy
from .._core.grad_modes import inference_mode as inference_mode
from .._core.grad_modes import is_multithreading_enabled as is_multithreading_enabled
from .._core.grad_modes import is_view_replay_enabled as is_view_replay_enabled
from .._core.grad_modes import no_grad as no_grad
from .._core.grad_modes import set_grad_enabled as set_grad_enabled
from .._core.grad_modes import set_multithreading_enabled as set_multithreading_enabled
from .._core.run_log import profiles as _profiles
from .._runtime.version_counters import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from . import _functions as _functions
from . import anomaly_mode as anomaly_mode
from . import forward_ad as forward_ad
from . import function as function
from . import grad_mode as grad_mode
from . import graph as graph
from . import variable as variable
from ._anomaly import detect_anomaly as detect_anomaly
from ._anomaly import set_detect_anomaly as set_detect_anomaly
from ._function import Function as Function
from ._nested_io import NestedIOFunction as NestedIOFunction
from ._variable import Variable as Variable
from .gradcheck import gradcheck as gradcheck
from .gradcheck import gradgradcheck as gradgradcheck


def _profiler_enabled() -> bool:
    """Return whether a profile is being recorded."""
    return bool(_profiles)


torch = _sys.modules["leafax"]  # PyTorch's module has this name, too
if _typing.TYPE_CHECKING:
    from . import functional as functional
_LATER = "functional", "profiler"
__getattr__ = _missing_names.missing("leafax.autograd", lambda name: None, _LATER)
__dir__ = _missing_names.listing("leafax.autograd", _LATER)
