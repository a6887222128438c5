"""Base class of lists of modules."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from ..module import Module


class Indexed(Module):
    """A module whose children are named by their places."""

    def _get_abs_string_index(self, idx: Any) -> str:
        idx = operator.index(idx)
        if not -len(self) <= idx < len(self):
            raise IndexError(f"index {idx} is out of range")
        return str(idx + len(self) if idx < 0 else idx)

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def __getitem__(self, idx: Any) -> Any:
        raise NotImplementedError

    def __delitem__(self, idx: Any) -> None:
        raise NotImplementedError

    def append(self, module: Any) -> Any:
        """Add a module at the end; return this one."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: Any) -> Any:
        """Take out the module at a place, or those of a slice, and return it."""
        module = self[key]
        del self[key]
        return module

    def _make_room(self, index: int, module: Any) -> None:
        for i in range(len(self._modules), index, -1):
            self._modules[str(i)] = self._modules[str(i - 1)]
        self._modules[str(index)] = module


def in_order(modules: Iterable[Any]) -> OrderedDict[str, Any]:
    """Name modules by their places."""
    return OrderedDict((str(i), module) for i, module in enumerate(modules))
