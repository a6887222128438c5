"""The few names of `torch._C` that code written for PyTorch uses, about the autograd engine."""

from importlib import import_module
from typing import Any

from .._autograd.engine.current_task import current_node as _current_autograd_node
from .._autograd.engine.current_task import execution_order as _current_graph_task_execution_order
from .._autograd.engine.current_task import task_number as _current_graph_task_id
from .._autograd.engine.current_task import will_execute as _will_engine_execute_node
from .._core.dual_levels import enable_tangents as _set_fwd_grad_enabled
from .._core.grad_modes import is_grad_enabled as is_grad_enabled
from .._core.grad_modes import is_grad_layout_enforced as _is_grad_layout_enforcement_enabled
from .._core.grad_modes import is_inference_mode_enabled as is_inference_mode_enabled
from .._core.grad_modes import set_grad_layout_enforced as _set_grad_layout_enforcement_enabled
from .._core.overrides.modes import _len_torch_function_stack as _len_torch_function_stack
from .._core.overrides.state import DisableTorchFunction as DisableTorchFunction
from .._core.overrides.state import DisableTorchFunctionSubclass as DisableTorchFunctionSubclass
from .._core.overrides.state import _disabled_torch_function_impl as _disabled_torch_function_impl
from .._core.overrides.state import (
    is_torch_function_all_disabled as _is_torch_function_all_disabled,
)
from .._core.overrides.state import is_torch_function_enabled as _is_torch_function_enabled
from .._core.overrides.state import (
    is_torch_function_mode_enabled as _is_torch_function_mode_enabled,
)
from ..linalg import LinAlgError as _LinAlgError  # type: ignore[attr-defined]  # stub: functions
from . import _autograd as _autograd
from . import _functions as _functions
from . import _nn as _nn
from ._cached import add as _add_cached_tensor
from ._cached import is_cached as _is_cached_tensor
from ._cached import remove as _remove_cached_tensor
from ._cached import set_enabled as _set_cached_tensors_enabled
from ._tls import get_obj_in_tls as _get_obj_in_tls
from ._tls import is_key_in_tls as _is_key_in_tls
from ._tls import remove_obj_from_tls as _remove_obj_from_tls
from ._tls import stash_obj_in_tls as _stash_obj_in_tls
from ._weak import WeakTensorRef as _WeakTensorRef


def __getattr__(name: str) -> Any:
    if not name.startswith("__"):
        found = getattr(import_module("leafax._C._names"), name, None)  # which few programs need
        if found is not None:
            return found
    raise AttributeError(f"module 'leafax._C' has no attribute '{name}'")


has_lapack = True  # what PyTorch's tests ask before they factorise: JAX has its own

__all__ = [
    "DisableTorchFunction", "DisableTorchFunctionSubclass", "_disabled_torch_function_impl",
    "_is_torch_function_all_disabled", "_is_torch_function_enabled",
    "_is_torch_function_mode_enabled", "_len_torch_function_stack", "_LinAlgError",
    "_WeakTensorRef", "_add_cached_tensor", "_autograd", "_current_autograd_node",
    "_current_graph_task_execution_order", "_current_graph_task_id", "_functions",
    "_get_obj_in_tls", "_is_cached_tensor", "_is_grad_layout_enforcement_enabled", "_is_key_in_tls",
    "_nn", "_remove_cached_tensor", "_remove_obj_from_tls", "_set_cached_tensors_enabled",
    "_set_fwd_grad_enabled", "_set_grad_layout_enforcement_enabled", "_stash_obj_in_tls",
    "_will_engine_execute_node", "has_lapack", "is_grad_enabled", "is_inference_mode_enabled",
]  # fmt: skip
