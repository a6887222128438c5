"""Tensors without a shape so far: what an uninitialized parameter or buffer lets be done."""

from __future__ import annotations

from typing import Any

from .._core.handle import Handle
from .._ops.creation import factories
from .._tensor.tensor import Tensor

_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
    "in `load_state_dict` when trying to load an uninitialized parameter into an initialized one. "
    "Call `forward` to initialize the parameters before accessing their attributes."
)


def _passed_on(name: str) -> Any:
    """Make a method that is passed on to the empty tensor that knows dtype and device."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = getattr(self._blank_data, name)(*args, **kwargs)
        if not isinstance(made, Tensor):
            return made
        out = type(self)._blank(made, self.requires_grad)
        out.__dict__.update({k: v for k, v in self.__dict__.items() if k not in out.__dict__})
        return out

    method.__name__ = name
    method.__doc__ = f"Do what `Tensor.{name}` does."
    return method


class UninitializedTensorMixin:
    """A tensor that knows its dtype and device, and refuses all that asks for values or a shape.

    It has none of the recorder's fields: `_v`, which every op asks an operand for, refuses.
    """

    cls_to_become: Any
    _allowed_methods = (
        "size is_complex is_floating_point half float double bfloat16 char short int long cuda cpu "
        "to get_device type"
    ).split()

    @classmethod
    def _blank(cls, data: Any, requires_grad: bool) -> Any:
        made: Any = object.__new__(cls)
        made.__dict__["_blank_data"] = data
        made.__dict__["_blank_requires_grad"] = requires_grad
        return made

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a parameter or tensor of this shape, whose values are not set.

        Args:
          shape: a tuple of ints.
          device, dtype: those of this one if None.
        """
        blank = self.data
        if device is None:
            device = blank.device
        if dtype is None:
            dtype = blank.dtype
        made = factories.empty(shape, device=device, dtype=dtype)
        if self.requires_grad:
            made.requires_grad_()
        fields = self.__dict__
        del fields["_blank_data"], fields["_blank_requires_grad"]
        kind = self.cls_to_become
        _become(self, made)  # another class, until the next line
        self.__class__ = kind

    @property
    def data(self) -> Any:
        """Return an empty tensor with the dtype and device."""
        return self.__dict__["_blank_data"]

    @data.setter
    def data(self, other: Any) -> None:
        self.__dict__["_blank_data"] = getattr(other, "data", other)

    @property
    def requires_grad(self) -> bool:
        """Tell whether gradients will be computed for it."""
        return bool(self.__dict__["_blank_requires_grad"])

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.__dict__["_blank_requires_grad"] = bool(value)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether gradients will be computed for it, and return it."""
        self.__dict__["_blank_requires_grad"] = bool(requires_grad)
        return self

    @property
    def grad(self) -> Any:
        """None: nothing was computed of it."""
        return None

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            raise _refusal(self, "grad")

    grad_fn = property(lambda self: None)
    is_leaf = property(lambda self: True)
    is_meta = property(lambda self: False)
    dtype = property(lambda self: self.data.dtype)
    device = property(lambda self: self.data.device)
    is_cuda = property(lambda self: self.data.is_cuda)

    @property
    def shape(self) -> Any:
        """Refuse: there is none."""
        raise RuntimeError(_NO_SHAPE)

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        """Take over nothing from another uninitialized one; values are refused."""
        if isinstance(other, UninitializedTensorMixin):
            return self
        raise _refusal(self, "copy_")

    def share_memory_(self) -> Any:
        """Refuse: there is no memory to share."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to "
            "initialize the parameters before calling `module.share_memory()`."
        )

    @property
    def _v(self) -> Any:
        raise _refusal(self, "an operation")

    @_v.setter
    def _v(self, value: Any) -> None:
        raise _refusal(self, "an operation")

    _trace = property(lambda self: None)

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__class__, (self.requires_grad,)


for _name in UninitializedTensorMixin._allowed_methods:
    setattr(UninitializedTensorMixin, _name, _passed_on(_name))


def _refusal(t: Any, what: str) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in {what}. This error happens when you are "
        "using a `LazyModule` or explicitly manipulating "
        f"`torch.nn.parameter.{type(t).__name__}` objects. When using LazyModules Call `forward` "
        "with a dummy batch to initialize the parameters before calling torch functions"
    )


def _become(t: Any, made: Handle) -> None:
    """Turn `t` into `made`, a tensor at rest that nobody else will hold."""
    t.__class__ = Tensor
    t.__dict__.update(made.__dict__)
