"""PyTorch's `torch.utils.weak`: weak references to tensors, and dictionaries with tensors as keys.

Tensors are told apart by identity there: `==` between them is a tensor.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

from .._core.handle import Handle

WeakRef = weakref.ref


class WeakIdRef(weakref.ref[Any]):
    """A weak reference that is equal to those of the same object, and hashes by its identity."""

    __slots__ = ("_id",)
    _id: int

    def __new__(cls, key: Any, callback: Any = None) -> WeakIdRef:
        """Refer to an object; `callback` is called with the reference when it is gone."""
        made = super().__new__(cls, key, callback)
        made._id = id(key)
        return made

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        # By the objects: a later one may have the number of one that is gone.
        mine = self()
        return self is other or (
            mine is not None and isinstance(other, WeakIdRef) and mine is other()
        )


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """A dictionary that goes by its keys' identity and forgets a key that nobody else holds.

    Args:
      dict: a mapping, or pairs, that it begins with.
      ref_type: the class of the references.

    >>> import leafax
    >>> key = leafax.ones(2)
    >>> seen = WeakIdKeyDictionary({key: "first"})
    >>> seen[key], leafax.ones(2) in seen
    ('first', False)
    >>> del key
    >>> len(seen)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        own = weakref.ref(self)

        def forget(key: Any) -> None:
            found = own()
            if found is not None:
                found.data.pop(key, None)

        self._remove: Callable[[Any], None] = forget
        if dict is not None:
            self.update(dict)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self.ref_type(key, self._remove)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:  # of what has no weak references
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        # Over a list: keys may go while the caller walks.
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return _by_identity(self) == _by_identity(other)

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> Any:
        if not isinstance(other, Mapping):
            return NotImplemented
        made = type(self)(other)
        made.update(self)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def keyrefs(self) -> list[Any]:
        """Return the references to the keys."""
        return list(self.data)

    def popitem(self) -> tuple[Any, Any]:
        """Take out the pair that was put in last.

        Raises:
          KeyError: there is none.
        """
        while True:
            reference, value = self.data.popitem()
            key = reference()
            if key is not None:
                return key, value

    def copy(self) -> Any:
        """Return another dictionary of the same keys and values."""
        return type(self)(self)

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self)()
        for key, value in self.items():
            made[key] = copy.deepcopy(value, memo)
        return made


def _by_identity(mapping: Mapping[Any, Any]) -> dict[int, Any]:
    return {id(key): value for key, value in mapping.items()}


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it returns the tensor, or None once that is gone."""

    ref: weakref.ref[Any]

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, Handle):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = weakref.ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
