"""A submodule of a linen model as a model of its own: `model.backbone.stem`."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Self

from leafax.autograd.graph import RemovableHandle

from .._inside.watch import Watched
from .._models import calls
from .._models.by_id import ById
from .._models.select import Tensors
from . import model
from .assigned import first_names, refuse_assignment
from .linen_call import Inside, NotAssigned, Path, within

if TYPE_CHECKING:
    from ..linen import Model


class Part(model.Model):
    """A submodule of a linen model: the same tensors, by paths from here."""

    def __init__(self, root: Model, path: Path) -> None:
        self._root, self._path = root, path
        self._before = ".".join(path) + "."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the submodule on its own.

        Raises:
          AttributeError: a compact method makes it, and the model was not called yet.
        """
        return self._call_on({}, args, kwargs)

    def _call_on(
        self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any], method: str = "__call__"
    ) -> Any:
        root, training = self._root, self.training
        made = root._parts_made.get(training, {}).get(self._path)
        try:
            return root._run(Inside(self._path, training, made, method), args, kwargs, swap)
        except NotAssigned:
            made = root._made(self._path, training)
            if made is None:
                raise
        return root._run(Inside(self._path, training, made, method), args, kwargs, swap)

    def __getattr__(self, name: str) -> Any:
        before = f"{self._before}{name}."
        if not name.startswith("_") and any(
            n.startswith(before) for part in self._root._tensors() for n in part
        ):
            return Part(self._root, (*self._path, name))
        kind = None if name.startswith("_") else self._kind()
        if callable(getattr(kind, name, None)):
            return functools.partial(self._named_method, name)
        raise AttributeError(f"`{self._before[:-1]}` has no part or method `{name}`")

    def _kind(self) -> type | None:
        """Return the submodule's class, as far as it is known."""
        try:
            return self._root._classes().get(self._before[:-1])
        except RuntimeError:  # the model was not called yet
            return type(getattr(self._root._module, self._path[0], None))

    def _named_method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._call_on({}, args, kwargs, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            refuse_assignment(self, name, value)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *first_names(self._tensors())})

    def _hook(self, kind: str, path: Any, hook: Callable[..., Any]) -> RemovableHandle:
        return self._root._hook(kind, self._below(path), hook)

    def watch(self, *what: Any, grad: bool = True) -> Watched:
        return self._root.watch(*map(self._below, what), grad=grad)

    def _below(self, pattern: Any) -> Any:
        """Turn a pattern of paths from here into one of paths of the whole model."""
        if isinstance(pattern, re.Pattern):
            return re.compile(f"{re.escape(self._before)}(?:{pattern.pattern})", pattern.flags)
        return (self._before + pattern).rstrip(".")

    def _tensors(self) -> tuple[Tensors, Tensors]:
        below, n = self._before, len(self._before)
        parameters, buffers = self._root._tensors()
        return (
            {name[n:]: t for name, t in parameters.items() if name.startswith(below)},
            {name[n:]: t for name, t in buffers.items() if name.startswith(below)},
        )

    def _statistics(self) -> list[str]:
        n = len(self._before)
        return [s[n:] for s in self._root._statistics() if s.startswith(self._before)]

    def _stopped(self) -> set[str]:
        n = len(self._before)
        return {s[n:] for s in self._root._stopped() if s.startswith(self._before)}

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        self._root._stop_statistics({self._before + name for name in names}, stop)

    def _quieten(self, names: set[str], stop: bool) -> None:
        self._root._quieten({self._before + name for name in names}, stop)

    def _quiet(self) -> set[str]:
        n = len(self._before)
        return {s[n:] for s in self._root._quiet() if s.startswith(self._before)}

    def _parts(self) -> list[str]:
        n = len(self._before)
        return [path[n:] for path in self._root._parts() if path.startswith(self._before)]

    def _recompute(self, paths: set[str]) -> None:
        others = {p for p in self._root._recomputed if not p.startswith(self._before)}
        self._root._recompute(others | {self._before + path for path in paths})

    def compute_in(self, dtype: Any) -> Self:
        raise RuntimeError("tell the whole model what to compute in, not a part of it")

    def _loan(self) -> calls.Borrowed:
        return self._root._loan()

    def _adapted_by(self) -> ById:
        return self._root._adapted_by()

    def _classes(self) -> dict[str, type]:
        n = len(self._before)
        found = self._root._classes()
        return {path[n:]: kind for path, kind in found.items() if path.startswith(self._before)}

    def _order(self) -> list[str]:
        n = len(self._before)
        return [name[n:] for name in self._root._order() if name.startswith(self._before)]

    def _name(self) -> str:
        return f"{self._root._name()}.{self._before[:-1]}"

    @property
    def training(self) -> bool:
        return self._root.training and not within(self._path, self._root._evaluating)

    def train(self, mode: bool = True) -> Self:
        root, path = self._root, self._path
        if not mode:
            root._evaluating |= {path}
            return self
        kept = frozenset(p for p in root._evaluating if p[: len(path)] != path)
        if not root._training or within(path, kept):
            raise RuntimeError(
                f"`{self._name()}` cannot train while what it is part of evaluates: call "
                f"`model.train()`, then `eval()` on the parts that should not"
            )
        root._evaluating = kept
        return self

    def mask(self) -> Any:
        return functools.reduce(lambda tree, name: tree[name], self._path, self._root.mask())
