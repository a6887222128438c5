"""`CompiledFunction`: a function whose calls are recorded, and then replayed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, update_wrapper
from typing import Any

from leafax.functional.program.transformation import transformation

from .._core.handle import Handle
from .._core.overrides.state import overrides
from .._core.run_log import fallbacks
from .._core.tree.trees import tree_flatten, tree_unflatten
from .._core.trie import State, local
from .._runtime.cut import cut
from .._runtime.observation import observe
from .._tracing.infer import user_line
from .._tracing.inputs import from_array
from .capture import COMPILE, Before, record_call
from .check import Snapshot, compare
from .conditions import MISS
from .python_state import PLAIN, NotReplayable, PythonState
from .recorded import Recorded
from .replay import Replay
from .saved import save_replay
from .span import Span

MOST = 8  # calls of one signature that are remembered: with other flags, gradients, parameters
MOST_SIGNATURES = 64  # whose oldest is forgotten
TRIES = 5  # recordings of one signature after which its calls are no longer recorded to be replayed


class _Signature:
    """All that is known of calls with arguments of one signature.

    Attributes:
      replays: of calls that were found to be the same each time.
      goes_on: its results have a graph, so a call is part of the program that goes on.
      last: the last recordings, by where in the trie they began, until another is the same.
      tries: recordings so far that could not be replayed.
    """

    def __init__(self) -> None:
        self.replays: list[Any] = []
        self.goes_on = False
        self.last: dict[State, Recorded] = {}
        self.tries = 0


class CompiledFunction:
    """A function that is recorded once and then replayed, by `leafax.compile`.

    Args:
      fn: the function.
      fullgraph: raise where a call cannot be replayed, and do not run it plainly instead.
      check: run each replayed call plainly as well, and compare.

    Attributes:
      reasons: why calls could not be replayed, the latest last.
    """

    #: What it remembers is no part of what the function reads.
    _unwatched = frozenset({"_signatures", "_groups", "reasons"})

    def __init__(
        self, fn: Callable[..., Any], fullgraph: bool = False, check: bool = False
    ) -> None:
        update_wrapper(self, fn, updated=())
        self._fn, self._fullgraph, self._check = fn, fullgraph, check
        self._signatures: dict[Any, _Signature] = {}
        self._groups: dict[int, Any] = {}
        self.reasons: list[str] = []
        self._name = getattr(fn, "__qualname__", type(fn).__name__)

    def __getattr__(self, name: str) -> Any:
        """Find what is not its own in what it calls, such as the parameters of a Flax model."""
        if name.startswith("__") or name == "_fn":
            raise AttributeError(name)
        return getattr(self._fn, name)

    def __reduce__(self) -> Any:
        return CompiledFunction, (self._fn, self._fullgraph, self._check)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        mode = local.mode
        if (
            mode.hooks or mode.dual or mode.counted or mode.anomaly or local.vmap is not None
            or local.cuts.capture is not None or local.cuts.uncut or overrides.modes
            or transformation() is not None
        ):  # fmt: skip
            return self._fn(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        found = self._signature(leaves, spec)
        if found is None:
            return self._fn(*args, **kwargs)
        known, tensors = found
        for replay in known.replays:
            if self._check and type(replay) is Replay:
                result = self._compare(replay, tensors, args, kwargs)
            else:
                result = replay.run(tensors)
            if result is not MISS:
                return result
        if known.tries >= TRIES or len(known.replays) >= MOST:
            return self._fn(*args, **kwargs)
        return self._record(known, leaves, tensors, spec, args, kwargs)

    def _compare(self, replay: Replay, tensors: list[Any], args: Any, kwargs: Any) -> Any:
        """Replay a call, call the function plainly as well, and compare."""
        before = Snapshot(replay.python, tensors)
        if replay.inputs(tensors) is None:
            return MISS
        return compare(
            self._name,
            before,
            lambda: replay.run(tensors, False),
            lambda: self._fn(*args, **kwargs),
        )

    def save(self, file: Any, *args: Any, **kwargs: Any) -> None:
        """Write a call to a file, to be read by `leafax.load_compiled`.

        It can run on a machine that has neither the model nor its Python.

        Args:
          file: a path, or a file that is open for writing bytes.
          args, kwargs: of a call; one with the same signature is replayed already.

        Raises:
          RuntimeError: no such call is replayed, or what it returns has a graph.
          TypeError: it returns something else than new tensors, or writes to its arguments.
        """
        leaves, spec = tree_flatten((args, kwargs))
        found = self._signature(leaves, spec)
        replays = [] if found is None else [r for r in found[0].replays if type(r) is Replay]
        if found is None or not replays:
            raise RuntimeError(
                f"`{self._name}` is not replayed for such arguments: call it with them until "
                f"`leafax.explain()` shows the same twice, a model under `no_grad()`, then save it"
            )
        save_replay(replays[-1], found[1], file)

    def _signature(self, leaves: list[Any], spec: Any) -> tuple[_Signature, list[Any]] | None:
        """Find what is known of calls with such arguments; None if they cannot be told apart."""
        key: list[Any] = [spec, local.mode]
        tensors = []
        for x in leaves:
            if isinstance(x, Handle):
                tensors.append(x)
                key.append(x._v.resting)
            elif type(x) in PLAIN:
                key += (type(x), x)
            else:
                key.append(x)
        ids = list(map(id, tensors))
        if len(set(ids)) < len(ids):  # one tensor in two places is one input
            key.append(tuple(map(ids.index, ids)))
        try:
            known = self._signatures.get(name := tuple(key))
        except TypeError:
            self._fall_back("an argument is neither a tensor nor hashable: pass a tensor")
            return None
        if known is None:
            known = self._signatures[name] = _Signature()
            if len(self._signatures) > MOST_SIGNATURES:
                del self._signatures[next(iter(self._signatures))]
        return known, tensors

    # ------------------------------------------------------------ recording

    def _record(
        self, known: _Signature, leaves: list[Any], tensors: list[Any], spec: Any, args: Any,
        kwargs: Any,
    ) -> Any:  # fmt: skip
        """Run a call plainly, and find out how to replay it."""
        try:
            python = PythonState(self._roots(leaves), self._groups)
        except NotReplayable as error:
            known.tries = TRIES
            self._fall_back(str(error))
            return self._fn(*args, **kwargs)
        given, stand_ins = tensors, frozenset[int]()
        if not known.goes_on:
            cut(COMPILE)
            given, stand_ins = _at_rest(tensors)
        if stand_ins:
            supply = iter(given)
            leaves = [next(supply) if isinstance(x, Handle) else x for x in leaves]
            args, kwargs = tree_unflatten(leaves, spec)
        before = Before(python, given, stand_ins)
        result, trace, capture, why = record_call(self._fn, args, kwargs)
        for step in capture.numbers:
            self._groups.setdefault(id(step.group), step.group)
        try:
            if trace is None:
                raise NotReplayable(why)
            python.renew()
            recorded = Recorded(trace, capture, before, result)
            if not recorded.live:
                recipe = cut(COMPILE, tuple(recorded.tensors))
                self._remember_whole(known, recorded, before, python, recipe)
            elif known.goes_on:
                self._remember_span(known, recorded, before, python)
            else:
                known.goes_on, known.last = True, {}
        except NotReplayable as error:
            if capture.stepped:
                cut(COMPILE)
            self._note(known, str(error))
        return result

    def _remember_whole(
        self, known: _Signature, recorded: Recorded, before: Before, python: PythonState,
        recipe: Any,
    ) -> None:  # fmt: skip
        if recipe is None:
            raise NotReplayable("it computes nothing")
        if self._is_settled(known, recorded):
            known.replays.append(Replay(recorded, recipe, python, before.arguments))
        recorded.release()

    def _remember_span(
        self, known: _Signature, recorded: Recorded, before: Before, python: PythonState
    ) -> None:
        if self._is_settled(known, recorded):
            spans = [x for x in known.replays if type(x) is Span]
            span = next((x for x in spans if x.continues(recorded)), None)
            if span is None:
                span = Span(recorded, before, python)
                known.replays.append(span)
            span.remember(recorded, before)
        recorded.release()

    def _is_settled(self, known: _Signature, recorded: Recorded) -> bool:
        """Tell whether a call did the same as one before it.

        Raises:
          NotReplayable: it did something else.
        """
        last = known.last.pop(recorded.state, None)
        difference = "" if last is None else recorded.difference(last)
        if last is not None and not difference:
            known.tries = 0
            return True
        known.last[recorded.state] = recorded
        while len(known.last) > MOST:
            del known.last[next(iter(known.last))]
        if difference:
            raise NotReplayable(difference)
        return False

    def _roots(self, leaves: list[Any]) -> dict[str, Any]:
        """Return the objects that a call's Python begins from, by the names that messages use."""
        found = {getattr(self._fn, "__name__", "model"): self._fn}
        for k, x in enumerate(leaves):
            if not isinstance(x, Handle) and type(x) not in PLAIN:
                found[f"argument {k}"] = x
        return found

    def _note(self, known: _Signature, why: str) -> None:
        known.tries += 1
        if known.tries >= (2 if self._fullgraph else TRIES):
            self._fall_back(why)

    def _fall_back(self, why: str) -> None:
        """Tell that calls run plainly from now on, and why.

        Raises:
          RuntimeError: for `fullgraph`.
        """
        told = f"leafax.compile: calls of `{self._name}` cannot be replayed: {why}"
        if self._fullgraph:
            raise RuntimeError(told)
        if why not in self.reasons:
            self.reasons.append(why)
            fallbacks.append((told, user_line()))


def _at_rest(tensors: list[Any]) -> tuple[list[Any], frozenset[int]]:
    """Return arguments with tensors of their own for views, and where these stand."""
    found: list[Any] = []
    stand_ins = []
    for t in tensors:
        if (t._shares or t._array is None) and not t._v.requires_grad:
            stand_ins.append(len(found))
            t = from_array(observe(t, COMPILE))
        found.append(t)
    return found, frozenset(stand_ins)
