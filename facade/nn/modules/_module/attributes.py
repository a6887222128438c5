"""Attributes of a module: assigned parameters, buffers and modules are registered."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ...._core.handle import Handle
from ...._core.typename import typename
from ...parameter import Buffer, Parameter

own_layers: set[type] = set()  # which have no properties, and no `__getattr__` of their own


def as_module(value: Any) -> Any:
    """Return a module for a model of `leafax.adapters`, anything else as it is."""
    make = getattr(type(value), "__as_nn_module__", None)
    return value if make is None else make(value)


def parameter_of(module: Any, name: str) -> Any:
    """Return `module.name`, which is most likely a parameter.

    Python looks for attributes everywhere else first and raises an error before it asks
    `__getattr__`, which takes four times as long. Classes that are made of the layers may have a
    property of that name.
    """
    if type(module) in own_layers:
        members = module._parameters
        if name in members:
            return members[name]
    return getattr(module, name)


def buffer_of(module: Any, name: str) -> Any:
    """Return `module.name`, which is most likely a buffer, as `parameter_of` does a parameter."""
    if type(module) in own_layers:
        members = module._buffers
        if name in members:
            return members[name]
    return getattr(module, name)


class Base:
    """The fields of a module."""

    training: bool
    _version: int
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _modules: dict[str, Any]

    if TYPE_CHECKING:  # of `Module`, whose file holds the hooks of all modules

        def _run_registration_hooks(self, kind: str, name: str, given: Any) -> Any: ...


class Attributes(Base):
    """Reading, setting and deleting a module's attributes."""

    def __getattr__(self, name: str) -> Any:
        fields = self.__dict__
        if "_parameters" in fields:
            found = fields["_parameters"]
            if name in found:
                return found[name]
        if "_buffers" in fields:
            found = fields["_buffers"]
            if name in found:
                return found[name]
        if "_modules" in fields:
            found = fields["_modules"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        fields: dict[str, Any] = self.__dict__
        params = fields.get("_parameters")
        value = as_module(value)
        if isinstance(value, Parameter):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, fields, self._buffers, self._modules)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Attributes):
            if "_modules" not in fields:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, fields, self._parameters, self._buffers)
            fields["_modules"][name] = self._run_registration_hooks("module", name, value)
        elif name in fields.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            fields["_modules"][name] = self._run_registration_hooks("module", name, value)
        elif name in fields.get("_buffers", ()) or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _forget(self, name: str, *members: dict[str, Any]) -> None:
        for those in members:
            those.pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not (
            isinstance(value, Handle) or hasattr(value, "__torch_function__")
        ):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' "
                "(torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        register = self.register_buffer
        if "persistent" in inspect.signature(register).parameters:
            register(name, value, persistent)
        elif persistent:
            register(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements "
                "register_buffer() without the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            super().__delattr__(name)
