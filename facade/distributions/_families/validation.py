"""Checks of parameters and samples, which do not cut the program.

PyTorch looks at each value that it validates. Here a value that is at rest in the host's memory
is looked at, and the error is raised at once. What is still to be computed (the logits of a model
whose program is being recorded, anything on another device) is checked by a flag beside the
program's outputs: the same error is raised, with the line, when the next value is observed.

To say which values were wrong they must be there when the flag is read: small ones are kept as a
further output of the program, and larger ones are shown if somebody still holds them.
"""

from __future__ import annotations

import copy
import threading
from collections import deque
from collections.abc import Callable
from typing import Any
from weakref import ref

import jax.numpy as jnp

from leafax.functional.program.op import Fault, Op

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.trie import local
from ..._dispatch.record import apply
from .. import constraints
from .host_checks import holds_at_rest, values_of

_SMALL = 1000  # elements that are printed in full, and kept for it
_NOTES = 64


class _Note:
    """Note of what was to be validated, for the words of the error.

    Attributes:
      says: what is known without the values, by which it is found again.
      value: the tensor itself, weakly; `kept` is a copy without its history, if it is small.
    """

    __slots__ = ("says", "distribution", "shown", "constraint", "param", "value", "kept")

    def __init__(self, says: str, distribution: Any, constraint: Any, param: str | None) -> None:
        self.says, self.distribution, self.param = says, ref(distribution), param
        self.constraint = _without_history(constraint)
        self.shown = _shown(distribution)
        self.value: Any = None
        self.kept: Any = None

    def message(self) -> str | None:
        """PyTorch's message, if this value is wrong or nobody holds it any more."""
        value = self.value()
        value = self.kept if value is None else value
        if value is None:
            return None
        with no_grad():
            if bool(self.constraint.check(value).all()):
                return None
        distribution = self.distribution()
        shown = self.shown() if distribution is None else repr(distribution)
        return _words(self.param, value, shown, self.constraint)


class _Notes(threading.local):
    def __init__(self) -> None:
        self.latest: deque[_Note] = deque(maxlen=_NOTES)


_notes = _Notes()


class _Words(str):
    """An error's message, completed by the values when it is raised."""

    __slots__ = ()

    def format(self, *args: Any, **kwargs: Any) -> str:
        for note in [note for note in _notes.latest if note.says == self]:
            message = note.message()
            if message is not None:
                _notes.latest.clear()
                return message
        return str(self)


def _without_history(constraint: Any) -> Any:
    """The constraint with bounds that do not keep the graph behind them alive."""
    bounds = {k: v for k, v in vars(constraint).items() if isinstance(v, Handle)}
    if not bounds:
        return constraint
    found = copy.copy(constraint)
    vars(found).update({k: v.detach() for k, v in bounds.items()})  # type: ignore[attr-defined]
    return found


def _outline(distribution: Any) -> str:
    """The distribution's name and the shapes of its parameters."""
    params = [k for k in distribution.arg_constraints if k in vars(distribution)]
    shown = ", ".join(f"{k}: {vars(distribution)[k].size()}" for k in params)
    return f"{type(distribution).__name__}({shown})"


def _shown(distribution: Any) -> Callable[[], str]:
    """Return a function that shows the distribution once it is gone, as far as it is at rest."""
    name = type(distribution).__name__
    params = [(k, v) for k, v in vars(distribution).items() if k in distribution.arg_constraints]
    known = [(k, v if v.numel() == 1 and values_of(v) is not None else v.size()) for k, v in params]
    return lambda: f"{name}({', '.join(f'{k}: {v}' for k, v in known)})"


def _words(param: str | None, value: Any, distribution: str, constraint: Any) -> str:
    kind = f"({type(value).__name__} of shape {tuple(value.shape)})"
    if param is None:
        return (
            f"Expected value argument {kind} to be within the support ({constraint!r}) of the "
            f"distribution {distribution}, but found invalid values:\n{value}"
        )
    return (
        f"Expected parameter {param} {kind} of distribution {distribution} to satisfy the "
        f"constraint {constraint!r}, but found invalid values:\n{value}"
    )


def _outline_words(param: str | None, value: Any, distribution: Any, constraint: Any) -> str:
    kind = f"({type(value).__name__} of shape {tuple(value.shape)})"
    name, within = _outline(distribution), type(constraint).__name__.lstrip("_")
    if all(isinstance(bound, (int, float)) for bound in vars(constraint).values()):
        within = repr(constraint)  # which looks at no tensor
    if param is None:
        return (
            f"Expected value argument {kind} to be within the support ({within}) of the "
            f"distribution {name}, but found invalid values"
        )
    return (
        f"Expected parameter {param} {kind} of distribution {name} to satisfy the "
        f"constraint {within}, but found invalid values"
    )


def _check(valid: Any, value: Any, says: str) -> list[Fault]:
    return [Fault(jnp.logical_not(valid), ValueError, _Words(says))]


def _validated(valid: Any, value: Any, says: str) -> Any:
    return value


_VALIDATED = Op(
    _validated, name="_validated", namespace="distributions", differentiable=False,
    check=_check, method=False, function=False,
)  # fmt: skip


def validate(
    distribution: Any, value: Any, constraint: Any, param: str | None, data: Any = None
) -> None:
    """Raise PyTorch's error if a value is not inside its constraint, now or when it is known.

    Args:
      param: name of the parameter that it is; None for a sample.
      data: what NumPy knows that the value will be, where it is computed from what is at rest.

    Raises:
      ValueError: at once, of values at rest; else when the next value is observed.
    """
    if not isinstance(value, Handle):  # a user's own kind of tensor
        valid = constraint.check(value)
        if not bool(valid.all()):
            raise ValueError(_words(param, value, repr(distribution), constraint))
        return
    known = holds_at_rest(constraint, value, data)
    if known:
        return
    with no_grad():
        valid = constraint.check(value)
        if known is False and not bool(valid.all()):
            raise ValueError(_words(param, value, repr(distribution), constraint))
        if known is False:
            return  # NumPy rounds in another way: what PyTorch would say counts
        _defer(distribution, value, constraint, param, valid)


def _defer(distribution: Any, value: Any, constraint: Any, param: str | None, valid: Any) -> None:
    says = _outline_words(param, value, distribution, constraint)
    copied = apply(_VALIDATED, valid, value, says)
    if local.vmap is not None or local.mode.dual:
        return  # a value of a transform must not be seen after it
    note = _Note(says, distribution, constraint, param)
    note.value = ref(value)
    if value.numel() <= _SMALL:
        note.kept = copied
    _notes.latest.append(note)


def validate_positive(distribution: Any, value: Any, param: str) -> None:
    """Raise PyTorch's error, which shows only what is wrong, unless a parameter is positive.

    Raises:
      ValueError: at once, of values at rest; else when the next value is observed.
    """
    known = holds_at_rest(constraints.positive, value)
    if known:
        return
    if known is None:
        with no_grad():
            valid = constraints.positive.check(value)
            _defer(distribution, value, constraints.positive, param, valid)
        return
    kind = f"({type(value).__name__} of shape {tuple(value.shape)})"
    raise ValueError(
        f"Expected parameter {param} {kind} of distribution {distribution!r} to be positive but "
        f"found invalid values:\n{value.data[value.data <= 0]}"
    )
