"""A mapping from objects, whether or not they have a hash, that survives being copied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any


class ById(MutableMapping[Any, Any]):
    """A dict keyed by what objects are, not by what they equal: tensors, modules.

    `copy.deepcopy` and `pickle` make other objects, of other ids; the copy is keyed by those.

    >>> import copy
    >>> key = [1]
    >>> names = ById([(key, "one")])
    >>> key in names, [1] in names
    (True, False)
    >>> other, again = copy.deepcopy((key, names))
    >>> other in again, key in again
    (True, False)
    """

    def __init__(self, pairs: Iterable[tuple[Any, Any]] = ()) -> None:
        self._pairs = {id(key): (key, value) for key, value in pairs}

    def __getitem__(self, key: Any) -> Any:
        return self._pairs[id(key)][1]

    def get(self, key: Any, default: Any = None) -> Any:
        found = self._pairs.get(id(key))
        return default if found is None else found[1]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._pairs[id(key)] = (key, value)

    def __delitem__(self, key: Any) -> None:
        del self._pairs[id(key)]

    def __contains__(self, key: object) -> bool:
        return id(key) in self._pairs

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._pairs.values())

    def __len__(self) -> int:
        return len(self._pairs)

    def __reduce__(self) -> Any:
        return ById, (list(self._pairs.values()),)
