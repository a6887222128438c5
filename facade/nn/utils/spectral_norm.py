"""PyTorch's `torch.nn.utils.spectral_norm`: the old way, by a hook before each call."""

from __future__ import annotations

from typing import Any

from ... import linalg
from ..._core.grad_modes import no_grad
from .. import functional as F
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, UninitializedParameter

__all__ = [
    "SpectralNorm", "SpectralNormLoadStateDictPreHook", "SpectralNormStateDictHook",
    "spectral_norm", "remove_spectral_norm",
]  # fmt: skip


class SpectralNorm:
    """Divide a weight by its largest singular value before each call of a module.

    Args:
      name: of the parameter; it is kept as `name_orig`, the vectors as `name_u` and `name_v`.
      n_power_iterations: how many steps of the power method there are before a call in training.
      dim: of the outputs.
      eps: the least norm that is divided by.

    Raises:
      ValueError: for fewer than one iteration.
    """

    _version: int = 1  # since it, `v` is a buffer and the weight is none
    name: str
    dim: int
    n_power_iterations: int
    eps: float

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        self.dim = dim
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but "
                f"got n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix whose rows are the outputs."""
        if self.dim != 0:
            others = [d for d in range(weight.dim()) if d != self.dim]
            weight = weight.permute(self.dim, *others)
        return weight.reshape(weight.size(0), -1)

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Any:
        """Return the normalized weight; the vectors follow it first if asked."""
        weight, u, v = (getattr(module, self.name + end) for end in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v = F.normalize(matrix.t().mv(u), dim=0, eps=self.eps, out=v)
                    u = F.normalize(matrix.mv(v), dim=0, eps=self.eps, out=u)
                # Copies, because the next call writes what this one's gradient needs.
                u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    def remove(self, module: Any) -> None:
        """Make the normalized weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for end in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + end)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Any, inputs: Any) -> None:
        weight = self.compute_weight(module, do_power_iteration=module.training)
        setattr(module, self.name, weight)

    def _solve_v_and_rescale(self, weight_mat: Any, u: Any, target_sigma: Any) -> Any:
        """Return the `v` with which `u @ weight_mat @ v` is `target_sigma`."""
        turned = weight_mat.t()
        v = linalg.multi_dot([turned.mm(weight_mat).pinverse(), turned, u.unsqueeze(1)]).squeeze(1)
        return v.mul_(target_sigma / u.dot(weight_mat.mv(v)))

    @staticmethod
    def apply(
        module: Any, name: str, n_power_iterations: int, dim: int, eps: float
    ) -> SpectralNorm:
        """Put the hooks on a module and the vectors into it."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(
                    f"Cannot register two spectral_norm hooks on the same parameter {name}"
                )
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if isinstance(weight, UninitializedParameter):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. "
                "Make sure to run the dummy forward before applying spectral normalization"
            )
        with no_grad():
            u, v = (
                F.normalize(weight.new_empty(size).normal_(0, 1), dim=0, eps=eps)
                for size in made.reshape_weight_to_matrix(weight).size()
            )
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)  # no parameter, but there, for those who ask
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormLoadStateDictPreHook:
    """Compute `v` where a state was saved before there was one: version 0.

    Args:
      fn: the `SpectralNorm` whose state it is.
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        is_new = all(key + end in state_dict for end in ("_orig", "_u", "_v"))
        if version is None and is_new and key not in state_dict:
            return  # written by hand, without metadata
        missing = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        if missing:
            if strict:
                missing_keys.extend(missing)
            return
        with no_grad():
            original, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (original / state_dict.pop(key)).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[key + "_v"] = fn._solve_v_and_rescale(matrix, u, sigma)


class SpectralNormStateDictHook:
    """Note the version in the metadata of a state.

    Args:
      fn: the `SpectralNorm` whose state it is.
    """

    def __init__(self, fn: Any) -> None:
        self.fn = fn

    def __call__(self, module: Any, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Module:  # fmt: skip
    """Divide a weight of `module` by its largest singular value.

    The old way; `leafax.nn.utils.parametrizations.spectral_norm` is the new one.

    Args:
      name: of the parameter.
      n_power_iterations: how many steps of the power method there are before a call in training.
      eps: the least norm that is divided by.
      dim: of the outputs; 0, or 1 for transposed convolutions, if None.

    Returns:
      `module`.
    """
    if dim is None:
        turned = isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d))
        dim = 1 if turned else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Undo `spectral_norm`; the weight keeps its normalized value.

    Raises:
      ValueError: there is none on that parameter.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    own = (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook)
    for others in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for number, hook in others.items():
            hook = getattr(hook, "hook", hook)  # those before loading are wrapped
            if isinstance(hook, own) and hook.fn.name == name:
                del others[number]
                break
    return module
