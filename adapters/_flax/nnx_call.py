"""An nnx module's leaves, and its call as a pure function of them."""

from __future__ import annotations

import contextlib
import contextvars
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from leafax.functional.program.paths import paths

from .._models import calls
from .._models.by_id import ById
from .._models.select import check_rule
from .error_places import placed_errors
from .nnx_edits import plain_attributes, refuse_edits
from .recomputed import NnxRecomputed

#: Layers that are linear in their variable `kernel`.
LINEAR = {nnx.Linear: "dense", nnx.LinearGeneral: "general", nnx.Conv: "conv", nnx.Einsum: "einsum"}


class View(NamedTuple):
    """A module's leaves at one time, in the order of its flat state."""

    graphdef: Any
    treedef: Any
    names: tuple[str, ...]
    leaves: tuple[Any, ...]
    kinds: tuple[type, ...]  # classes of the variables
    owners: dict[str, Any]  # the modules that have statistics, by the statistics' path
    pures: dict[Any, Merge]


class Shared:
    """State that a model and its submodules have in common.

    Attributes:
      rules: by class of variable.
      borrowed: the arrays that the modules came with.
      keys: for the tensors that hold the data of random keys, the keys' implementation.
      adapters: low-rank factors, by kernel.
      dtype: what layers without one of their own compute in.
      modes: modules that were told to train (True) or to evaluate.
      still: modules whose statistics are stopped, and what their flag was before.
      quiet: modules whose dropout is stopped, likewise; `quiet_parameters` were frozen so.
      recomputed: modules that backward calls again.
      structure: counts changes of the module's attributes; what follows is forgotten then.
      models, views: of submodules; views by mode.
      flags, tokens: the attributes that switch modes, and their values.
      again: paths of the modules that backward calls again, seen from a module.
    """

    def __init__(self, rules: Mapping[type, str]) -> None:
        self.rules = {nnx.Param: "trainable", nnx.Variable: "buffer", **rules}
        self.keys = ById()
        self.borrowed = calls.Borrowed()
        self.adapters = ById()
        self.dtype: Any = None
        self.modes, self.still = ById(), ById()
        self.quiet, self.quiet_parameters = ById(), ById()
        self.recomputed = ById()
        self.hooks: dict[int, tuple[Any, Any]] = {}  # of parts: the module, and its hook
        self.restructured()

    def rule(self, kind: type) -> str:
        """Return the rule for variables of this class."""
        return next((self.rules[c] for c in kind.__mro__ if c in self.rules), "buffer")

    def restructured(self) -> None:
        self.models, self.flags, self.tokens, self.again = ById(), ById(), ById(), ById()
        self.views: dict[Any, View] = {}


def checked_rules(rules: Mapping[type, str], module: Any) -> Mapping[type, str]:
    """Return the rules; raise if one is unknown or no variables can have them."""
    kinds = {type(v) for _, v in nnx.iter_graph(module) if isinstance(v, nnx.Variable)}
    for cls, rule in rules.items():
        if not (isinstance(cls, type) and issubclass(cls, nnx.Variable)):
            raise TypeError(f"rules are for classes of nnx variables, got {cls!r}")
        if not any(issubclass(kind, cls) for kind in kinds):
            names = sorted(kind.__name__ for kind in kinds)
            raise ValueError(f"no `{cls.__name__}` to have a rule; there are {names}")
        check_rule(cls.__name__, rule)
    return rules


_TAGGERS: contextvars.ContextVar[Any] = contextvars.ContextVar("taggers", default=())


@contextlib.contextmanager
def _pushed(tagger: Any) -> Iterator[None]:
    token = _TAGGERS.set((*_TAGGERS.get(), tagger))
    try:
        yield
    finally:
        _TAGGERS.reset(token)


@contextlib.contextmanager
def _tagged(root: Any, tagger: Any) -> Iterator[None]:
    """Send the calls of a (traced, soon forgotten) module's submodules through the tagger."""
    with _changed_classes(root, lambda cls, path: _calling(cls, path, tagger)):
        yield


@contextlib.contextmanager
def _changed_classes(root: Any, change: Callable[[Any, str], Any]) -> Iterator[None]:
    """Give a module and its submodules the classes that `change` makes of theirs and their path."""
    before = []
    for path, module in list(nnx.iter_modules(root)):
        before.append((module, type(module)))
        kind = change(type(module), ".".join(map(str, path)))
        object.__setattr__(module, "__class__", kind)
    try:
        yield
    finally:
        for module, cls in before:
            object.__setattr__(module, "__class__", cls)


def _calling(cls: Any, path: str, tagger: Any) -> Any:
    if not callable(getattr(cls, "__call__", None)):  # noqa: B004
        return cls

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return tagger(path, cls, functools.partial(cls.__call__, self), args, kwargs)

    return type(cls.__name__, (cls,), {"__call__": call, "__module__": cls.__module__})


@functools.lru_cache(1 << 12)  # JAX holds on to each class of nnx modules
def _named(cls: Any, path: str) -> Any:
    """Return a class whose calls have the module's path in the metadata of XLA's instructions."""

    def tagger(path: str, cls: Any, call: Any, args: Any, kwargs: Any) -> Any:
        with jax.named_scope(path or cls.__name__):
            return call(*args, **kwargs)

    return _calling(cls, path, tagger)


def _path_in(root: Any, x: Any) -> str | None:
    """Return the dotted path of a module below `root`; None for other objects."""
    if not isinstance(x, nnx.Module):
        return None
    found = (path for path, part in nnx.iter_modules(root) if part is x)
    path = next(found, None)
    return None if path is None else ".".join(map(str, path))


class Merge(calls.Pure):
    """Merge the module from its leaves, call it, and see which leaves it replaced."""

    def __init__(
        self,
        name: str,
        graphdef: Any,
        treedef: Any,
        names: tuple[str, ...],
        kinds: tuple[type, ...],
        impls: tuple[Any, ...],
        still: frozenset[int],
        method: str,
        draws: bool,
        dtype: Any = None,
        recomputed: frozenset[str] = frozenset(),
    ) -> None:
        facts = graphdef, treedef, names, kinds, impls, still, method, draws, dtype, recomputed
        super().__init__(name, *facts)
        self.draws, self.dtype, self.recomputed = draws, dtype, recomputed
        self.graphdef, self.treedef, self.names = graphdef, treedef, names
        self.kinds, self.impls, self.still, self.method = kinds, impls, still, method
        self.keys = [i for i, impl in enumerate(impls) if impl is not None]
        self.counts = [i for i, kind in enumerate(kinds) if issubclass(kind, nnx.RngCount)]

    def __call__(
        self, leaves: Sequence[Any], key: Any, args: Any, kwargs: Any
    ) -> tuple[Any, dict[int, Any]]:
        self.note(leaves, key, args, kwargs)
        held = list(leaves)
        for i in self.keys:
            held[i] = jax.random.wrap_key_data(held[i], impl=self.impls[i])
        if key is not None:
            self.reseed(held, key)
        module: Any = nnx.merge(self.graphdef, jax.tree.unflatten(self.treedef, held))
        if self.dtype is not None:
            parts: Any = [part for _, part in nnx.iter_modules(module)]
            for part in parts:
                if vars(part).get("dtype", self.dtype) is None:
                    part.dtype = self.dtype
        before = plain_attributes(module)
        with contextlib.ExitStack() as scopes:
            scopes.enter_context(placed_errors(functools.partial(_path_in, module)))
            scopes.enter_context(_changed_classes(module, _named))
            for tagger in _TAGGERS.get():
                scopes.enter_context(_tagged(module, tagger))
            if self.recomputed:
                scopes.enter_context(_tagged(module, NnxRecomputed(self.recomputed)))
            out = getattr(module, self.method)(*args, **kwargs)
        refuse_edits(self.method, before, module, self.names, self.kinds)
        return out, self.changed(nnx.state(module), held, leaves)

    def tagging(self, tagger: Any) -> contextlib.AbstractContextManager[None]:
        def below(path: str, kind: type, call: Any, args: Any, kwargs: Any) -> Any:
            return tagger(path, call, args, kwargs) if path else call(*args, **kwargs)

        return _pushed(below)

    def adding(self, adder: Any) -> contextlib.AbstractContextManager[None]:
        def tagger(path: str, cls: type, call: Any, args: Any, kwargs: Any) -> Any:
            out = call(*args, **kwargs)
            kind = next((k for some, k in LINEAR.items() if issubclass(cls, some)), None)
            if kind is None:
                return out
            module = call.args[0]
            told = args[1] if len(args) > 1 else kwargs.get("einsum_str")
            equation = told or getattr(module, "einsum_str", None)
            linear = calls.Linear(kind, module, module.kernel.shape, equation)
            return adder(path, linear, args[0] if args else kwargs["inputs"], out)

        return _pushed(tagger)

    def module_of(self, place: int) -> str:
        return self.names[place].rpartition(".")[0]

    def reseed(self, held: list[Any], key: Any) -> None:
        """Restart every stream from a key of leafax's generator."""
        base = jax.random.wrap_key_data(key, impl="threefry2x32")
        for i in self.keys:
            stream = jax.random.fold_in(base, i)
            shape = held[i].shape
            held[i] = jax.random.split(stream, shape) if shape else stream
        for i in self.counts:
            held[i] = jnp.zeros_like(held[i])

    def changed(self, state: Any, held: list[Any], leaves: Sequence[Any]) -> dict[int, Any]:
        after = dict(zip(paths(state), jax.tree.leaves(state), strict=True))
        found = {}
        for i, name in enumerate(self.names):
            new = after.get(name, held[i])
            if new is held[i] or i in self.still:
                continue
            if i in self.keys:
                if not self.draws:  # else it begins anew in each call
                    found[i] = jax.random.key_data(new)
                continue
            # A count goes on from where it was, though the stream began anew.
            found[i] = leaves[i] + new if i in self.counts and held[i] is not leaves[i] else new
        return found
