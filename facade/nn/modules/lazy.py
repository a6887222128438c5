"""`LazyModuleMixin`: modules that learn the shapes of their parameters in the first call."""

from __future__ import annotations

import itertools
from typing import Any

from ..._core import grad_modes as _grad_modes
from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """A mixin that comes before a module class whose parameters may be uninitialized.

    The class defines `initialize_parameters`, which gets what the first call gets, and
    `cls_to_become`, what the module is afterwards.
    """

    cls_to_become: Any = None

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _save_to_state_dict(self: Any, destination: Any, prefix: str, keep_vars: bool) -> None:
        left_out = self._non_persistent_buffers_set
        buffers = {k: v for k, v in self._buffers.items() if k not in left_out}
        for name, t in itertools.chain(self._parameters.items(), buffers.items()):
            if t is not None:
                destination[prefix + name] = t if keep_vars or is_lazy(t) else t.detach()

    def _lazy_load_hook(
        self: Any,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        """Give parameters the shapes that they have in what is loaded."""
        for name, t in itertools.chain(self._parameters.items(), self._buffers.items()):
            key = prefix + name
            if key in state_dict and t is not None and is_lazy(t):
                given = state_dict[key]
                if not is_lazy(given):
                    with _grad_modes.no_grad():
                        t.materialize(given.shape)

    def initialize_parameters(self: Any, *args: Any, **kwargs: Any) -> None:
        """Give parameters their shapes and values; what subclasses define."""
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {self.__class__.__name__}"
        )

    def has_uninitialized_params(self: Any) -> bool:
        """Tell whether a parameter or buffer has no shape yet."""
        return any(map(is_lazy, itertools.chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self: Any, module: Any, args: Any, kwargs: Any = None) -> None:
        """Initialize the parameters before the first call, and be a lazy module no more."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        delattr(module, "_initialize_hook")
        delattr(module, "_load_hook")
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self: Any) -> Any:
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy "
            "forward pass to correctly initialize the modules"
        )
