"""Registering parameters, buffers and children of a module by name, and finding them by path."""

from __future__ import annotations

from typing import Any

from ...._core.handle import Handle
from ...._core.typename import typename
from ...._host.rule import leave_to_programs
from ...parameter import Parameter
from .attributes import Attributes, Base, as_module


class Registering(Base):
    """Methods that add members to a module and get them by their dotted path."""

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a buffer: state that is no parameter.

        Args:
          name: of the attribute.
          tensor: the buffer; None is left out of the `state_dict()`.
          persistent: whether it is part of the `state_dict()`.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, name, "buffer", self._buffers)
        if tensor is not None and not (
            isinstance(tensor, Handle) or hasattr(tensor, "__torch_function__")
        ):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        if isinstance(tensor, Handle):
            leave_to_programs(tensor)  # to count batches on the host would take longer
        self._buffers[name] = self._run_registration_hooks("buffer", name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter; None stands for one that is left out."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, name, "parameter", self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param.grad_fn:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, "
                "compute the value in the forward() method."
            )
        self._parameters[name] = self._run_registration_hooks("parameter", name, param)

    def add_module(self, name: str, module: Any) -> None:
        """Add a child; None stands for one that is left out."""
        module = as_module(module)
        if not isinstance(module, Attributes) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')
        self._modules[name] = self._run_registration_hooks("module", name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Add a child, as `add_module` does."""
        self.add_module(name, module)

    def get_submodule(self, target: str) -> Any:
        """Return the module at a dotted path; the module itself for an empty one.

        Raises:
          AttributeError: if there is none, or something else is there.
        """
        found: Any = self
        for name in target.split(".") if target else ():
            found = _attribute(found, name)
            _check_module(found, name)
        return found

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module at a dotted path whose parent exists.

        Args:
          strict: there must be one to replace.

        Raises:
          ValueError: for an empty path, or if `module` is no module.
          AttributeError: if the parent does not exist, or something else is there.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Attributes):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict or hasattr(parent, name):
            _check_module(_attribute(parent, name), name)
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Any:
        """Return the parameter at a dotted path.

        Raises:
          AttributeError: if there is none, or something else is there.
        """
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        found = parent._parameters.get(name)  # of a class that computes with it, not what it reads
        if found is None:
            found = _attribute(parent, name)
        if not isinstance(found, Parameter):
            raise AttributeError("`" + name + "` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """Return the buffer at a dotted path.

        Raises:
          AttributeError: if there is none, or something else is there.
        """
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        found = _attribute(parent, name)
        if name not in parent._buffers:
            raise AttributeError("`" + name + "` is not a buffer")
        return found


def _check_name(module: Any, name: Any, kind: str, members: dict[str, Any]) -> None:
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if name not in members and hasattr(module, name):
        raise KeyError(f"attribute '{name}' already exists")


def _attribute(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise AttributeError(module._get_name() + " has no attribute `" + name + "`")
    return getattr(module, name)


def _check_module(found: Any, name: str) -> None:
    if not isinstance(found, Attributes):
        raise AttributeError("`" + name + "` is not an nn.Module")
