"""PyTorch's `torch.nn.utils.prune`: parts of parameters set to zero."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._ops.creation.factories import ones_like, rand_like
from .._functional.vectors import parameters_to_vector
from ._prune_checks import _compute_norm as _compute_norm
from ._prune_checks import _compute_nparams_toprune as _compute_nparams_toprune
from ._prune_checks import _validate_pruning_amount as _validate_pruning_amount
from ._prune_checks import _validate_pruning_amount_init as _validate_pruning_amount_init
from ._prune_checks import _validate_pruning_dim as _validate_pruning_dim
from ._prune_checks import _validate_structured_pruning as _validate_structured_pruning
from ._prune_checks import count_to_prune
from ._pruning_method import BasePruningMethod as BasePruningMethod
from ._pruning_method import PruningContainer as PruningContainer
from ._structured_pruning import LnStructured as LnStructured
from ._structured_pruning import RandomStructured as RandomStructured

for _kind in (BasePruningMethod, PruningContainer, LnStructured, RandomStructured):
    _kind.__module__ = __name__


class Identity(BasePruningMethod):
    """Prune nothing, but have the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask that there is."""
        return default_mask

    @classmethod
    def apply(cls, module: Any, name: str) -> Any:  # type: ignore[override]
        """Put a mask of ones on a parameter of a module."""
        return super().apply(module, name)


class RandomUnstructured(BasePruningMethod):
    """Prune elements by chance.

    Args:
      amount: a fraction in [0, 1], or how many.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask with so many elements more at 0."""
        count = count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone()
        if count != 0:
            mask.view(-1)[rand_like(t).view(-1).topk(count).indices] = 0
        return mask

    @classmethod
    def apply(cls, module: Any, name: str, amount: Any) -> Any:  # type: ignore[override]
        """Prune a parameter of a module from now on."""
        return super().apply(module, name, amount=amount)


class L1Unstructured(BasePruningMethod):
    """Prune the elements that are nearest to zero.

    Args:
      amount: a fraction in [0, 1], or how many.
    """

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: Any) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask with so many elements more at 0."""
        count = count_to_prune(self.amount, t.nelement())
        mask = default_mask.clone()
        if count != 0:
            mask.view(-1)[t.abs().view(-1).topk(count, largest=False).indices] = 0
        return mask

    @classmethod
    def apply(  # type: ignore[override]
        cls, module: Any, name: str, amount: Any, importance_scores: Any = None
    ) -> Any:
        """Prune a parameter of a module from now on."""
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """Prune where a given mask is 0.

    Args:
      mask: of the tensor's shape.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Any) -> None:
        self.mask = mask

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return both masks, one times the other."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match "
                f"self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Any, name: str, mask: Any) -> Any:  # type: ignore[override]
        """Prune a parameter of a module from now on."""
        return super().apply(module, name, mask=mask)


def identity(module: Any, name: str) -> Any:
    """Put a mask of ones on a parameter of `module`, and return the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Any, name: str, amount: Any) -> Any:
    """Prune elements of a parameter of `module` by chance, and return the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Any, name: str, amount: Any, importance_scores: Any = None) -> Any:
    """Prune the least elements of a parameter of `module`, and return the module.

    Args:
      name: of the parameter.
      amount: a fraction in [0, 1], or how many.
      importance_scores: what is compared instead of the elements.

    >>> import leafax
    >>> from leafax import nn
    >>> layer = nn.Linear(2, 2)
    >>> layer.weight.data = leafax.tensor([[1.0, -2.0], [3.0, -4.0]])
    >>> l1_unstructured(layer, "weight", amount=0.5).weight
    tensor([[ 0., -0.],
            [ 3., -4.]], grad_fn=<MulBackward0>)
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Any, name: str, amount: Any, dim: int) -> Any:
    """Prune channels of a parameter of `module` by chance, and return the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Any, name: str, amount: Any, n: Any, dim: int, importance_scores: Any = None
) -> Any:
    """Prune the channels of a parameter of `module` whose norm is least; return the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Any, pruning_method: Any, importance_scores: Any = None, **kwargs: Any
) -> None:
    """Prune elements of several parameters, chosen among all of them.

    Args:
      parameters: pairs of a module and a name.
      pruning_method: a class whose `PRUNING_TYPE` is "unstructured", called with `kwargs`.
      importance_scores: by such pairs, what is compared instead of the elements.

    Raises:
      TypeError: the method is another, or an argument is no iterable or no dict.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    found = [(module, name, getattr(module, name)) for module, name in parameters]
    values = parameters_to_vector([scores.get((m, name), t) for m, name, t in found])
    masks = parameters_to_vector([getattr(m, name + "_mask", ones_like(t)) for m, name, t in found])
    container = PruningContainer()
    method = pruning_method(**kwargs)
    container._tensor_name = method._tensor_name = "temp"
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for '
            f"the `pruning_method`. Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    container.add_pruning_method(method)
    mask, start = container.compute_mask(values, masks), 0
    for module, name, t in found:
        custom_from_mask(module, name, mask=mask[start : start + t.numel()].view_as(t))
        start += t.numel()


def custom_from_mask(module: Any, name: str, mask: Any) -> Any:
    """Prune a parameter of `module` where `mask` is 0, and return the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Any, name: str) -> Any:
    """Make a pruned parameter of `module` a plain one, zeros included; return the module.

    Raises:
      ValueError: it is not pruned.
    """
    for number, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[number]
            return module
    raise ValueError(
        f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed"
    )


def is_pruned(module: Any) -> bool:
    """Tell whether a parameter of `module`, or of one below it, is pruned."""
    return any(
        isinstance(hook, BasePruningMethod)
        for _, below in module.named_modules()
        for hook in below._forward_pre_hooks.values()
    )
