"""Ways of pruning: what masks a tensor of a module before each call."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

from ..._ops.creation.factories import ones_like


class BasePruningMethod(ABC):
    """Set elements of a tensor of a module to zero, before each call.

    Subclasses define `compute_mask` and `PRUNING_TYPE`: "unstructured", "structured" or "global".
    The tensor is kept as `name_orig`, the mask as the buffer `name_mask`.
    """

    _tensor_name: str

    def __call__(self, module: Any, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return a mask, 0 where an element is pruned.

        Args:
          t: how important each element is.
          default_mask: what is pruned already, of the same shape.
        """

    def apply_mask(self, module: Any) -> Any:
        """Return the masked tensor of a module."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask = getattr(module, self._tensor_name + "_mask")
        original = getattr(module, self._tensor_name + "_orig")
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def apply(
        cls, module: Any, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> Any:
        """Prune a tensor of a module, on top of what is pruned, from now on.

        Args:
          name: of the parameter.
          args, kwargs: of this class.
          importance_scores: what the mask is computed from; the tensor itself if None.

        Returns:
          The method, or the `PruningContainer` that it is put into.
        """
        method = _joined(cls(*args, **kwargs), module, name)
        original = getattr(module, name)
        if importance_scores is None:
            importance_scores = original
        elif importance_scores.shape != original.shape:
            raise AssertionError(
                "importance_scores should have the same shape as parameter "
                f"{name} of {module}, got {importance_scores.shape} vs {original.shape}"
            )
        is_first = not isinstance(method, PruningContainer)
        if is_first:
            module.register_parameter(name + "_orig", original)
            del module._parameters[name]
            mask = ones_like(original)
        else:
            mask = getattr(module, name + "_mask").detach().clone()
        try:
            mask = method.compute_mask(importance_scores, default_mask=mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if is_first:
                module.register_parameter(name, getattr(module, name + "_orig"))
                del module._parameters[name + "_orig"]
            raise
        return method

    def prune(self, t: Any, default_mask: Any = None, importance_scores: Any = None) -> Any:
        """Return a pruned copy of a tensor, which belongs to no module.

        Args:
          default_mask: what is pruned already; nothing if None.
          importance_scores: what the mask is computed from; `t` if None.
        """
        if importance_scores is None:
            importance_scores = t
        elif importance_scores.shape != t.shape:
            raise AssertionError(
                "importance_scores should have the same shape as tensor t, "
                f"got {importance_scores.shape} vs {t.shape}"
            )
        if default_mask is None:
            default_mask = ones_like(t)
        return t * self.compute_mask(importance_scores, default_mask=default_mask)

    def remove(self, module: Any) -> None:
        """Make the masked tensor the parameter again; what was pruned stays zero."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        pruned = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = pruned.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


def _joined(method: Any, module: Any, name: str) -> Any:
    """Take the method that a tensor has off its module, and put both into a container."""
    hooks = module._forward_pre_hooks
    found = [
        number
        for number, hook in hooks.items()
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name
    ]
    if len(found) > 1:
        raise AssertionError(
            "Avoid adding multiple pruning hooks to the "
            f"same tensor {name} of module {module}. Use a PruningContainer."
        )
    method._tensor_name = name
    if not found:
        return method
    old = hooks.pop(found[0])
    container = old if isinstance(old, PruningContainer) else PruningContainer(old)
    container.add_pruning_method(method)
    return container


class PruningContainer(BasePruningMethod):
    """Hold the methods that prune one tensor, in their order.

    Args:
      args: the methods.
    """

    def __init__(self, *args: Any) -> None:
        self._pruning_methods: tuple[Any, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: Any) -> None:
        """Add a method for the same tensor.

        Raises:
          TypeError: it is no pruning method.
          ValueError: it is for another tensor.
        """
        if method is not None:
            if not isinstance(method, BasePruningMethod):
                raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
            if self._tensor_name != method._tensor_name:
                raise ValueError(
                    "Can only add pruning methods acting on the parameter named "
                    f"'{self._tensor_name}' to PruningContainer {self}."
                    f" Found '{method._tensor_name}'"
                )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: Any) -> Any:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Any, default_mask: Any) -> Any:
        """Return the mask after the last method has pruned what the others left."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(dtype=t.dtype)
        where = _left(method, t, default_mask)
        made = method.compute_mask(t[where], default_mask=default_mask[where])
        mask[where] = made.to(dtype=mask.dtype)
        return mask


def _left(method: Any, t: Any, mask: Any) -> Any:
    """Return the index of what a method may prune."""
    count = t.dim()
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * count
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    dim = count + method.dim if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {count}")
    where: list[Any] = [slice(None)] * count
    where[dim] = mask.sum(dim=[d for d in range(count) if d != dim]) != 0
    return tuple(where)
