"""Recording of a Flax module's call: one opaque node, whose function never changes.

`call_jax` finds the compiled program by the function, so a model keeps one `Pure` a mode, and
models of equal modules share it. Its result names the leaves that the call replaced; the
tensors are written once it has returned, and no tracer is ever stored in them.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

import leafax
from leafax.functional.lowering.keys import without_keys

from .by_id import ById

#: Parameters that tell a module whether it trains, and what they say when it does.
FLAGS = {
    "train": True, "training": True, "is_training": True,
    "deterministic": False, "use_running_average": False,
}  # fmt: skip

Flag = tuple[str, int | None, bool]


class Linear(NamedTuple):
    """A call of a layer that is linear in its kernel.

    Attributes:
      kind: as in `low_rank.added`.
      shape: of the kernel.
      equation: of an einsum.
    """

    kind: str
    layer: Any
    shape: tuple[int, ...]
    equation: str | None


class Pure(ABC):
    """A module's call as `(leaves, key, args, kwargs) -> (output, {place: new leaf})`.

    Two are equal if their `facts` are.

    Attributes:
      draws: whether it draws random numbers and so takes a key; None while nobody knows.
      seen: the shapes of the arguments that it was last traced with; None before.
      splits: the call cut into pieces, for those who watch it.
    """

    def __init__(self, name: str, *facts: Any) -> None:
        self.__name__ = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        self.facts = tuple(_hashable(fact) for fact in facts)
        self._hash = hash((type(self), self.facts))
        self.draws: bool | None = None
        self.seen: Any = None
        self.splits: dict[Any, Any] = {}

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is type(self) and other.facts == self.facts)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out, for copies of the model, what it was cut into, which is JAX's."""
        return {**vars(self), "splits": {}}

    @abstractmethod
    def __call__(
        self, leaves: Sequence[Any], key: Any, args: Any, kwargs: Any
    ) -> tuple[Any, dict[int, Any]]:
        """Run the module; traced by JAX."""

    @abstractmethod
    def tagging(self, tagger: Any) -> AbstractContextManager[Any]:
        """Send the calls of submodules through the tagger while this lasts."""

    @abstractmethod
    def adding(self, adder: Any) -> AbstractContextManager[Any]:
        """Make linear layers return `adder(path, linear, x, y)` for `y` while this lasts."""

    @abstractmethod
    def module_of(self, place: int) -> str:
        """Return the path of the module that has the leaf at this place."""

    def note(self, *arguments: Any) -> None:
        """Remember the shapes of a call's arguments."""
        self.seen = jax.tree.map(_shape, arguments)


def _shape(leaf: Any) -> Any:
    if not isinstance(leaf, (jax.Array, jax.ShapeDtypeStruct)):
        return leaf
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


class _Identity:
    """A stand-in for an object that has no hash."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def __hash__(self) -> int:
        return id(self.held)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.held is self.held


def _hashable(fact: Any) -> Hashable:
    try:
        hash(fact)
    except TypeError:
        return _Identity(fact)
    return fact  # type: ignore[no-any-return]


P = TypeVar("P", bound=Pure)
_MADE: OrderedDict[Pure, Pure] = OrderedDict()
_MOST = 256


def shared(pure: P) -> P:
    """Return the first function that was made equal to this one."""
    found = _MADE.setdefault(pure, pure)
    _MADE.move_to_end(found)
    if len(_MADE) > _MOST:
        _MADE.popitem(last=False)
    return found  # type: ignore[return-value]


class Borrowed:
    """Arrays that models hold and that their caller may hold too, as in `variables`.

    A step cannot reuse such a buffer: it would have to compile once without donating it, and anew
    for the next step. So what training replaces is copied before, if somebody else does hold it.
    What is frozen is never copied.
    """

    def __init__(self) -> None:
        self.held = ById()  # whether a tensor is a parameter
        self.settled = False

    def lend(self, tensor: Any, parameter: bool) -> None:
        """Note that somebody may hold this tensor's array from now on."""
        self.held[tensor] = parameter
        self.settled = False

    def settle(self, training: bool) -> None:
        """Copy what the step of this call will replace."""
        if not (training and leafax.is_grad_enabled()):
            return
        kept = ById()
        for t, parameter in self.held.items():
            if parameter and not t.requires_grad:
                kept[t] = parameter
            elif sys.getrefcount(t.jax()) > 2:  # the tensor and the argument: nobody else
                with jax.enable_x64(True):
                    t.data = leafax.as_tensor(jnp.copy(t.jax()))
        self.held, self.settled = kept, True


def key_of(pure: Pure, leaves: Sequence[Any]) -> Any:
    """Record the key of a call that draws, from the generator of its model's device, else None."""
    return leafax.random.generator_of(leaves[0] if leaves else None).key() if pure.draws else None


def record(pure: Pure, leaves: Sequence[Any], args: Any, kwargs: Any) -> Any:
    """Record the call, write what it replaced into the leaves, return its output."""
    key = key_of(pure, leaves)
    out, changed = leafax.call_jax(pure, leaves, key, args, kwargs)
    for place, new in changed.items():
        leaves[place].data = new
    return out


def with_tensors(tree: Any) -> Any:
    """Return a call's arguments with tensors for arrays, as `call_jax` takes them.

    What else is in it is static: an array must not be taken for that.
    """

    def tensor(x: Any) -> Any:
        return leafax.as_tensor(x) if isinstance(x, (jax.Array, np.ndarray, np.generic)) else x

    return jax.tree.map(tensor, without_keys(tree), is_leaf=lambda x: isinstance(x, leafax.Tensor))


def abstract(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Return the shapes of a tree's tensors, and how to put arrays in their place."""

    def shape(x: Any) -> Any:
        if not isinstance(x, leafax.Tensor):
            return x
        return jax.ShapeDtypeStruct(tuple(x.shape), jax.dtypes.canonicalize_dtype(x.dtype.np))

    return abstract_shapes(jax.tree.map(shape, tree))


def abstract_shapes(tree: Any) -> tuple[list[Any], Callable[[Sequence[Any]], Any]]:
    """Return the `ShapeDtypeStruct`s in a tree, and how to put arrays in their place."""
    flat, treedef = jax.tree.flatten(tree)
    places = [i for i, x in enumerate(flat) if isinstance(x, jax.ShapeDtypeStruct)]
    shapes = [flat[i] for i in places]

    def fill(arrays: Sequence[Any]) -> Any:
        filled = list(flat)
        for i, array in zip(places, arrays, strict=True):
            filled[i] = array
        return jax.tree.unflatten(treedef, filled)

    return shapes, fill


@functools.cache
def flags_of(function: Any) -> tuple[Flag, ...]:
    """Return the parameters of a method that switch training: name, position, meaning of True."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return tuple(
        (p.name, None if p.kind is p.KEYWORD_ONLY else i, FLAGS[p.name])
        for i, p in enumerate(parameters)
        if p.name in FLAGS
    )


def with_flags(
    flags: tuple[Flag, ...], training: bool, args: Any, kwargs: dict[str, Any]
) -> tuple[dict[str, Any], bool]:
    """Return keyword arguments with the flags left out, and whether the call trains.

    A flag that the caller gives wins over the model's mode, for this call.
    """
    left_out = []
    for name, position, meaning in flags:
        given = kwargs.get(name)
        if given is None and position is not None and len(args) > position:
            given = args[position]
        elif given is None:
            left_out.append((name, meaning))
        if given is not None:
            training = bool(given) is meaning
    return {**kwargs, **{n: training is m for n, m in left_out}}, training
