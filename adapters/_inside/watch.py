"""Looking into a model: activations of submodules by path, their gradients, and hooks.

A Flax model's call is one opaque op. While somebody watches, it is traced with names at the
outputs (and inputs) of the watched submodules, and the traced program is cut there into several
ops. What lies at a cut is a tensor like any other: it retains its gradient, takes hooks, and may be
replaced. All of it stays in the one compiled step, and the model is not edited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import jax

import leafax
from leafax.autograd.graph import RemovableHandle

from .._models.calls import Pure, key_of, record, with_tensors
from .._models.select import matching, near
from .backward_hooks import BackwardState
from .boundary import Boundary
from .tagging import plan_of


class Watched(Mapping[str, Any]):
    """Activations of the last call, by path of the submodule; `model.watch` returns it.

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

    def __repr__(self) -> str:
        if not self.every:
            patterns = ", ".join(str(getattr(p, "pattern", p)) for p in self.patterns)
            return f"Watched({patterns}: no call yet)"
        seen = (f"{path}: {jax.tree.map(_kind, self[path], is_leaf=_is_tensor)}" for path in self)
        return f"Watched({', '.join(seen)})"

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
    """The watches and hooks of one model. Empty for most."""

    def __init__(self) -> None:
        self.watched: list[Watched] = []
        self.hooks: dict[int, Hook] = {}

    def __bool__(self) -> bool:
        return bool(self.watched or self.hooks)

    def watch(self, patterns: tuple[Any, ...], grad: bool) -> Watched:
        made = Watched(tuple(map(dotted, patterns)), grad)
        self.watched.append(made)
        made._stop = lambda: self.watched.remove(made) if made in self.watched else None
        return made

    def hook(self, kind: str, pattern: Any, fn: Callable[..., Any]) -> RemovableHandle:
        handle = RemovableHandle(self.hooks)
        self.hooks[handle.id] = Hook(kind, dotted(pattern), fn)
        return handle

    def call(self, model: Any, pure: Pure, leaves: Any, args: Any, kwargs: Any) -> Any:
        """Record the call in pieces, and show those who watch what lies between."""
        own = [h for h in self.hooks.values() if h.pattern == ""]
        if not own:
            return self._call(model, pure, leaves, args, kwargs)
        for h in own:
            if h.kind == "forward_pre":
                args = _as_args(h.fn(model, args), args)
        state = None
        backward = [h.fn for h in own if h.kind == "full_backward"]
        if backward and leafax.is_grad_enabled():
            state = BackwardState(model, backward)
            args = state.enter(args)
        out = self._call(model, pure, leaves, args, kwargs)
        for h in own:
            if h.kind == "forward":
                new = h.fn(model, args, out)
                out = out if new is None else new
        return out if state is None else state.leave(out)

    def _call(self, model: Any, pure: Pure, leaves: Any, args: Any, kwargs: Any) -> Any:
        parts = [h for h in self.hooks.values() if h.pattern != ""]
        if not (parts or self.watched):
            return record(pure, leaves, args, kwargs)
        names = (
            tuple(p for w in self.watched for p in w.patterns),
            tuple(h.pattern for h in parts if h.kind == "forward"),
            tuple(h.pattern for h in parts if h.kind != "forward"),
        )
        key = key_of(pure, leaves)
        args, kwargs = with_tensors((args, kwargs))
        plan = plan_of(pure, names, (leaves, key, args, kwargs))
        for w in self.watched:
            w.every.clear()
        out, changed = plan.run((leaves, key, args, kwargs), _Between(self, model, plan.paths))
        for place, new in changed.items():
            leaves[place].data = new
        return out


class _Between:
    """The work at the cuts of one call."""

    def __init__(self, watchers: Watchers, model: Any, paths: list[str]) -> None:
        self.model = model
        self.watched = [(matching(w.patterns, paths), w) for w in watchers.watched]
        self.hooks = [(matching((h.pattern,), paths), h) for h in watchers.hooks.values()]
        self.inputs: dict[tuple[str, int], Any] = {}
        self.states: dict[tuple[str, int], list[BackwardState]] = {}
        self.probes: dict[tuple[str, int], Any] = {}

    def __call__(self, at: Boundary, value: Any) -> Any:
        place = (at.path, at.turn)
        if at.kind == "probe":
            if any(w.grad and at.path in paths for paths, w in self.watched):
                value = self.probes[place] = jax.tree.map(_probe, value, is_leaf=_is_tensor)
            return value
        hooks = [h for paths, h in self.hooks if at.path in paths]
        if at.kind == "in":
            for h in hooks:
                if h.kind == "forward_pre":
                    value = _as_args(h.fn(self._part(at.path), value), value)
            backward = [h.fn for h in hooks if h.kind == "full_backward"]
            if backward and leafax.is_grad_enabled():
                state = BackwardState(self._part(at.path), backward)
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
            if at.path in paths and place in self.probes:
                w.every.setdefault(at.path, []).append(value)
            elif at.path in paths:
                value = w.see(at.path, value)
        if place in self.probes:
            jax.tree.map(_give_gradient, self.probes[place], value, is_leaf=_is_tensor)
        return value

    def _part(self, path: str) -> Any:
        try:
            return self.model.get_submodule(path)
        except (AttributeError, IndexError, TypeError):
            return path  # it has no parameters


def _as_args(new: Any, args: Any) -> Any:
    """Return the arguments after a hook that may have returned others."""
    return args if new is None else new if isinstance(new, tuple) else (new,)


def _probe(zeros: Any) -> Any:
    """Return what takes part in backward for values that are stacked by a loop."""
    if not (_is_tensor(zeros) and zeros.is_floating_point() and leafax.is_grad_enabled()):
        return zeros
    return leafax.zeros_like(zeros).requires_grad_()


def _give_gradient(probe: Any, seen: Any) -> None:
    """Give what was seen its probe's gradient."""

    def give(probe: Any) -> None:
        seen.grad = probe.grad

    if _is_tensor(probe) and probe.requires_grad:
        probe.register_post_accumulate_grad_hook(give)


def dotted(pattern: Any) -> Any:
    """Write a pattern with dots in place of slashes."""
    return pattern.replace("/", ".") if isinstance(pattern, str) else pattern


class _Kind(str):
    """A text that prints without quotes."""

    __repr__ = str.__str__


def _kind(x: Any) -> Any:
    if not _is_tensor(x):
        return x
    return _Kind(f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}")


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)
