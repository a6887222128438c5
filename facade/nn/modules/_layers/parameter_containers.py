"""Modules that hold parameters: PyTorch's `ParameterList` and `ParameterDict`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...._core.handle import Handle
from ...._core.typename import typename
from ...parameter import Parameter
from ..module import Module
from .update_pairs import check_pairs


def _as_parameter(x: Any) -> Any:
    return Parameter(x) if isinstance(x, Handle) and not isinstance(x, Parameter) else x


def _line(key: Any, x: Any, kind: Any) -> str:
    """Return the printed line of one item; `kind` says the dtype or type of a tensor."""
    if not isinstance(x, Handle):
        return f"  ({key}): Object of type: {type(x).__name__}"
    t: Any = x
    size = "x".join(str(n) for n in t.size())
    where = f" ({t.device})" if t.device.type == "cuda" else ""
    what = "Parameter" if isinstance(t, Parameter) else "Tensor"
    return f"  ({key}): {what} containing: [{kind(t)} of size {size}{where}]"


class ParameterList(Module):
    """A list of parameters, which are its own; tensors become parameters.

    Args:
      values: what to begin with; what is no tensor is kept as it is.
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def _get_abs_string_index(self, idx: Any) -> str:
        idx = operator.index(idx)
        if not -len(self) <= idx < len(self):
            raise IndexError(f"index {idx} is out of range")
        return str(idx + len(self) if idx < 0 else idx)

    def __getitem__(self, idx: Any) -> Any:
        if not isinstance(idx, slice):
            return getattr(self, self._get_abs_string_index(idx))
        out = self.__class__()
        for i in range(*idx.indices(len(self))):
            out.append(self[i])
        return out

    def __setitem__(self, idx: Any, param: Any) -> None:
        setattr(self, self._get_abs_string_index(idx), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Any:
        return self.extend(parameters)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Any:
        """Add a parameter at the end; return the list."""
        place = len(self)
        self._size += 1
        self[place] = value
        return self

    def extend(self, values: Iterable[Any]) -> Any:
        """Add parameters at the end; return the list."""
        if not isinstance(values, Iterable) or isinstance(values, Handle):
            raise TypeError(
                "ParameterList.extend should be called with an iterable, but got "
                + type(values).__name__
            )
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """Return a line for each item."""
        return "\n".join(_line(k, x, lambda t: t.dtype) for k, x in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: it is no function."""
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """A dict of parameters, which are its own; tensors become parameters.

    Args:
      parameters: what to begin with, by name, or pairs; what is no tensor is kept as it is.
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        self._keys[key] = None  # by their order, before the key is looked at, as PyTorch does
        setattr(self, self._key_to_attr(key), _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def copy(self) -> ParameterDict:
        """Return another one with the same parameters."""
        return ParameterDict(OrderedDict((k, self[k]) for k in self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the parameter of this name, or add `default` and return that."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Take all parameters out."""
        for key in self._keys.copy():
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a parameter out, and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last parameter out, and return its name and itself."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the parameter of this name, or `default`."""
        return self[key] if key in self else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return another one with `default` for all names."""
        return ParameterDict((k, default) for k in keys)

    def keys(self) -> Any:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Any:
        """Return names and parameters."""
        return ((k, self[k]) for k in self._keys)

    def values(self) -> Any:
        """Return the parameters."""
        return (self[k] for k in self._keys)

    def update(self, parameters: Any) -> None:
        """Add parameters from a mapping (in the order of names), or from pairs."""
        if not isinstance(parameters, Iterable):
            raise TypeError(
                "ParametersDict.update should be called with an iterable of key/value pairs, but "
                "got " + type(parameters).__name__
            )
        if isinstance(parameters, (OrderedDict, ParameterDict)):
            for key, parameter in parameters.items():
                self[key] = parameter
            return
        if isinstance(parameters, Mapping):
            for key, parameter in sorted(parameters.items()):
                self[key] = parameter
            return
        for key, parameter in check_pairs(parameters, "ParameterDict"):
            self[key] = parameter

    def extra_repr(self) -> str:
        """Return a line for each item."""
        return "\n".join(_line(k, x, typename) for k, x in self.items())

    def __call__(self, input: Any) -> Any:
        """Refuse: it is no function."""
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        copy = self.copy()
        copy.update(other)
        return copy

    def __ror__(self, other: Any) -> ParameterDict:
        copy: ParameterDict = other.copy()
        copy.update(self)
        return copy

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self
