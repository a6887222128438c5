"""The Python state of a function: the tensors that it can reach, and all else that it reads.

A call that is replayed runs no Python of the user's, so all that its Python read must be as it was
when it was recorded. That is found from the function: its closure, the globals that its code names,
the objects among them and what these hold. A number, a flag or an entry that is another one than
before means that the call must be recorded anew.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import is_, itemgetter
from typing import Any

from .._core.dtypes import device, dtype
from .._core.handle import Handle
from .._ops.creation.generator import Generator, list_defaults
from .._tracing.bundles import release_all
from .users_code import (
    CLOSED,
    contents,
    is_filled,
    is_users_class,
    is_users_file,
    names_in,
    slots_of,
)  # fmt: skip

MOST = 200_000  # entries that are looked at; beyond that a check costs more than it saves

#: What is the same where it is equal.
PLAIN = frozenset({
    bool, int, float, complex, str, bytes, type(None), dtype, device, type(Ellipsis), range, slice,
})  # fmt: skip


#: Fields of a module whose entries are attributes of it.
_MEMBERS = frozenset({"_parameters", "_buffers", "_modules"})


class NotReplayable(Exception):
    """A call that would not do the same if its program alone were run again; says why."""


class PythonState:
    """All that some functions and objects reach in Python, as it is now.

    Args:
      roots: by the names that they have in messages.
      groups: groups of optimizers by id: of these only the parameters are watched, since their
        numbers enter the program anew at each call.

    Attributes:
      tensors: those found, by their ids.
      generators: of random numbers, the default ones first.
      leaves: what was found, by where: `model.dropout.p`.
    """

    def __init__(self, roots: dict[str, Any], groups: Mapping[int, Any]) -> None:
        self._roots, self._groups = roots, groups
        self._look()

    def _look(self) -> None:
        release_all()
        self.tensors: dict[int, Any] = {}
        self.generators: list[Generator] = list_defaults()
        self.leaves: dict[str, Any] = {}
        self._seen: dict[int, str] = {}
        self._alive: list[Any] = []  # so that no id is given again
        self._readers: list[Callable[[], Iterable[Any]]] = []
        self._sized: list[Any] = []
        stack = list(reversed(self._roots.items()))
        while stack:
            path, x = stack.pop()
            if type(x) in PLAIN:
                self.leaves[path] = x
            elif isinstance(x, Handle):
                self.tensors[id(x)] = self.leaves[path] = x
            elif id(x) in self._seen:
                self.leaves[path] = self._seen[id(x)]
            else:
                self._seen[id(x)] = path
                self._alive.append(x)
                if len(self._alive) + len(self.leaves) > MOST:
                    raise NotReplayable(f"it reaches more than {MOST} objects, at `{path}`")
                children = self._children(path, x)
                if children is None:
                    self.leaves[path] = x
                else:
                    stack += reversed(list(children))
        self._lengths = list(map(len, self._sized))
        self._found = list(chain.from_iterable([read() for read in self._readers]))

    def holds(self) -> bool:
        """Tell whether nothing has changed since; in a few microseconds where nothing has."""
        if list(map(len, self._sized)) == self._lengths:
            now = chain.from_iterable([read() for read in self._readers])
            if all(map(is_, now, self._found)):
                return True
        if self.changes():
            return False
        self._look()  # something was replaced by its equal
        return True

    def renew(self) -> None:
        """Look anew after a call, whose containers may be others with the same in them.

        Raises:
          NotReplayable: the call changed something.
        """
        changes = self.changes()
        if changes:
            raise NotReplayable("; ".join(changes[:3]))
        self._look()

    def changes(self) -> list[str]:
        """Tell what is another than it was, one sentence each."""
        now = PythonState(self._roots, self._groups)
        found = []
        for path, old in self.leaves.items():
            if path not in now.leaves:
                found.append(f"`{path}` is gone")
            elif not are_same(old, new := now.leaves[path]):
                told = type(old) in PLAIN and type(new) in PLAIN
                found.append(
                    f"`{path}` was {old!r} and is {new!r}" if told else f"`{path}` was replaced"
                )
        found += [f"`{path}` is new" for path in now.leaves if path not in self.leaves]
        return found

    # ------------------------------------------------------------ what objects hold

    def _children(self, path: str, x: Any) -> Iterable[tuple[str, Any]] | None:
        """List what an object holds, with where that is; None if it is looked at no further."""
        kind = type(x)
        if isinstance(x, dict):
            return self._entries(path, x)
        if isinstance(x, (list, deque)):
            self._watch(x.__iter__, x)
            return [(f"{path}[{k}]", y) for k, y in enumerate(x)]
        if isinstance(x, tuple):
            return [(f"{path}[{k}]", y) for k, y in enumerate(x)]
        if kind is types.FunctionType:
            return self._names(path, x) if is_users_file(x.__code__.co_filename) else None
        if kind is types.MethodType:
            return [(f"{path}.__self__", x.__self__), (path, x.__func__)]
        if isinstance(x, Generator):
            if x not in self.generators:
                self.generators.append(x)  # which goes on with each draw
            return None
        if kind is functools.partial:
            return [(path, x.func), (f"{path}.args", x.args), (f"{path}.keywords", x.keywords)]
        if isinstance(x, type):
            return self._members(path, x) if is_users_class(x) else None  # type: ignore[arg-type]
        return self._attributes(path, x)

    def _watch(self, read: Callable[[], Iterable[Any]], sized: Any = None) -> None:
        if sized is not None:
            self._sized.append(sized)
        if sized is None or len(sized):  # of what is empty the length says all
            self._readers.append(read)

    def _entries(self, path: str, x: dict[Any, Any]) -> Iterable[tuple[str, Any]]:
        if id(x) in self._groups:
            self._watch(lambda: (x["params"],))
            return [(f"{path}['params']", x["params"])]
        self._watch(x.values, x)
        if path.endswith("."):  # what a module has by its name
            return [(f"{path}{key}", y) for key, y in x.items()]
        return [
            (f"{path}[{key!r}]" if type(key) in PLAIN else f"{path}[key {k}]", y)
            for k, (key, y) in enumerate(x.items())
        ]

    def _names(self, path: str, fn: Any) -> Iterable[tuple[str, Any]]:
        """List what a function's code refers to: closure, globals, defaults."""
        cells = [c for c in fn.__closure__ or () if is_filled(c)]
        self._watch(functools.partial(contents, cells))
        found: list[tuple[str, Any]] = [(f"{path}.__code__", fn.__code__)]
        found += [
            (name, c.cell_contents)
            for name, c in zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
            if is_filled(c)
        ]
        names, read = names_in(fn.__code__)
        known = [name for name in read if name in fn.__globals__]
        if known:
            take = itemgetter(known[0], *known)  # of several, so that it makes a tuple
            self._watch(functools.partial(take, fn.__globals__))
        for name in known:
            value = fn.__globals__[name]
            if type(value) is types.ModuleType:
                if is_users_file(getattr(value, "__file__", None) or "<builtin>"):
                    found += [
                        (f"{name}.{n}", vars(value)[n]) for n in names if n in vars(value)
                    ]  # fmt: skip
            else:
                found.append((name, value))
        for k, value in enumerate(fn.__defaults__ or ()):
            found.append((f"{path}.__defaults__[{k}]", value))
        for name, value in (fn.__kwdefaults__ or {}).items():
            found.append((f"{path}.__kwdefaults__[{name!r}]", value))
        return found

    def _members(self, path: str, cls: Any) -> Iterable[tuple[str, Any]]:
        """List the functions and plain values of a user's class, and its bases."""
        self._watch(vars(cls).values)
        found = [(f"{path}.__bases__[{k}]", base) for k, base in enumerate(cls.__bases__)]
        for name, value in list(vars(cls).items()):
            if isinstance(value, (staticmethod, classmethod)):
                value = value.__func__
            elif isinstance(value, property):
                value = value.fget
            if type(value) in PLAIN and not name.startswith("__"):
                found.append((f"{path}.{name}", value))
            elif type(value) is types.FunctionType:
                found.append((f"{path}.{name}", value))
        return found

    def _attributes(self, path: str, x: Any) -> Iterable[tuple[str, Any]] | None:
        cls = type(x)
        if cls.__module__.partition(".")[0] in CLOSED or isinstance(x, BaseException):
            return None
        found: list[tuple[str, Any]] = []
        if cls.__dictoffset__:  # else the attribute may be that of another object
            skipped, fields = getattr(cls, "_unwatched", ()), x.__dict__
            self._watch(fields.values, fields)
            found += [
                (f"{path}." if n in _MEMBERS else f"{path}.{n}", y)
                for n, y in fields.items() if n not in skipped
            ]  # fmt: skip
        if slots := slots_of(x):
            self._watch(lambda: [value for _, value in slots_of(x)])
            found += [(f"{path}.{n}", y) for n, y in slots]
        return [(f"type({path})", cls), *found] if found else None


def are_same(old: Any, new: Any) -> bool:
    """Tell whether two leaves are one object, or equal where equal ones are the same."""
    return old is new or (type(old) is type(new) and type(old) in PLAIN and bool(old == new))
