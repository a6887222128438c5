"""Looking into a model: activations of submodules by path, their gradients, and hooks.

A Flax model's call is one opaque op. While somebody watches, it is traced with names at the
outputs (and inputs) of the watched submodules, and the traced program is cut there into several
ops. What lies at a cut is a tensor like any other: it retains its gradient, takes hooks, and may be
replaced. All of it stays in the one compiled step, and the model is not edited.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax

import leafax
from leafax.autograd import Function
from leafax.functional import select, tag

from ._call import Pure, abstract
from ._select import near
from ._split import Boundary, Split, split


class Watched(Mapping[str, Any]):
    """What `model.watch` returns: activations of the last call, by path of the submodule.

    A submodule that the model calls several times has the last one here, all in `every[path]`.

    Attributes:
      every: lists of activations by path, in the order of the calls.
    """

    def __init__(self, patterns: tuple[Any, ...], grad: bool) -> None:
        self.patterns, self.grad = patterns, grad
        self.every: dict[str, list[Any]] = {}
        self._stop: Callable[[], None] = lambda: None

    def __getitem__(self, path: str) -> Any:
        path = path.replace("/", ".")
        if path not in self.every:
            raise KeyError(
                f"`{path}` has no activation; the nearest that have are {near(path, self.every)}"
                if self.every
                else f"`{path}` has no activation: call the model first"
            )
        return self.every[path][-1]

    def __iter__(self) -> Iterator[str]:
        return iter(self.every)

    def __len__(self) -> int:
        return len(self.every)

    def remove(self) -> None:
        """Watch no longer; what was seen stays."""
        self._stop()

    def __enter__(self) -> Watched:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()

    def see(self, path: str, out: Any) -> Any:
        """Keep an activation; returns what takes its place."""

        def ready(t: Any) -> Any:
            wanted = self.grad and leafax.is_grad_enabled() and _is_tensor(t)
            if not (wanted and t.is_floating_point()):
                return t
            if not t.requires_grad:
                t = t.detach().requires_grad_()
            elif not t.is_leaf:
                t.retain_grad()
            return t

        out = jax.tree.map(ready, out, is_leaf=_is_tensor)
        self.every.setdefault(path, []).append(out)
        return out


class Hook(NamedTuple):
    """A function that is called with a submodule's values.

    Attributes:
      kind: `"forward_pre"`, `"forward"` or `"full_backward"`.
    """

    kind: str
    pattern: Any
    fn: Callable[..., Any]


class Watchers:
    """All that watches one model. Empty for most."""

    def __init__(self) -> None:
        self.watched: list[Watched] = []
        self.hooks: dict[int, Hook] = {}
        self._next = 0

    def __bool__(self) -> bool:
        return bool(self.watched or self.hooks)

    def watch(self, patterns: tuple[Any, ...], grad: bool) -> Watched:
        made = Watched(tuple(map(_dotted, patterns)), grad)
        self.watched.append(made)
        made._stop = lambda: self.watched.remove(made) if made in self.watched else None
        return made

    def hook(self, kind: str, pattern: Any, fn: Callable[..., Any]) -> Handle:
        number = self._next = self._next + 1
        self.hooks[number] = Hook(kind, _dotted(pattern), fn)
        return Handle(self.hooks, number)

    def call(self, model: Any, pure: Pure, leaves: Any, args: Any, kwargs: Any) -> Any:
        """Record the call in pieces, and show those who watch what lies between."""
        names = (
            tuple(p for w in self.watched for p in w.patterns),
            tuple(h.pattern for h in self.hooks.values() if h.kind == "forward"),
            tuple(h.pattern for h in self.hooks.values() if h.kind != "forward"),
        )
        key = leafax.default_generator.key() if pure.draws else None
        plan = _plan(pure, names, (leaves, key, args, kwargs))
        for w in self.watched:
            w.every.clear()
        out, changed = plan.run((leaves, key, args, kwargs), _Between(self, model, plan.paths))
        for place, new in changed.items():
            leaves[place].data = new
        return out


class Handle:
    """Removes a hook."""

    def __init__(self, hooks: dict[int, Hook], number: int) -> None:
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Call the hook no longer."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *exc: Any) -> None:
        self.remove()


class _Between:
    """What happens at the cuts of one call."""

    def __init__(self, watchers: Watchers, model: Any, paths: list[str]) -> None:
        self.model = model
        self.watched = [(_matching(w.patterns, paths), w) for w in watchers.watched]
        self.hooks = [(_matching((h.pattern,), paths), h) for h in watchers.hooks.values()]
        self.inputs: dict[tuple[str, int], Any] = {}
        self.states: dict[tuple[str, int], list[_BackwardState]] = {}

    def __call__(self, at: Boundary, value: Any) -> Any:
        place = (at.path, at.turn)
        hooks = [h for paths, h in self.hooks if at.path in paths]
        if at.kind == "in":
            for h in hooks:
                if h.kind == "forward_pre":
                    new = h.fn(self._part(at.path), value)
                    value = value if new is None else new if isinstance(new, tuple) else (new,)
            backward = [h.fn for h in hooks if h.kind == "full_backward"]
            if backward and leafax.is_grad_enabled():
                state = _BackwardState(self._part(at.path), backward)
                self.states.setdefault(place, []).append(state)
                value = state.enter(value)
            self.inputs[place] = value
            return value
        for h in hooks:
            if h.kind == "forward":
                new = h.fn(self._part(at.path), self.inputs.get(place, ()), value)
                value = value if new is None else new
        for state in self.states.get(place, ()):
            value = state.leave(value)
        for paths, w in self.watched:
            if at.path in paths:
                value = w.see(at.path, value)
        return value

    def _part(self, path: str) -> Any:
        try:
            return self.model.get_submodule(path)
        except (AttributeError, IndexError, TypeError):
            return path  # it has no parameters


class _BackwardState:
    """One call of a submodule with full backward hooks: they see the gradients of its inputs
    and outputs together, as soon as all are there."""

    def __init__(self, part: Any, hooks: list[Callable[..., Any]]) -> None:
        self.part, self.hooks = part, hooks
        self.outputs: tuple[Any, ...] = ()
        self.entered = False

    def enter(self, value: Any) -> Any:
        flat, treedef = jax.tree.flatten(value, is_leaf=_is_tensor)
        places = [i for i, t in enumerate(flat) if _is_tensor(t) and t.requires_grad]
        if places:
            self.entered = True
            out = _Inputs.apply(self, *[flat[i] for i in places])
            for i, t in zip(places, out if isinstance(out, tuple) else (out,), strict=True):
                flat[i] = t
        self.places, self.n = places, len(flat)
        return jax.tree.unflatten(treedef, flat)

    def leave(self, value: Any) -> Any:
        flat, treedef = jax.tree.flatten(value, is_leaf=_is_tensor)
        places = [i for i, t in enumerate(flat) if _is_tensor(t) and t.requires_grad]
        if places:
            out = _Outputs.apply(self, *[flat[i] for i in places])
            for i, t in zip(places, out if isinstance(out, tuple) else (out,), strict=True):
                flat[i] = t
        return jax.tree.unflatten(treedef, flat)

    def call(self, grads: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        full: Any = [None] * self.n
        for i, g in zip(self.places, grads or (), strict=False):
            full[i] = g
        for hook in self.hooks:
            new = hook(self.part, tuple(full), self.outputs)
            if new is not None and grads is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(full):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, got "
                        f"{len(new)}, but expected {len(full)}"
                    )
                full = list(new)
        return tuple(full[i] for i in self.places)


class _Inputs(Function):
    """The identity, where a submodule's inputs enter."""

    @staticmethod
    def forward(ctx: Any, state: _BackwardState, *xs: Any) -> Any:
        ctx.state = state
        return tuple(x.clone() for x in xs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *(ctx.state.call(grads) or ()))


class _Outputs(Function):
    """The identity, where its outputs leave."""

    @staticmethod
    def forward(ctx: Any, state: _BackwardState, *xs: Any) -> Any:
        ctx.state = state
        return tuple(x.clone() for x in xs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.outputs = grads
        if not ctx.state.entered:  # its inputs have no gradient
            ctx.state.call(None)
        return (None, *grads)


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
        watched, forward, both = (any(_matches(p, path) for p in some) for some in self.names)
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


def _plan(pure: Pure, names: Any, arguments: Any) -> Split:
    shapes, fill = abstract(arguments)
    static = jax.tree.map(lambda x: None if _is_tensor(x) else x, arguments, is_leaf=_is_tensor)
    key = (names, tuple((s.shape, s.dtype) for s in shapes), repr(static))
    found = pure.splits.get(key)
    if found is not None:
        return found  # type: ignore[no-any-return]
    tagger = Tagger(names)

    def run(*arrays: Any) -> Any:
        with pure.tagging(tagger):
            return pure(*fill(arrays))

    made = split(run, shapes, tagger.trees, pure.__name__)
    made.paths = list(tagger.seen)
    for pattern in {p for some in names for p in some}:
        if not _matching((pattern,), made.paths):
            text = getattr(pattern, "pattern", pattern)
            raise ValueError(
                f"`{text}` matches no submodule that the call runs; the nearest are "
                f"{near(str(text), made.paths)}"
            )
    pure.splits[key] = made
    return made


def _matching(patterns: tuple[Any, ...], paths: list[str]) -> set[str]:
    return {path for path in paths if any(_matches(p, path) for p in patterns)}


def _matches(pattern: Any, path: str) -> bool:
    """Whether a pattern means this very submodule, not one that it lies in."""
    if isinstance(pattern, re.Pattern):
        return pattern.fullmatch(path) is not None
    if pattern == path:
        return True
    whole = pattern.split(".")
    if "**" not in whole and len(whole) != path.count(".") + 1:
        return False
    try:
        select({path: 0}, pattern)
    except ValueError:
        return False
    return bool(path)


def _dotted(pattern: Any) -> Any:
    return pattern.replace("/", ".") if isinstance(pattern, str) else pattern


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)
