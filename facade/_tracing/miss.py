"""Steps that were not seen before: keys, templates, and numbers that become inputs.

A Python number is first part of the key. When another one comes at the same place, the number
becomes a runtime input there for good, and wherever the same line of the user's calls the same op:
of the ten slices in `stack([x[i : i + 5] for i in starts])` the second is at a place that was not
seen before as soon as the first has changed, and each would compile once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.number_fits import check_numbers, fits_int64
from leafax.functional.program.op import Op
from leafax.functional.program.program import Slot, call_of

from .._core.dtypes import python_number
from .._core.handle import Handle
from .._core.trie import State, Trace, Value
from .._signatures.check_arguments import check as check_arguments
from .infer import step, user_line
from .inputs import NUMBER, add_input

_INTS = {int}
_CHANGING: set[Any] = set()  # ops and the lines where a number that they took has changed
_seen: dict[Any, set[Any]] = {}  # the same, where it has not: the numbers that they took
MOST_NUMBERS = 16  # from so many on they are those of a loop's turns


def number_part(x: Any) -> Any:
    """Return the part of a key for a Python number: 0.0, -0.0 and NaN need their own spelling."""
    if x == 0 or x != x:
        return repr(x)
    return x


def key_part(x: Any, trace: Trace, enter: Callable[[Any, Trace], Value] | None = None) -> Any:
    """Return the part of a key for an argument.

    Args:
      enter: gives the value of a tensor; None where there are values only.
    """
    kind = type(x)
    if kind is float or kind is int or kind is bool or kind is complex:
        return (kind, number_part(x))
    if enter is not None and isinstance(x, Handle):
        return enter(x, trace)
    if kind is Value:
        return x
    if kind is tuple and {*map(type, x)} == _INTS:  # sizes, dims
        return (int, x)
    if kind is tuple or kind is list:
        return (kind, *[key_part(y, trace, enter) for y in x])
    if kind is slice:
        return (slice, key_part((x.start, x.stop, x.step), trace, enter))
    if isinstance(x, dict):
        return (dict, *[(k, key_part(v, trace, enter)) for k, v in x.items()])
    if isinstance(x, np.ndarray):
        raise StaticArray("an array cannot be a static argument of an op: make it a tensor")
    return x


class StaticArray(TypeError):
    """An array of NumPy among arguments that are no tensors."""


def with_ints(x: Any) -> Any:
    """Turn arrays that hold one integer, as NumPy computes sizes, into ints."""
    if isinstance(x, np.ndarray) and not x.ndim and x.dtype.kind in "iu":
        return int(x)
    if type(x) is tuple or type(x) is list:
        return type(x)(map(with_ints, x))
    if type(x) is dict:
        return {k: with_ints(v) for k, v in x.items()}
    if isinstance(x, np.ndarray):
        raise StaticArray("an array cannot be a static argument of an op: make it a tensor")
    return x


def miss(trace: Trace, key: Any, op: Op, args: Any, kwargs: Any, written: Any = None) -> State:
    """Build the state of a step on values that was not seen at this place.

    Args:
      written: the arguments with the tensors that the caller gave, for the words of errors.
    """
    numbers = _numbers(op, args, kwargs)
    site = (op, user_line()) if numbers else None
    check_arguments(op, *((args, kwargs) if written is None else written))
    if numbers:
        state = trace.state
        place = _place(op, args, kwargs, numbers, trace)
        if state.numbers is None:
            state.numbers = {}
        baked = state.numbers.get(place)
        if baked is None and site not in _CHANGING and not _varies(site, args, kwargs, numbers):
            made = _new(trace, key, op, args, kwargs)
            state.numbers[place] = key, []  # not of a call that was refused
            return made
        if baked is not None:
            _CHANGING.add(site)
            state.next.pop(baked[0], None)
            for before, known in baked[1]:
                before.next.pop(known, None)
            baked[1].clear()
        return _with_inputs(trace, op, args, kwargs, numbers)
    return _new(trace, key, op, args, kwargs)


def _varies(site: Any, args: Any, kwargs: Any, numbers: Any) -> bool:
    """Note the numbers of a call; return whether its line gave this op many, as a loop does."""
    given = tuple([number_part((args if type(k) is int else kwargs)[k]) for k in numbers])
    seen = _seen.setdefault(site, set())
    seen.add(given)
    if len(seen) <= MOST_NUMBERS:
        return False
    del _seen[site]
    _CHANGING.add(site)
    return True


def _new(trace: Trace, key: Any, op: Op, args: Any, kwargs: Any) -> State:
    inputs: list[Value] = []
    t_args = tuple(_template(a, inputs) for a in args)
    t_kwargs = {k: _template(a, inputs) for k, a in kwargs.items()}
    overwrites = inputs[1 if op.random else 0] if op.overwrites else None
    return step(trace, key, call_of(op, t_args, t_kwargs), inputs, overwrites=overwrites)


def _template(a: Any, inputs: list[Value]) -> Any:
    """Replace the values in `a` by slots, and append these values to `inputs`.

    NumPy's numbers become Python's, as ops know no others.
    """
    if isinstance(a, Value):
        inputs.append(a)
        return Slot(len(inputs) - 1)
    if type(a) in (tuple, list):
        return type(a)(_template(x, inputs) for x in a)
    if isinstance(a, dict):
        return {k: _template(x, inputs) for k, x in a.items()}
    return python_number(a) if isinstance(a, np.generic) else a


def _numbers(op: Op, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """List the arguments that are Python numbers and may become runtime inputs."""
    if not op.numbers:
        return ()
    found: list[Any] = []
    for i, a in enumerate(args):
        if may_change(a) and i < len(op.parameters) and op.parameters[i] in op.numbers:
            found.append(i)
    found += [k for k, a in kwargs.items() if may_change(a) and k in op.numbers]
    return tuple(found)


def may_change(x: Any) -> bool:
    """Tell whether an input may hold this argument: a number, and an int that fits an int64."""
    return type(x) is float or type(x) is int and fits_int64(x)


def _place(op: Op, args: Any, kwargs: Any, numbers: Any, trace: Trace) -> Any:
    """Return the key with the numbers' values left out."""
    parts: list[Any] = []
    for i, a in enumerate(args):
        parts.append(type(a) if i in numbers else key_part(a, trace))
    for k, a in kwargs.items():
        parts.append((k, type(a) if k in numbers else key_part(a, trace)))
    return (op, *parts)


def _with_inputs(trace: Trace, op: Op, args: Any, kwargs: Any, numbers: Any) -> State:
    """Step with the numbers as runtime inputs: they changed from one time to the next."""
    if op.need is not None:
        op.need(*args, **kwargs)
    given = args, kwargs
    args, kwargs = list(args), dict(kwargs)
    for place in numbers:
        holder: Any = args if type(place) is int else kwargs
        x = holder[place]
        holder[place] = add_input(trace, NUMBER[type(x)], x)
    key = _key_of(op, args, kwargs, trace)
    state = trace.state.next.get(key)
    if state is None:
        state = _new(trace, key, op, args, kwargs)
    if op.fits:
        check_numbers(op, *given, state.value.dtype)
    return state


def _key_of(op: Op, args: Any, kwargs: Any, trace: Trace) -> Any:
    """Return the key of a step whose numbers are inputs."""
    parts: list[Any] = [op, "numbers"]
    parts += [a if isinstance(a, Value) else key_part(a, trace) for a in args]
    parts += [(k, a if isinstance(a, Value) else key_part(a, trace)) for k, a in kwargs.items()]
    return tuple(parts)
