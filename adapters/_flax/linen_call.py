"""A linen module's call as a pure function of flat leaves, and layers switched from outside."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import flax
import jax
from flax import linen as nn

import leafax
from leafax.functional.program.paths import paths

from .._models import calls
from .error_places import placed_errors
from .recomputed import linen_recomputed

Path = tuple[str, ...]


#: Layers that are linear in their parameter `kernel`.
LINEAR = {nn.Dense: "dense", nn.DenseGeneral: "general", nn.Conv: "conv", nn.Einsum: "einsum"}


class Mode(NamedTuple):
    """The part of a model's state that changes what a call computes."""

    training: bool
    mutable: tuple[str, ...]  # collections that the call may write
    still: frozenset[str]  # statistics that stay as they are, as `collection.path`
    evaluating: frozenset[Path]  # parts that are in evaluation mode by themselves
    dtype: Any = None  # what layers without a `dtype` of their own compute in
    recomputed: frozenset[str] = frozenset()  # submodules that backward calls again


class NotAssigned(AttributeError):
    """A submodule that a compact method makes was asked for by its path."""


class Inside(NamedTuple):
    """A method that calls a submodule, as `apply(method=...)` takes it.

    Attributes:
      made: the submodule as the model's own call makes it, unbound; None where it is found by
        attribute.
      method: of the submodule.
    """

    path: Path
    training: bool
    made: Any = None
    method: str = "__call__"

    def __call__(self, module: Any, *args: Any, **kwargs: Any) -> Any:
        part = self._bound(module) if self.made is not None else self._attribute(module)
        flags = calls.flags_of(getattr(type(part), self.method))
        kwargs, _ = calls.with_flags(flags, self.training, args, kwargs)
        return getattr(part, self.method)(*args, **kwargs)

    def _attribute(self, module: Any) -> Any:
        for i, name in enumerate(self.path):
            try:
                module = getattr(module, name)
            except AttributeError:
                raise NotAssigned(
                    f"`{'.'.join(self.path[: i + 1])}` is made inside a compact `__call__`, so "
                    f"what it is is known once the model was called: call it on a batch first, or "
                    f"assign it in `setup`"
                ) from None
        return module

    def _bound(self, module: Any) -> Any:
        scope = module.scope
        for name in self.path:
            scope = scope.push(name, reuse=True)
        return self.made.clone(parent=scope)


class Apply(calls.Pure):
    """`module.apply` on flat leaves."""

    def __init__(
        self, module: Any, method: Any, layout: Any, mode: Mode, streams: tuple[str, ...]
    ) -> None:
        super().__init__(type(module).__name__, module, method, layout, mode, streams)
        self.module, self.method, self.mode = module, method, mode
        self.treedef, names = layout
        self.place = {name: i for i, name in enumerate(names)}
        self.streams = dict.fromkeys(("params", "dropout", *streams))
        self.norms = frozenset(
            tuple(full.split(".")[1:-1]) for full in mode.still if full.startswith("batch_stats.")
        )

    def __call__(
        self, leaves: Sequence[Any], key: Any, args: Any, kwargs: Any
    ) -> tuple[Any, dict[int, Any]]:
        self.note(leaves, key, args, kwargs)
        variables = jax.tree.unflatten(self.treedef, leaves)
        rngs = None if key is None else self.rngs(key)
        mutable: Any = list(self.mode.mutable) or False
        method = None if self.method == "__call__" else self.method
        switch = bool(self.norms or self.mode.evaluating)
        scope = nn.intercept_methods(self.switch_off) if switch else contextlib.nullcontext()
        again = linen_recomputed(self.mode.recomputed)
        with scope, self.computing(), placed_errors(_path_of), again:
            out = self.module.apply(
                variables, *args, rngs=rngs, mutable=mutable, method=method, **kwargs
            )
        return (out[0], self.changed(leaves, out[1])) if mutable else (out, {})

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        """Give layers that have no `dtype` of their own the model's for a call."""

        def intercept(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
            module = context.module
            if not hasattr(module, "dtype") or module.dtype is not None:
                return call(*args, **kwargs)
            object.__setattr__(module, "dtype", self.mode.dtype)
            try:
                return call(*args, **kwargs)
            finally:
                object.__setattr__(module, "dtype", None)

        with nn.intercept_methods(intercept) if self.mode.dtype else contextlib.nullcontext():
            yield

    def tagging(self, tagger: Any) -> contextlib.AbstractContextManager[Any]:
        def intercept(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
            path = ".".join(context.module.path)
            if not path or context.method_name != "__call__":
                return call(*args, **kwargs)
            return tagger(path, call, args, kwargs)

        return nn.intercept_methods(intercept)

    def adding(self, adder: Any) -> contextlib.AbstractContextManager[Any]:
        def intercept(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
            out = call(*args, **kwargs)
            module = context.module
            kind = next((k for cls, k in LINEAR.items() if isinstance(module, cls)), None)
            if context.method_name != "__call__" or kind is None:
                return out
            x = args[0] if args else kwargs["inputs"]
            told = args[1] if len(args) > 1 else kwargs.get("einsum_str")
            equation = told or getattr(module, "einsum_str", None)
            shape = nn.unbox(module.get_variable("params", "kernel")).shape
            return adder(".".join(module.path), calls.Linear(kind, module, shape, equation), x, out)

        return nn.intercept_methods(intercept)

    def module_of(self, place: int) -> str:
        return (
            next(n for n, i in self.place.items() if i == place).split(".", 1)[1].rpartition(".")[0]
        )

    def rngs(self, key: Any) -> dict[str, Any]:
        """Make a key for each stream; streams without a name of their own fall back to `params`."""
        base = jax.random.wrap_key_data(key, impl="threefry2x32")
        return {name: jax.random.fold_in(base, i) for i, name in enumerate(self.streams)}

    def changed(self, leaves: Sequence[Any], after: Any) -> dict[int, Any]:
        found = {}
        for name, leaf in zip(paths(after), jax.tree.leaves(after), strict=True):
            if name not in self.place:
                raise ValueError(
                    f"the call makes a variable `{name}`, which the model's variables lack: "
                    f"initialise the module so that it is there before making the model"
                )
            place = self.place[name]
            if leaf is not leaves[place] and name not in self.mode.still:
                found[place] = leaf
        return found

    def switch_off(self, call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        """Run a layer of a part that evaluates, or whose statistics are still, accordingly."""
        module = context.module
        flags = []
        if within(module.path, self.mode.evaluating):
            flags = [f for f in ("use_running_average", "deterministic") if hasattr(module, f)]
        elif module.path in self.norms and hasattr(module, "use_running_average"):
            flags = ["use_running_average"]
        if not flags or context.method_name != "__call__":
            return call(*args, **kwargs)
        parameters = list(inspect.signature(type(module).__call__).parameters)[1:]
        kwargs = {**dict(zip(parameters, args, strict=False)), **kwargs}
        before = {flag: getattr(module, flag) for flag in flags}
        try:
            for flag in flags:
                # The layer refuses an attribute and an argument at once, so only one is set.
                given = flag in parameters
                object.__setattr__(module, flag, None if given else True)
                if given:
                    kwargs[flag] = True
            return call(**kwargs)
        finally:
            for flag, value in before.items():
                object.__setattr__(module, flag, value)


def _path_of(x: Any) -> str | None:
    """Return the dotted path of a module that is bound in a call; None for other objects."""
    if not isinstance(x, nn.Module) or x.scope is None:
        return None
    return ".".join(x.scope.path)


def classes(pure: Apply) -> dict[str, type]:
    """Return the class of each submodule that a call runs, by dotted path."""
    found: dict[str, type] = {}

    def note(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        found[".".join(context.module.path)] = type(context.module)
        return call(*args, **kwargs)

    leaves, key, args, kwargs = pure.seen
    shapes, fill = calls.abstract_shapes((leaves, key, args, kwargs))
    with nn.intercept_methods(note):
        jax.eval_shape(lambda *arrays: pure(*fill(arrays))[0], *shapes)
    return found


def made_in(pure: Apply, seen: Any, training: bool) -> dict[Path, Any]:
    """Return the submodules that a call makes, unbound, by path.

    Args:
      seen: arguments of an earlier call, in whichever mode.
    """
    found: dict[Path, Any] = {}

    def note(call: Any, args: Any, kwargs: Any, context: Any) -> Any:
        found.setdefault(context.module.path, context.module.clone(parent=None))
        return call(*args, **kwargs)

    leaves, _, args, kwargs = seen
    told = {name: meaning for name, _, meaning in calls.flags_of(type(pure.module).__call__)}
    kwargs = {k: training is told[k] if k in told else v for k, v in kwargs.items()}
    key = jax.ShapeDtypeStruct((2,), "uint32")
    shapes, fill = calls.abstract_shapes((leaves, key, args, kwargs))
    with nn.intercept_methods(note):
        jax.eval_shape(lambda *arrays: pure(*fill(arrays))[0], *shapes)
    return found


def within(path: Path, parts: Iterable[Path]) -> bool:
    return any(path[: len(part)] == part for part in parts)


def needs_rng(pure: Apply, leaves: Any, args: Any, kwargs: Any) -> bool | None:
    """Return True if the module asks for random numbers; None where this cannot be told yet."""
    try:
        leafax.eval_shape(pure, leaves, None, args, kwargs)
    except flax.errors.InvalidRngError:
        return True
    except Exception:  # wrong arguments: the call itself raises, at the user's line
        return None
    return False
