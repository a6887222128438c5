"""Names for what goes in and out of submodules while a call is traced; the plan that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

import leafax
from leafax.functional.lowering.keys import with_keys
from leafax.functional.lowering.tags import tag

from .._models.calls import Pure, abstract
from .._models.select import matches, matching, near
from .boundary import Boundary
from .split import Split, split


class Tagger:
    """Names the inputs and outputs of submodules while a call is traced.

    Attributes:
      seen: paths of all submodules that were called.
      trees: structure of the values at each boundary.
    """

    def __init__(self, names: tuple[Any, Any, Any]) -> None:
        self.names = names
        self.seen: dict[str, int] = {}
        self.trees: dict[Boundary, Any] = {}

    def __call__(self, path: str, call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        count = self.seen.get(path, 0)
        self.seen[path] = count + 1
        watched, forward, both = (any(matches(p, path) for p in some) for some in self.names)
        if forward or both:
            args = self.tagged(Boundary("in", path, count), args)
        out = call(*args, **kwargs)
        return self.tagged(Boundary("out", path, count), out) if watched or forward or both else out

    def tagged(self, at: Boundary, value: Any) -> Any:
        flat, treedef = jax.tree.flatten(value)
        places = [i for i, x in enumerate(flat) if isinstance(x, jax.Array)]
        self.trees[at] = (treedef, [None if i in places else x for i, x in enumerate(flat)], places)
        for n, i in enumerate(places):
            flat[i] = tag(at.spell(n), flat[i])
        return jax.tree.unflatten(treedef, flat)


def plan_of(pure: Pure, names: Any, arguments: Any) -> Split:
    shapes, fill = abstract(arguments)
    static = jax.tree.map(lambda x: None if _is_tensor(x) else x, arguments, is_leaf=_is_tensor)
    key = (names, tuple((s.shape, s.dtype) for s in shapes), repr(static))
    found = pure.splits.get(key)
    if found is not None:
        return found  # type: ignore[no-any-return]
    tagger = Tagger(names)

    def run(*arrays: Any) -> Any:
        with pure.tagging(tagger):
            return pure(*with_keys(fill(arrays)))

    made = split(run, shapes, tagger.trees, pure.__name__)
    made.paths = list(tagger.seen)
    for pattern in {p for some in names for p in some}:
        if not matching((pattern,), made.paths):
            text = getattr(pattern, "pattern", pattern)
            raise ValueError(
                f"`{text}` matches no submodule that the call runs; the nearest are "
                f"{near(str(text), made.paths)}"
            )
    pure.splits[key] = made
    return made


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)
