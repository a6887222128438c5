"""Modules that hold modules: PyTorch's `Sequential`, `ModuleList`, `ModuleDict`."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from ._layers.indexed import Indexed, in_order
from ._layers.parameter_containers import ParameterDict as ParameterDict
from ._layers.parameter_containers import ParameterList as ParameterList
from ._layers.update_pairs import check_pairs
from .module import Module

__all__ = [
    "Container", "Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict",
]  # fmt: skip

_DEPRECATED = (
    "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. "
    "Subclass that instead."
)


class Container(Module):
    """A module with the given children; deprecated by PyTorch."""

    def __init__(self, **kwargs: Any) -> None:
        if type(self) is Container:
            warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        warnings.warn(_DEPRECATED, FutureWarning, stacklevel=2)
        super().__init_subclass__(**kwargs)


class Sequential(Indexed):
    """Calls its modules one after the other.

    Args:
      args: the modules, or one `OrderedDict` of them by name.

    >>> import leafax
    >>> from leafax import nn
    >>> class Twice(nn.Module):
    ...     def forward(self, x): return 2 * x
    >>> nn.Sequential(Twice(), Twice())(leafax.ones(1))
    tensor([4.])
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        named: Any = enumerate(args)
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            named = args[0].items()
        for name, module in named:
            self.add_module(str(name) if isinstance(name, int) else name, module)

    def _get_item_by_idx(self, iterator: Iterable[Any], idx: Any) -> Any:
        size = len(self)
        idx = operator.index(idx)
        if not -size <= idx < size:
            raise IndexError(f"index {idx} is out of range")
        return next(islice(iterator, idx % size, None))

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(OrderedDict(list(self._modules.items())[idx]))
        return self._get_item_by_idx(self._modules.values(), idx)

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self._get_item_by_idx(self._modules.keys(), idx), module)

    def __delitem__(self, idx: Any) -> None:
        names = list(self._modules)
        for name in names[idx] if isinstance(idx, slice) else [self._get_item_by_idx(names, idx)]:
            delattr(self, name)
        self._modules = in_order(self._modules.values())

    def __add__(self, other: Any) -> Any:
        _check_sequential(other)
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Any:
        _check_sequential(other)
        offset = len(self)
        for i, module in enumerate(other):
            self.add_module(str(i + offset), module)
        return self

    def __mul__(self, other: int) -> Any:
        self._check_factor(other)
        return Sequential(*[module for _ in range(other) for module in self])

    def __rmul__(self, other: int) -> Any:
        return self.__mul__(other)

    def __imul__(self, other: int) -> Any:
        self._check_factor(other)
        own = [self._modules[str(i)] for i in range(len(self))] if other > 1 else []
        for module in own * (other - 1):
            self.append(module)
        return self

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def forward(self, input: Any) -> Any:
        """Call the modules, each with what the one before returned."""
        for module in self._modules.values():
            input = module(input)
        return input

    def insert(self, index: int, module: Any) -> Any:
        """Put a module before the one at `index`; return this one."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self._modules)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index}")
        self._make_room(index + n if index < 0 else index, module)
        return self

    def extend(self, sequential: Iterable[Any]) -> Any:
        """Add modules at the end; return this one."""
        for module in sequential:
            self.append(module)
        return self


def _check_sequential(other: Any) -> None:
    if not isinstance(other, Sequential):
        raise ValueError(
            "add operator supports only objects of Sequential class, but "
            f"{str(type(other))} is given."
        )


class ModuleList(Indexed):
    """A list of modules, which are children of it.

    Args:
      modules: the modules to begin with.
    """

    def __init__(self, modules: Iterable[Any] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, slice):
            return self.__class__(list(self._modules.values())[idx])
        return self._modules[self._get_abs_string_index(idx)]

    def __setitem__(self, idx: int, module: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), module)

    def __delitem__(self, idx: Any) -> None:
        if isinstance(idx, slice):
            for k in range(len(self._modules))[idx]:
                delattr(self, str(k))
        else:
            delattr(self, self._get_abs_string_index(idx))
        self._modules = in_order(self._modules.values())

    def __iadd__(self, modules: Iterable[Any]) -> Any:
        return self.extend(modules)

    def __add__(self, other: Iterable[Any]) -> Any:
        combined = ModuleList()
        for i, module in enumerate(chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def __repr__(self) -> str:
        texts = [repr(item) for item in self]
        if not texts:
            return self._get_name() + "()"
        runs: list[list[Any]] = []  # first place, number and text of items that print the same
        for i, text in enumerate(texts):
            if runs and runs[-1][2] == text:
                runs[-1][1] += 1
            else:
                runs.append([i, 1, text])
        lines = [
            _indent(f"({i}): {text}" if n == 1 else f"({i}-{i + n - 1}): {n} x {text}")
            for i, n, text in runs
        ]
        return self._get_name() + "(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index: int, module: Any) -> None:
        """Put a module before the one at `index`."""
        self._make_room(index, module)

    def extend(self, modules: Iterable[Any]) -> Any:
        """Add modules at the end; return the list."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleList.extend should be called with an iterable, but got "
                + type(modules).__name__
            )
        offset = len(self)
        for i, module in enumerate(modules):
            self.add_module(str(offset + i), module)
        return self


def _indent(text: str) -> str:
    return "\n".join(line if not i else "  " + line for i, line in enumerate(text.split("\n")))


class ModuleDict(Module):
    """A dict of modules, which are children of it.

    Args:
      modules: the modules to begin with, by name, or pairs.
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Any) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Take a module out, and return it."""
        module = self[key]
        del self[key]
        return module

    def keys(self) -> Any:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Any:
        """Return names and modules."""
        return self._modules.items()

    def values(self) -> Any:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, or from pairs of a name and a module."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                "ModuleDict.update should be called with an iterable of key/value pairs, but got "
                + type(modules).__name__
            )
        if isinstance(modules, (ModuleDict, Mapping)):
            for key, module in modules.items():
                self[key] = module
            return
        for key, module in check_pairs(modules, "ModuleDict"):
            self[key] = module
