"""Submodules by path whose activations are not kept for backward but computed again."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self

import jax

from .groups import text_of
from .select import matching, near, outermost


class Recomputing(ABC):
    """The part of a model that says which submodules are computed again in backward."""

    @abstractmethod
    def _parts(self) -> list[str]:
        """Return paths of the submodules that are known by now."""

    @abstractmethod
    def _classes(self) -> dict[str, type]:
        """Return the class of each submodule, by path."""

    @abstractmethod
    def _recompute(self, paths: set[str]) -> None:
        """Compute these submodules again in backward, and no others."""

    def checkpoint(self, *what: Any) -> Self:
        """Keep no activations of the selected submodules for backward: compute them again there.

        Each is a segment of its own: its inputs are kept. Values, gradients, random masks and
        statistics are what they are without. It trades a second forward pass of these submodules
        for memory: for a model of `n` equal blocks, about `1 / n` of the activations stays.

        Args:
          what: as in `freeze`, but of submodules: globs over dotted paths (`"blocks.*"` is each
            block), compiled regular expressions that match whole paths, and classes. Of what one
            of them matches the outermost count. They replace those of an earlier call, and
            without any all is kept again.

        Returns:
          The model itself.

        Raises:
          ValueError: a pattern that matches nothing; the message has the nearest paths.
          RuntimeError: classes of a linen model before its first call.

        >>> import leafax
        >>> from flax import nnx
        >>> from leafax.adapters.nnx import Model
        >>> rngs = nnx.Rngs(0)
        >>> blocks = [nnx.Linear(4, 4, rngs=rngs) for _ in range(3)]
        >>> model = Model(nnx.Sequential(*blocks)).checkpoint("layers.*")
        >>> model(leafax.ones(2, 4)).sum().backward()
        """
        chosen: set[str] = set()
        for one in what:
            chosen |= self._choose(one)
        self._recompute(chosen)
        return self

    def _choose(self, one: Any) -> set[str]:
        if isinstance(one, type):
            classes = self._classes()
            chosen = {path for path, kind in classes.items() if issubclass(kind, one)}
            known = [kind.__name__ for kind in classes.values()]
        elif isinstance(one, (str, re.Pattern)):
            known = self._parts()
            chosen = matching((one,), known)
        else:
            raise TypeError(
                f"`{type(one).__name__}` selects no submodules: give globs, compiled regular "
                f"expressions or module classes"
            )
        if not chosen:
            text = text_of(one)
            raise ValueError(
                f"`{text}` matches no submodule; the nearest are {near(text, dict.fromkeys(known))}"
            )
        return outermost(chosen)


def on_arrays(
    call: Callable[[Any, Any, Any], Any], args: Any, kwargs: Any
) -> tuple[Callable[[Any, Sequence[Any]], list[Any]], list[Any], Callable[[Sequence[Any]], Any]]:
    """Split a call into a function of the arrays among its arguments, and what is static.

    Args:
      call: of a module (or what it is made of), of its arguments and its keyword arguments.

    Returns:
      The function, of a module and arrays, which returns the arrays of the result; the arrays; and
      how to put arrays into the result's tree, once the function was traced.
    """
    flat, tree = jax.tree.flatten((args, kwargs))
    places = [i for i, x in enumerate(flat) if isinstance(x, jax.Array)]
    results: list[Any] = []

    def function(module: Any, arrays: Sequence[Any]) -> list[Any]:
        out = call(module, *jax.tree.unflatten(tree, _filled(flat, places, arrays)))
        made, shape = jax.tree.flatten(out)
        at = [i for i, x in enumerate(made) if isinstance(x, jax.Array)]
        kept = [None if i in at else x for i, x in enumerate(made)]
        results[:] = [shape, kept, at]
        return [made[i] for i in at]

    def result(arrays: Sequence[Any]) -> Any:
        shape, kept, at = results
        return jax.tree.unflatten(shape, _filled(kept, at, arrays))

    return function, [flat[i] for i in places], result


def _filled(flat: list[Any], places: list[int], arrays: Sequence[Any]) -> list[Any]:
    made = list(flat)
    for i, array in zip(places, arrays, strict=True):
        made[i] = array
    return made


def parents(names: list[str]) -> list[str]:
    """Return the paths of all submodules that have these tensors, from the top."""
    found: dict[str, None] = {}
    for name in names:
        steps = name.split(".")
        found.update((".".join(steps[:n]), None) for n in range(1, len(steps)))
    return list(found)
