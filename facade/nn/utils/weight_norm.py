"""PyTorch's `torch.nn.utils.weight_norm`: the old way, by a hook before each call."""

from __future__ import annotations

import warnings
from typing import Any

from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter
from ._weight_norm import norm_of, with_norm

__all__ = ["WeightNorm", "weight_norm", "remove_weight_norm"]

_DEPRECATED = (
    "`torch.nn.utils.weight_norm` is deprecated "
    "in favor of `torch.nn.utils.parametrizations.weight_norm`."
)


class WeightNorm:
    """Compute a weight from its norms and its direction before each call of a module.

    Args:
      name: of the parameter; the norms are called `name_g`, the direction `name_v`.
      dim: the norms are taken over all others; over all of them for None.
    """

    name: str
    dim: int

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = -1 if dim is None else dim

    def compute_weight(self, module: Any) -> Any:
        """Return the weight."""
        norm, direction = (getattr(module, self.name + end) for end in ("_g", "_v"))
        return with_norm(direction, norm, self.dim)

    @staticmethod
    def apply(module: Any, name: str, dim: int | None) -> WeightNorm:
        """Put norms and direction in the place of a parameter, and the hook on the module."""
        warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, WeightNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two weight_norm hooks on the same parameter {name}"
                )
        made = WeightNorm(name, dim)
        weight = getattr(module, name)
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `WeightNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying weight normalization"
            )
        del module._parameters[name]
        module.register_parameter(name + "_g", Parameter(norm_of(weight, made.dim).data))
        module.register_parameter(name + "_v", Parameter(weight.data))
        setattr(module, name, made.compute_weight(module))
        module.register_forward_pre_hook(made)
        return made

    def remove(self, module: Any) -> None:
        """Make the weight a parameter again."""
        weight = self.compute_weight(module)
        delattr(module, self.name)
        del module._parameters[self.name + "_g"]
        del module._parameters[self.name + "_v"]
        setattr(module, self.name, Parameter(weight.data))

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Train the norm and the direction of a weight of `module` apart.

    The old way; `leafax.nn.utils.parametrizations.weight_norm` is the new one.

    Args:
      name: of the parameter.
      dim: the norm is taken over all others; over all of them for None.

    Returns:
      `module`.
    """
    WeightNorm.apply(module, name, dim)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Undo `weight_norm`; the weight keeps its value.

    Raises:
      ValueError: there is none on that parameter.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, WeightNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(f"weight_norm of '{name}' not found in {module}")
