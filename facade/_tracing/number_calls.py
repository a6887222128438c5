"""Calls whose Python numbers are inputs: the step is found by the numbers' types.

What changes from turn to turn, a place that is written to or the length of a solver's step, is not
met again as it was. So a step that was made with its numbers as inputs (`miss.py`) is known at its
place by the call without them.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.number_fits import check_numbers
from leafax.functional.program.op import Op
from leafax.functional.program.program import Input

from .._core.trie import State, Trace
from .inputs import NUMBER
from .miss import may_change

_SPELT_BY_TYPE = frozenset({float, int, bool, complex})  # in two parts of a key


class NumberCall:
    """A call with numbers that may be inputs.

    Attributes:
      key: what it is without them.
      numbers: those among its arguments by position, then those by name.
    """

    __slots__ = ("op", "args", "kwargs", "key", "numbers")

    def __init__(self, op: Op, args: Any, kwargs: Any, key: Any, numbers: list[Any]) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs
        self.key, self.numbers = key, numbers

    @classmethod
    def of(cls, op: Op, args: Any, kwargs: Any, key: tuple[Any, ...]) -> NumberCall | None:
        """Return the call, or None if it has no such numbers.

        Args:
          args, kwargs: of the call, as the user gave them.
          key: of its step, with each number after its type and the values of tensors.
        """
        named = op.numbers
        if not named:
            return None
        parts: list[Any] = [op, cls]
        numbers, taken, k = [], [], 1
        for name, a in zip(op.parameters, args, strict=False):
            kind = type(a)
            if kind not in _SPELT_BY_TYPE:
                parts.append(key[k])
                taken.append(key[k] if hasattr(a, "_v") else a)
                k += 1
                continue
            if name in named and may_change(a):
                parts.append(kind)
                numbers.append(a)
            else:
                parts += key[k : k + 2]
            taken.append(a)
            k += 2
        if len(taken) != len(args):
            return None
        for name, a in kwargs.items() if kwargs else ():
            parts.append(name)
            if name in named and may_change(a):
                parts.append(type(a))
                numbers.append(a)
            else:
                parts.append(key[k + 1])
            k += 2
        return cls(op, taken, kwargs, tuple(parts), numbers) if numbers else None

    def take(self, trace: Trace) -> State | None:
        """Enter the numbers and return the step, if it is known at this place."""
        state: State | None = trace.state.next.get(self.key)
        if state is None:
            return None
        op = self.op
        if op.need is not None:
            op.need(*self.args, **self.kwargs)
        if op.fits:
            check_numbers(op, self.args, self.kwargs, state.value.dtype)
        for x in self.numbers:  # not of a call that is refused
            trace.arrays.append(x)
            trace.nbytes += NUMBER[type(x)].nbytes
        return state

    def keep(self, before: State, state: State) -> None:
        """Know the step from now on, if the numbers have become inputs.

        Args:
          before: the place where the call was made, and `state` the one after it.
        """
        at: Any = state.parent
        for x in reversed(self.numbers):
            # Other threads may have made an operand enter anew meanwhile, which is no number.
            if at is None or type(at.entry) is not Input or at.value.resting is not NUMBER[type(x)]:
                return
            at = at.parent
        if at is before:
            before.next[self.key] = state
