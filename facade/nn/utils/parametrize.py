"""PyTorch's `torch.nn.utils.parametrize`: tensors of modules that are computed from others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from ..._core.grad_modes import no_grad
from ..._tensor.tensor import Tensor
from ..modules.container import ModuleDict
from ..parameter import Parameter
from . import _parametrized_class
from ._parametrization_list import ParametrizationList as ParametrizationList
from ._parametrization_list import register_tensor

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized",
    "remove_parametrizations", "type_before_parametrizations",
    "transfer_parametrizations_and_params",
]  # fmt: skip

ParametrizationList.__module__ = __name__


@contextmanager
def cached() -> Iterator[None]:
    """Compute each parametrized tensor once, when it is first read, until the block ends."""
    _parametrized_class.begin_caching()
    try:
        yield
    finally:
        _parametrized_class.end_caching()


def register_parametrization(
    module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False
) -> Any:
    """Make `parametrization` compute a parameter or buffer of `module` from what it was.

    Where it has a method `right_inverse`, the original is what that returns, and assigning to the
    attribute calls it.

    Args:
      module: any module; its class changes.
      tensor_name: of the parameter or buffer.
      parametrization: a module, which goes behind those that are there.
      unsafe: whether it may change dtype and shape.

    Returns:
      `module`.

    Raises:
      ValueError: it changes dtype or shape, or there is no such tensor.

    >>> import leafax
    >>> from leafax import nn
    >>> class Symmetric(nn.Module):
    ...     def forward(self, x):
    ...         return x.triu() + x.triu(1).mT
    >>> layer = register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    >>> bool((layer.weight == layer.weight.T).all())
    True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_next(module, tensor_name, parametrization)
        there = module.parametrizations[tensor_name]
        there.append(parametrization)
        there.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        made = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _parametrized_class.inject_class(module)
            module.parametrizations = ModuleDict()
        _parametrized_class.inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = made
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a "
            f"parametrized element with name '{tensor_name}'"
        )
    return module


def _check_next(module: Any, name: str, parametrization: Any) -> None:
    """Refuse a further parametrization that changes dtype or shape."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(after, what) != getattr(before, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                "the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {getattr(before, what)}\n"
                f"parametrization(module.{name}).{what}: {getattr(after, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(
            f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}"
        )
    for what in ("dtype", "shape"):
        if getattr(back, what) != getattr(before, what):
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same "
                f"{what} as module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(back, what)}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a tensor of `module` is parametrized; any at all for None."""
    there = getattr(module, "parametrizations", None)
    if not isinstance(there, ModuleDict):
        return False
    return len(there) > 0 if tensor_name is None else tensor_name in there


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor of `module` a parameter or buffer again.

    Args:
      leave_parametrized: it keeps the value that was computed; else it is the original again,
        which there is if it is computed from one tensor.

    Returns:
      `module`.

    Raises:
      ValueError: it is not parametrized, or has several originals.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    there = module.parametrizations[tensor_name]
    if there.is_tensor:
        original = there.original
        if leave_parametrized:
            with no_grad():
                original.set_(getattr(module, tensor_name))
    elif leave_parametrized:
        original = getattr(module, tensor_name)
        if original.requires_grad:
            original = Parameter(original)
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor "
            "that is parametrized in terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    register_tensor(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that `module` had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Any, to_module: Any, tensor_name: str | None = None
) -> Any:
    """Give `to_module` the parametrizations of `from_module` and the tensors below them.

    Args:
      tensor_name: the only one to transfer; all that are parametrized for None. What `to_module`
        does not have is made.

    Returns:
      `to_module`.
    """
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        given = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        taken = to_module.parametrizations[name]
        if hasattr(given, "original"):
            taken.original = given.original
            continue
        number = 0
        while hasattr(given, f"original{number}"):
            setattr(taken, f"original{number}", getattr(given, f"original{number}"))
            number += 1
    return to_module


_end_at_callers(__name__)
