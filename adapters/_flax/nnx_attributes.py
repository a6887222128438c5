"""Attributes and items of nnx modules: submodules come as models, variables as tensors."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from flax import linen, nnx

import leafax

from .._models.select import near
from .nnx_edits import READS, VIEWS, each, edits
from .nnx_leaves import Slot
from .nnx_modes import Modes

ARRAYS = (leafax.Tensor, jax.Array, np.ndarray)


class Attributes(Modes):
    """A model whose attributes and items are those of its module."""

    @abstractmethod
    def _part(self, module: Any) -> Any:
        """Return the model of a submodule, which holds tensors already."""

    @abstractmethod
    def _hold(self, node: Any) -> Any:
        """Return a copy of a module or variable whose variables hold tensors."""

    @abstractmethod
    def _tensor(self, leaf: Any, parameter: bool) -> Any:
        """Return the tensor that is held in place of a leaf."""

    @abstractmethod
    def _run(self, method: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Record a call of one of the module's methods."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            value = getattr(self._module, name)
        except AttributeError:
            known = [n for n in vars(self._module) if not n.startswith("_")]
            raise AttributeError(
                f"`{self._name()}` has no attribute `{name}`; the nearest are {near(name, known)}"
            ) from None
        if callable(value) and getattr(value, "__self__", None) is self._module:
            run = self._edit if edits(self._module, name) else self._named_method
            return functools.partial(run, name)
        return self._out(value)

    def _named_method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._run(name, args, kwargs)

    def _edit(self, name: str, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = self._in(args), self._in(kwargs)
        out: Any = getattr(self._module, name)(*args, **kwargs)
        if name not in READS:
            self._shared.restructured()
        return self._out([*out] if name in VIEWS else out)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
            return
        if hasattr(type(self), name):
            way = "train()` or `model.eval()" if name == "training" else f"{name}(...)"
            raise AttributeError(
                f"`{self._name()}.{name}` cannot be assigned: it is leafax's own; call "
                f"`model.{way}`"
            )
        if isinstance(value, linen.Module):
            raise TypeError(
                f"`{self._name()}.{name}` cannot be a linen module, got `{type(value).__name__}`: "
                f"assign an nnx module"
            )
        old = getattr(self._module, name, None)
        if isinstance(value, ARRAYS) and isinstance(old, nnx.Variable):
            trains = self._shared.rule(type(old)) == "trainable"
            old.set_raw_value(self._tensor(value, trains))
        else:
            setattr(self._module, name, self._in(value))
        self._shared.restructured()

    def __dir__(self) -> list[str]:
        mine = [n for n in vars(self._module) if not n.startswith("_")]
        return sorted({*super().__dir__(), *mine})

    def __delattr__(self, name: str) -> None:
        if name.startswith("_"):
            object.__delattr__(self, name)
            return
        delattr(self._module, name)
        self._shared.restructured()

    def __getitem__(self, index: Any) -> Any:
        return self._out(self._module[index])

    def __setitem__(self, index: Any, value: Any) -> None:
        self._module[index] = self._in(value)
        self._shared.restructured()

    def __delitem__(self, index: Any) -> None:
        del self._module[index]
        self._shared.restructured()

    def __contains__(self, value: Any) -> bool:
        return self._in(value) in self._module

    def __len__(self) -> int:
        return len(self._module)

    def __bool__(self) -> bool:
        return True  # a module without layers too

    def __iter__(self) -> Iterator[Any]:
        return (self._out(value) for value in self._module)

    def _in(self, value: Any) -> Any:
        """Return what the module is given for a user's value: tensors held, in containers too."""
        if isinstance(value, Attributes):
            self._shared.keys.update(value._shared.keys)
            return value._module
        if isinstance(value, (nnx.Pytree, nnx.Variable)):
            held = self._hold(value)
            if isinstance(held, nnx.Module):
                self._tell_untold(held)
            return held
        if isinstance(value, ARRAYS):
            return Slot.of(self._tensor(value, False))
        return each(self._in, value)

    def _out(self, value: Any) -> Any:
        """Return what the user is given for a value of the module: models and tensors."""
        if isinstance(value, nnx.Variable):
            return value.get_raw_value()
        if isinstance(value, Slot):
            return value.tensor
        if isinstance(value, nnx.Pytree):
            return self._part(value)
        return each(self._out, value)
