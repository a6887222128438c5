"""Edits of an nnx module outside of its calls: methods that run at once.

A call runs on a copy that exists while JAX traces it. Arrays in it are written back; a variable
that it makes, or a Python value that it sets, would be lost without a word, so it raises.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, MutableSequence, Sequence
from typing import Any

from flax import nnx

from leafax.functional.program.paths import paths

from .nnx_leaves import kinds_of

#: Attributes that tell a module whether to train; the model switches them.
FLAGS = ("deterministic", "use_running_average")

#: Methods of containers that change nothing; the first three return a view of a dict.
READS = ("keys", "values", "items", "get", "index", "count")
VIEWS = READS[:3]

_CONTAINERS = (nnx.List, nnx.Dict)
_OF_CONTAINERS = {*dir(MutableSequence), *dir(MutableMapping)}
_PLAIN = (bool, int, float, complex, str)


def edits(module: Any, name: str) -> bool:
    """Return True if a method changes or lists the module's parts, and computes nothing."""
    return name == "set_attributes" or (isinstance(module, _CONTAINERS) and name in _OF_CONTAINERS)


def each(fn: Callable[[Any], Any], value: Any) -> Any:
    """Apply `fn` to each value of a list, tuple or dict; return it as it is if nothing changes."""
    if type(value) is dict:
        found = {k: fn(v) for k, v in value.items()}
        return found if any(found[k] is not v for k, v in value.items()) else value
    if type(value) is list or isinstance(value, tuple):
        new = [fn(v) for v in value]
        if all(a is b for a, b in zip(new, value, strict=True)):
            return value
        if type(value) in (list, tuple):
            return type(value)(new)
        return type(value)(*new) if hasattr(value, "_fields") else value
    return value


def plain_attributes(module: Any) -> dict[str, Any]:
    """Return numbers and strings that are attributes of a module's parts, by path."""
    return {
        ".".join(map(str, (*path, name))): value
        for path, part in nnx.iter_modules(module)
        for name, value in vars(part).items()
        if type(value) in _PLAIN and name not in FLAGS and not name.startswith("_pytree__")
    }


def refuse_edits(
    method: str, before: dict[str, Any], after: Any, names: Sequence[str], kinds: Sequence[type]
) -> None:
    """Raise if a call changed what its module consists of.

    What the module sows (`nnx.Intermediate`) may come and go: nobody asked for it.

    Args:
      before: plain attributes before the call.
      after: the module after it.
      names, kinds: of its variables before.

    Raises:
      ValueError: with what is other than before, and what to do.
    """
    state = nnx.state(after)
    old, new = _lasting(names, kinds), _lasting(paths(state), kinds_of(state))
    if old.keys() != new.keys():
        changed = _listed(sorted(old.keys() ^ new.keys()))
        raise ValueError(
            f"`{method}` {'makes' if new.keys() - old.keys() else 'takes away'} {changed}, but "
            f"a call cannot change what variables the module has: do it before you make the "
            f"model, and return from the call what it computes"
        )
    now = plain_attributes(after)
    missing = object()
    for name in dict.fromkeys((*before, *now)):
        was, value = before.get(name, missing), now.get(name, missing)
        if was is not value and was != value:
            raise ValueError(
                f"`{method}` sets the attribute `{name}`, which is lost after the call: make it an "
                f"`nnx.Variable`, or set it from outside, as `model.{name} = ...`"
            )


def _lasting(names: Sequence[str], kinds: Sequence[type]) -> dict[str, type]:
    pairs = zip(names, kinds, strict=True)
    return {name: kind for name, kind in pairs if not issubclass(kind, nnx.Intermediate)}


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 4} more" if len(names) > 4 else ""
    return ", ".join(f"`{name}`" for name in names[:4]) + more
