"""`__torch_function__`: who overrides PyTorch's functions, in which modes, and where it is off.

Public functions know nothing of this until the first object that overrides them is met: `activate`
then puts a look at the arguments before each. What they do for plain tensors costs nothing before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..handle import Handle

ENABLED, NO_SUBCLASSES, DISABLED = range(3)
SKIP_ONE = -1  # the next function that looks for overrides takes none


class _Overrides(threading.local):
    """The thread's modes, innermost last, and what is turned off.

    Attributes:
      redone: the next call is a user's, made again by the library.
    """

    def __init__(self) -> None:
        self.modes: list[Any] = []
        self.off = ENABLED
        self.redone = False


class _Activation:
    """A switch: are calls looked at yet. The layer that knows all functions installs `run`."""

    active = False
    run: Callable[[], None]


overrides = _Overrides()
_activation = _Activation()
#: Types of arguments that override nothing, and hold nothing that does.
PLAIN: set[type] = {int, float, bool, str, type(None), slice, complex}
_CONTAINERS = frozenset({tuple, list, dict})


def install(run: Callable[[], None], *plain: type) -> None:
    """Tell what makes public functions look for overrides, and the classes of plain tensors."""
    _activation.run = run  # type: ignore[method-assign]
    PLAIN.update(plain)


def activate() -> bool:
    """Make public functions look for overrides; return True if they did not before."""
    if _activation.active:
        return False
    _activation.active = True
    _activation.run()
    return True


def is_looked_for() -> bool:
    """Tell whether public functions look for overrides: then each has to be called as such."""
    return _activation.active


def _disabled_torch_function_impl(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Call a function as if no argument overrode it: the `__torch_function__` of parameters."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


def is_overriding(kind: type) -> bool:
    """Tell whether objects of a type override functions; exact tensors and parameters do not."""
    if kind in PLAIN or kind in _CONTAINERS:
        return False
    found = getattr(kind, "__torch_function__", None)
    return found is not None and found is not _disabled_torch_function_impl


def finds_override(args: Iterable[Any]) -> bool:
    """Return True if one of the arguments, or of the items of a sequence among them, overrides."""
    for a in args:
        kind = type(a)
        if kind is tuple or kind is list:
            if finds_override(a):
                return True
        elif kind not in PLAIN and is_overriding(kind):
            return True
    return False


def meets_first_override(args: Iterable[Any]) -> bool:
    """Activate overrides if one of the arguments has one; return True if the call is to be redone.

    Objects that are no tensors are found only when a function fails to take them.
    """
    if _activation.active or not finds_override(args):
        return False
    overrides.redone = True
    return activate()


def note_class(cls: Any) -> None:
    """Activate overrides when the first tensor of a class with `__torch_function__` is made."""
    if not _activation.active and is_overriding(cls):
        activate()


class _Off:
    """A block, or a decorated function, in which overrides are off."""

    _level = DISABLED

    def __enter__(self) -> None:
        self._before = overrides.off
        overrides.off = max(self._level, self._before)

    def __exit__(self, *exc: object) -> None:
        overrides.off = self._before


class DisableTorchFunctionSubclass(_Off):
    """Turn off `__torch_function__` of arguments in a `with` block; modes stay in force."""

    _level = NO_SUBCLASSES


class DisableTorchFunction(_Off):
    """Turn off `__torch_function__` of arguments and of modes in a `with` block."""


def takes_overrides() -> bool:
    """Return True unless a function that looks for overrides is to take none."""
    if overrides.off == SKIP_ONE:
        overrides.off = ENABLED
        return False
    return overrides.off != DISABLED


def is_torch_function_enabled() -> bool:
    """Return True where arguments override functions."""
    return overrides.off == ENABLED


def is_torch_function_all_disabled() -> bool:
    """Return True where neither arguments nor modes override functions."""
    return overrides.off == DISABLED


def is_torch_function_mode_enabled() -> bool:
    """Return True where a mode overrides functions."""
    return bool(overrides.modes) and overrides.off != DISABLED


def overloaded(relevant: Iterable[Any], tensor: type | None = None) -> list[Any]:
    """Return the arguments to ask, one a type: subclasses first, else from left to right.

    Args:
      relevant: the arguments.
      tensor: the class of plain tensors where they count, too, as in functions written in Python.
    """
    if overrides.off:
        return []
    found: list[Any] = []
    for a in relevant:
        kind = type(a)
        if kind is not tensor and not is_overriding(kind) or kind in map(type, found):
            continue
        place = next((i for i, b in enumerate(found) if issubclass(kind, type(b))), len(found))
        found.insert(place, a)
    return found


def ask(public: Any, found: Sequence[Any], args: Any, kwargs: Any) -> Any:
    """Return what the innermost mode or one of the overriding arguments makes of a call.

    NotImplemented where all refuse it.
    """
    types = tuple(map(type, found))
    if overrides.modes:
        mode = overrides.modes.pop()
        try:
            made = mode.__torch_function__(public, types, args, kwargs)
        finally:
            overrides.modes.append(mode)
        if made is not NotImplemented:
            return made
    for x in found:
        made = x.__torch_function__(public, types, args, kwargs)
        if made is not NotImplemented:
            return made
    return NotImplemented


def flat(args: Iterable[Any]) -> Iterable[Any]:
    """Yield arguments, of sequences their items."""
    for a in args:
        if type(a) in (tuple, list):
            yield from flat(a)
        else:
            yield a


def convert(made: Any, cls: Any) -> Any:
    """Return what a function made with its plain tensors as ones of a class."""
    if isinstance(made, Handle) and not isinstance(made, cls):
        return made.as_subclass(cls)
    if isinstance(made, (tuple, list)):  # named results take a sequence, too
        return type(made)([convert(x, cls) for x in made])
    return made
