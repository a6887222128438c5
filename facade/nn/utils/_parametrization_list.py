"""The parametrizations of one tensor, and what it is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.grad_modes import no_grad
from ..._tensor.tensor import Tensor
from ..modules.container import ModuleList
from ..parameter import Parameter

_NO_TENSORS = "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "


def register_tensor(module: Any, name: str, tensor: Any) -> None:
    """Make a tensor a parameter or a buffer of a module, by what it is."""
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


class ParametrizationList(ModuleList):
    """Compute a tensor of a module from others, by one module after the other.

    It is `module.parametrizations[name]`. What it starts from is its `original`, or `original0`,
    `original1`, ... where the first module's `right_inverse` returns a sequence.

    Args:
      modules: the parametrizations, one or more.
      original: the parameter or buffer that is parametrized.
      unsafe: whether dtype and shape may change.

    Raises:
      ValueError: there is no module, or they do not fit the tensor.
    """

    original: Any
    unsafe: bool

    def __init__(self, modules: Sequence[Any], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = self._inverted(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(f"{_NO_TENSORS}Got {type(new).__name__}")
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            self._hold(original, new)
        else:
            self._hold_several(original, new)
        if not unsafe:
            _check_result(self(), shape, dtype)

    def _inverted(self, value: Any) -> Any:
        """Undo the parametrizations as far as they say how."""
        with no_grad():
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        pass
        return value

    def _hold(self, original: Any, new: Any) -> None:
        for what in ("dtype", "device"):
            before, after = getattr(original, what), getattr(new, what)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {before}\n"
                    f"right_inverse(original).{what}: {after}"
                )
        with no_grad():
            original.set_(new)  # the same parameter, which an optimizer may hold
        register_tensor(self, "original", original)

    def _hold_several(self, original: Any, new: Sequence[Any]) -> None:
        for i, x in enumerate(new):
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"{_NO_TENSORS}Got element {i} of the sequence with type {type(x).__name__}."
                )
            if isinstance(original, Parameter):
                x = Parameter(x, original.requires_grad)
            x.requires_grad_(original.requires_grad)
            register_tensor(self, f"original{i}", x)

    def right_inverse(self, value: Any) -> None:
        """Set what the tensor is computed from so that it becomes `value`, if that is possible.

        Raises:
          RuntimeError: a parametrization has no `right_inverse`.
          ValueError: it returns what does not fit.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(
                        f"`right_inverse` should return a tensor. Got {type(value).__name__}"
                    )
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                        f"while `original` has dtype {self.original.dtype}"
                    )
                self.original.set_(value)
            else:
                self._set_several(value)

    def _set_several(self, value: Any) -> None:
        if not isinstance(value, Sequence):
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
            )
        if len(value) != self.ntensors:
            raise ValueError(
                "'right_inverse' must return a sequence of tensors of length "
                f"{self.ntensors}. Got a sequence of length {len(value)}."
            )
        for i, x in enumerate(value):
            original = getattr(self, f"original{i}")
            if not isinstance(x, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {i} of type {type(x).__name__}."
                )
            if original.dtype != x.dtype:
                raise ValueError(
                    f"Tensor {i} returned by `right_inverse` has dtype {x.dtype} "
                    f"while `original{i}` has dtype {original.dtype}"
                )
            original.set_(x)

    def forward(self) -> Any:
        """Compute the tensor."""
        if self.is_tensor:
            x = self[0](self.original)
        else:
            x = self[0](*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        following = 1
        while hasattr(self, str(following)):
            x = self[following](x)
            following += 1
        return x


def _check_result(made: Any, shape: Any, dtype: Any) -> None:
    if not isinstance(made, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(made).__name__}.")
    for what, before, after in (("dtype", dtype, made.dtype), ("shape", shape, made.shape)):
        if before != after:
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless "
                "`unsafe` flag is enabled.\n"
                f"unparametrized {what}: {before}\n"
                f"parametrized {what}: {after}"
            )
