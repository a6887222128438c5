"""Lenses: the view ops from a tensor to one of its views, as single ops of a program.

PyTorch knows views by their strides, so whatever led from a base to a view is one node of its
graph: `AsStridedBackward0` reads the view anew, `CopySlices` writes through it. Here a lens is a
chain of view ops; `reader`, `writer` and `writing` make one op of it. They are made once for a
chain's structure, and its static arguments are passed along: the numbers among them may change
from call to call without compiling anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import Op

Lens = tuple[tuple[Op, tuple[Any, ...], dict[str, Any]], ...]
# For each op of a lens: the op, how many positional arguments follow the tensor, the named ones.
Structure = tuple[tuple[Op, int, tuple[str, ...]], ...]


def spell(lens: Lens) -> tuple[Structure, tuple[Any, ...]]:
    """Split a lens into its structure and the flat list of its arguments."""
    structure, flat = [], []
    for op, args, kwargs in lens:
        structure.append((op, len(args), tuple(kwargs)))
        flat += [*args, *kwargs.values()]
    return tuple(structure), tuple(flat)


@cache
def reader(structure: Structure) -> Op:
    """Make the function `(base, *flat) -> view` that reads through a lens."""

    def fn(base: Any, *flat: Any) -> Any:
        return _path(structure, base, flat)[-1]

    numbers, sizes = _sign(fn, ["input"], structure)
    op = Op(
        fn, name="as_strided", backward="AsStridedBackward0", view=True, numbers=numbers,
        sizes=sizes,
    )  # fmt: skip
    _STRUCTURES[op] = structure
    return op


_STRUCTURES: dict[Op, Structure] = {}  # of the ops that `reader` and `writing` made
_INNER: dict[Op, Op] = {}  # what the ops that `writing` made do to what they see


def inner_of(op: Op) -> Op | None:
    """Return the in-place op that is applied through a view; None for other ops."""
    return _INNER.get(op)


def is_seen_by(op: Op, lens: Lens) -> bool:
    """Return whether `op` may have been applied through a view with this lens."""
    return spell(lens)[0] == _STRUCTURES.get(op)


def arguments_of_lens(op: Op) -> int:
    """Count the arguments that belong to the lens of an op made by `reader` or `writing`."""
    return sum(count + len(names) for _, count, names in _STRUCTURES.get(op, ()))


def path_of(op: Op, flat: Any) -> Lens | None:
    """Return the lens that the last arguments of a write through a view spell, or None."""
    structure = _STRUCTURES.get(op)
    if structure is None:
        return None
    taken = sum(count + len(names) for _, count, names in structure)
    given = iter(flat[len(flat) - taken :])
    lens = []
    for step, count, names in structure:
        args = tuple(next(given) for _ in range(count))
        lens.append((step, args, {name: next(given) for name in names}))
    return tuple(lens)


# Views that strides cannot tell: PyTorch does these again by name.
BY_NAME = frozenset({"view_as_real", "view_as_complex", "view_dtype", "conj", "_neg_view"})


class Replayed(tuple):  # type: ignore[type-arg]
    """A lens whose ops are done again one by one, as `_force_original_view_tracking` asks."""

    __slots__ = ()


def replayed(lens: Lens) -> Lens:
    """Return the steps by which PyTorch makes a view anew from its base.

    One `as_strided` does it; but a view of other elements than the base's is made again by its
    own op, and what follows it by one `as_strided` each.
    """
    if type(lens) is Replayed:
        return lens
    places = [i for i, (op, _, _) in enumerate(lens) if op.name in BY_NAME]
    if not places:
        structure, flat = spell(lens)
        return ((reader(structure), flat, {}),)
    first = places[0]
    steps: list[Any] = [*replayed(lens[:first])] if first else []
    for step in lens[first:]:
        steps += [step] if step[0].name in BY_NAME else replayed((step,))
    return tuple(steps)


@cache
def writer(structure: Structure, counted: bool = True) -> Op:
    """Make the function `(base, new, *flat) -> base` that writes `new` where a lens reads.

    Args:
      counted: it is a new version of the base's storage; else the caller says which it is.
    """

    def fn(base: Any, new: Any, *flat: Any) -> Any:
        return _put(structure, _path(structure, base, flat), new, flat)

    numbers, sizes = _sign(fn, ["input", "new"], structure)
    return Op(
        fn, name="copy_slices", backward="CopySlices", numbers=numbers, sizes=sizes,
        overwrites=counted,
    )  # fmt: skip


@cache
def writing(op: Op, count: int, structure: Structure) -> Op:
    """Make an op that applies an in-place op with `count` arguments through a lens.

    `(base, *args, *flat, **kwargs) -> base`, one node in the graph: the gradients of the base
    and of the op's other arguments come from it. The key of a random op is the first argument.
    """
    first = 1 if op.random else 0

    def split(args: Any) -> Any:
        head, base, rest = args[:first], args[first], args[first + 1 :]
        path = _path(structure, base, rest[count:])
        return path, (*head, path[-1], *rest[:count]), rest[count:]

    def fn(*args: Any, **kwargs: Any) -> Any:
        path, inner, flat = split(args)
        return _put(structure, path, op.fn(*inner, **kwargs), flat)

    def check(*args: Any, **kwargs: Any) -> Any:
        return op.check(*split(args)[1], **kwargs)  # type: ignore[misc]

    taken = first + 1 + count
    names = [*op.parameters[:taken]]
    names += [f"more{i}" for i in range(taken - len(names))]
    numbers, sizes = _sign(fn, names, structure, op.signature)
    made = Op(
        fn, name=op.name, backward="CopySlices", saves=op.saves, random=op.random,
        differentiable=op.differentiable, numbers=(*op.numbers, *numbers),
        sizes=(*op.sizes, *sizes), overwrites=True,
        check=check if op.check is not None else None, no_gradient=op.no_gradient,
    )  # fmt: skip
    _STRUCTURES[made], _INNER[made] = structure, op
    return made


def _path(structure: Structure, base: Any, flat: Any) -> list[Any]:
    """Return the base and what each op of the lens makes of it, in order."""
    arguments = iter(flat)
    path = [base]
    for op, count, names in structure:
        args = [next(arguments) for _ in range(count)]
        path.append(op.fn(path[-1], *args, **{name: next(arguments) for name in names}))
    return path


# What they see may hold an element of the base several times.
_WINDOWS = frozenset({"unfold", "as_strided"})
# Writing through them must leave alone what is not written to.
_KEEPING = _WINDOWS | {"view_dtype"}
_NOT_PLACES = BY_NAME | {"real", "imag"}  # what they see are no elements of the base


def _put(structure: Structure, path: list[Any], new: Any, flat: Any) -> Any:
    """Return the base with the last of `path` replaced by `new`."""
    end, last = len(flat), len(structure)
    written: Any = None  # which elements of `new` are; None if all
    while last:
        first = _windows(structure, last)
        start = end - sum(count + len(names) for _, count, names in structure[first:last])
        steps, arguments, whole = structure[first:last], flat[start:end], path[first]
        before = written
        if any(op.name in _KEEPING for op, _, _ in structure[:last]):
            written = _written(steps, written, whole, new, arguments)
        op, count, names = steps[0]
        if len(steps) == 1 and (before is None or op.name not in _WINDOWS):
            named = dict(zip(names, arguments[count:], strict=True))
            new = (op.write or _scatter(op.fn))(whole, new, *arguments[:count], **named)
        else:
            new = _scatter(partial(_end_of, steps))(whole, new, *arguments, written=before)
        if op.name == "view_dtype" and before is not None:  # True may be any byte
            new = jnp.where(written, new, whole)
        end, last = start, first
    return new


def _written(steps: Structure, written: Any, whole: Any, new: Any, arguments: Any) -> Any:
    """Find which elements of `whole` are written to by writing `new` through these steps."""
    mine = jnp.ones(new.shape, bool) if written is None else written
    if steps[0][0].name not in _NOT_PLACES:
        view = partial(_end_of, steps)
        return _scatter(view)(jnp.zeros(whole.shape, bool), mine, *arguments, written=written)
    if mine.ndim != whole.ndim:  # pairs along a last dim as complex numbers, or the other way
        return mine.any(-1) if mine.ndim > whole.ndim else jnp.stack([mine, mine], -1)
    if whole.shape == mine.shape:
        return mine
    row = whole.shape[-1]
    if row > mine.shape[-1]:
        return jnp.repeat(mine, row // mine.shape[-1], -1)
    return mine.reshape(*whole.shape, mine.shape[-1] // row).any(-1)


def _windows(structure: Structure, last: int) -> int:
    """Find where the steps up to `last` begin that must write together.

    To write a part of overlapping windows is to write its elements alone: whole windows put back
    would bring the old elements of those beside it. Other steps write one by one.
    """
    first = found = last - 1
    while first >= 0 and structure[first][0].name not in _NOT_PLACES:
        if structure[first][0].name in _WINDOWS:
            found = first
        first -= 1
    return found


def _end_of(structure: Structure, base: Any, *flat: Any) -> Any:
    return _path(structure, base, flat)[-1]


def _scatter(view: Callable[..., Any]) -> Callable[..., Any]:
    """Write back through a view op that brings no write of its own."""

    def write(base: Any, new: Any, *args: Any, written: Any = None, **kwargs: Any) -> Any:
        places = view(jnp.arange(base.size).reshape(base.shape), *args, **kwargs)
        if written is not None:  # beyond the base there is nothing to write to
            places = jnp.where(written, places, base.size)
        flat = base.reshape(-1).at[places.reshape(-1)].set(new.reshape(-1))
        return flat.reshape(base.shape)

    return write


def _sign(
    fn: Any, names: list[str], structure: Structure, like: inspect.Signature | None = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Give `fn` a signature; returns which of the lens's arguments may become inputs, and which
    are lengths."""
    kind = inspect.Parameter
    parameters = [kind(name, kind.POSITIONAL_ONLY) for name in names]
    numbers, sizes = [], []
    for i, (op, count, named) in enumerate(structure):
        own = [*op.parameters[1 : 1 + count], *named]
        own += ["?"] * (count + len(named) - len(own))
        for j, name in enumerate(own):
            parameters.append(kind(f"lens{i}_{j}", kind.POSITIONAL_ONLY))
            if name in op.numbers:
                numbers.append(f"lens{i}_{j}")
            if name in op.sizes:
                sizes.append(f"lens{i}_{j}")
    for name, p in (like.parameters if like is not None else {}).items():
        if name not in names:
            parameters.append(kind(name, kind.KEYWORD_ONLY, default=p.default))
    fn.__signature__ = inspect.Signature(parameters)
    return tuple(numbers), tuple(sizes)


PICKED: dict[Op, int] = {}  # for the ops that `pick` made: which output


@cache
def pick(op: Op, k: int) -> Op:
    """Make an op for one output of a view op that has several."""

    def fn(*args: Any, **kwargs: Any) -> Any:
        return op.fn(*args, **kwargs)[k]

    made = Op(fn, name=op.name, backward=op.backward, view=True, sizes=op.sizes)
    PICKED[made] = k
    return made
