"""PyTorch's `torch.nn.parameter`: tensors that modules register when they are assigned."""

from __future__ import annotations

from typing import Any

from .._core.handle import Handle, users_attributes
from .._core.overrides.state import _disabled_torch_function_impl
from .._dispatch import record as _record
from .._ops.creation import factories as _factories
from .._ops.creation import legacy_constructors as _legacy_constructors
from .._ops.creation.written_at_once import copy_of
from .._tensor.copying import _rebuild, pickled_array
from .._tensor.tensor import Tensor
from ._lazy_tensor import UninitializedTensorMixin as UninitializedTensorMixin


class _Meta(type(Tensor)):  # type: ignore[misc]
    """Takes tensors that are marked as parameters or buffers for instances, as PyTorch does."""

    _mark: str

    def __instancecheck__(cls, instance: Any) -> bool:
        if type(instance) is cls:
            return True
        mark = cls.__dict__.get("_mark")
        if mark is not None and isinstance(instance, Handle) and getattr(instance, mark, False):
            return True
        return super().__instancecheck__(instance)  # type: ignore[no-any-return]


def _check_fields(fields: dict[str, Any]) -> None:
    """Refuse keywords that are no fields of tensors.

    Packages make a parameter like another with what is in that one's `__dict__`; in PyTorch that is
    what users set.
    """
    for name in fields:
        if name not in ("_v", "_trace") and not hasattr(Handle, name):
            raise TypeError(f"Parameter.__new__() got an unexpected keyword argument '{name}'")


_ParameterMeta = _BufferMeta = _Meta  # PyTorch's names


class Parameter(Tensor, metaclass=_Meta):
    """A tensor that modules take for one of their parameters when it is assigned to them.

    Args:
      data: the values, whose memory it shares; none stands for a tensor without elements.
      requires_grad: whether gradients are computed for it, also in `no_grad()`.

    >>> from leafax.nn import Parameter
    >>> import leafax
    >>> Parameter(leafax.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __module__ = "leafax.nn.parameter"
    __torch_function__ = _disabled_torch_function_impl
    _mark = "_is_param"

    def __new__(cls, data: Any = None, requires_grad: bool = True, **fields: Any) -> Any:
        if fields:
            _check_fields(fields)
        if data is None:
            data = _factories.empty(0)
        kind = type(data)
        if kind is Tensor or kind is Parameter:
            return _made(cls, data, requires_grad)
        made = data.detach()
        if type(made) is Tensor and isinstance(data, Tensor):  # its class defines no `detach`
            made = _legacy_constructors.of_class(made, kind)
            made.__dict__.update(users_attributes(data))
        made.requires_grad_(requires_grad)
        if type(made) is not kind:
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {kind.__name__} requires that "
                "detach() returns an instance of the same type, but return type "
                f"{type(made).__name__} was found instead. To use the type as a Parameter, please "
                "correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        made._is_param = True
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(copy_of(self), self.requires_grad)
        memo[id(self)] = made
        return made

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        array = pickled_array(self)
        strides = None if self.is_contiguous() else self.stride()
        given = type(self), array, self.requires_grad, strides
        return _rebuild_parameter, given, users_attributes(self) or None


class Buffer(Tensor, metaclass=_Meta):
    """A tensor that modules take for one of their buffers when it is assigned to them.

    Args:
      data: the values, whose memory it shares.
      persistent: whether it is part of the module's `state_dict()`.
    """

    __module__ = "leafax.nn.parameter"
    __torch_function__ = _disabled_torch_function_impl
    _mark = "_is_buffer"

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = _factories.empty(0)
        requires_grad = data.requires_grad
        made = data.detach().requires_grad_(requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; `materialize` makes it a `Parameter`.

    Args:
      requires_grad: whether gradients are computed for it once it is materialized.
      device, dtype: of the parameter that it becomes.
    """

    __module__ = "leafax.nn.parameter"
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return cls._blank(_factories.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = made
        return made


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; `materialize` makes it a tensor.

    Args:
      requires_grad: whether gradients are computed for it once it is materialized.
      device, dtype: of the tensor that it becomes.
      persistent: whether it is part of the module's `state_dict()`.
    """

    __module__ = "leafax.nn.parameter"
    cls_to_become = Tensor

    def __new__(
        cls,
        requires_grad: bool = False,
        device: Any = None,
        dtype: Any = None,
        persistent: bool = True,
    ) -> Any:
        made = cls._blank(_factories.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        made = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        memo[id(self)] = made
        return made


def is_lazy(param: Any) -> bool:
    """Tell whether `param` is an uninitialized parameter or buffer."""
    return isinstance(param, UninitializedTensorMixin)


def _made(cls: Any, data: Any, requires_grad: bool) -> Any:
    """Return a parameter of class `cls` on the memory of `data`."""
    made = _legacy_constructors.of_class(data.detach(), cls)
    if requires_grad:
        if not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made._set_requires_grad(True)
    return made


def _rebuild_parameter(
    cls: Any, array: Any, requires_grad: bool, strides: tuple[int, ...] | None
) -> Any:
    return cls(_rebuild(array, False, strides), requires_grad)


_record.register_parameters(Parameter)
