"""The recording of a call that is to be replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from .._core.run_log import history
from .._core.trie import State, Trace, Value, local
from .._storage.shared_storage import unshare
from .._tracing.infer import user_line
from .python_state import PythonState

COMPILE = "leafax.compile"


class Source(NamedTuple):
    """Where an input of the program comes from.

    Attributes:
      kind: "held" (a tensor that is always the same), "argument" (of a place), "grad" (of a held
        tensor), "generator", "numbers" (of an optimizer's step) or "constant".
      what: the tensor, place, generator, `(step, place)`, or array.
    """

    kind: str
    what: Any

    def tensor(self, arguments: list[Any]) -> Any:
        """Find the tensor as it is at a call with these arguments."""
        if self.kind == "held":
            return self.what
        if self.kind == "argument":
            return arguments[self.what]
        return self.what._grad if self.kind == "grad" else self.what._state


class Numbers(NamedTuple):
    """Numbers that enter at each step: what an optimizer's hyperparameters come to.

    Attributes:
      now: returns the op and the numbers as they are now.
      op: that was recorded.
      entered: the numbers that entered, or arrays of them.
      numbers: they as numbers.
      group: of the optimizer.
    """

    now: Callable[[], tuple[Any, list[Any]]]
    op: Any
    entered: list[Any]
    numbers: list[float]
    group: Any

    def is_at(self, k: int, array: Any) -> bool:
        """Tell whether an input of the program is the number of this place."""
        return array is self.entered[k] or array is self.numbers[k]


class Capture:
    """Events of a recording that its trace does not show.

    Attributes:
      numbers: that optimizers' steps entered, in order.
      stepped: an optimizer would have run the program.
      look: why a value was looked at that needs no program, and where; None if none was.
    """

    def __init__(self) -> None:
        self.numbers: list[Numbers] = []
        self.stepped = False
        self.look: tuple[str, tuple[str, int]] | None = None

    def note_numbers(self, *numbers: Any) -> None:
        """Note that an optimizer's step enters numbers next: the fields of `Numbers`."""
        self.numbers.append(Numbers(*numbers))

    def note_look(self, reason: str) -> None:
        """Note that a value is looked at, which a replay would not do."""
        if self.look is None and reason != COMPILE:
            self.look = reason, user_line()

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what the block does into one program, whatever its length."""
        cuts = local.cuts
        before = cuts.capture, cuts.uncut
        cuts.capture, cuts.uncut = self, True
        try:
            yield
        finally:
            cuts.capture, cuts.uncut = before


class Before:
    """State of tensors and generators before a call.

    Args:
      python: what the function reaches.
      arguments: the tensors among its arguments.
      stand_ins: places of arguments that enter as copies.

    Attributes:
      state, inputs: where the trace is, and how many inputs it has.
      sources: of tensors by their ids.
      values: of the tensors in the trace, and of those that the call can reach, by their ids.
      grads: leaves with the gradients that they have.
      generators: with their states' tensors and how many keys they gave.
      versions: of tensors by their ids.
    """

    def __init__(
        self, python: PythonState, arguments: list[Any], stand_ins: frozenset[int]
    ) -> None:
        trace = local.trace
        self.state: State = trace.state
        self.inputs = len(trace.arrays)
        self.stand_ins = stand_ins
        self.held, self.arguments = list(python.tensors.values()), arguments
        self.sources = {id(t): Source("held", t) for t in self.held}
        for k, t in enumerate(arguments):
            self.sources.setdefault(id(t), Source("argument", k))
        found = [*self.held, *arguments]
        self.grads = [(t, t._grad) for t in found if t._v.requires_grad and t._node is None]
        for leaf, grad in self.grads:
            if grad is not None:
                self.sources.setdefault(id(grad), Source("grad", leaf))
                found.append(grad)
        self.generators = [(g, g.free_state(), g._drawn) for g in python.generators]
        for g, state, _ in self.generators:
            self.sources[id(state)] = Source("generator", g)
            found.append(state)
        for t in found:  # whose sharers are gone: it is read by itself then
            if t._shares and t._trace is None and t._store is not None:
                unshare(t)
        self.values: dict[int, Value] = {id(t): t._v for t in [*trace.living(), *found]}
        self.versions = {id(t): vc[0] for t in found if (vc := t.__dict__.get("_vc"))}


def record_call(
    fn: Callable[..., Any], args: Any, kwargs: Any
) -> tuple[Any, Trace | None, Capture, str]:
    """Call a function so that all that it records is in the running trace.

    Returns:
      its result, the trace, what the capture noted, and why there is no trace, if there is none.
    """
    trace, capture, runs = local.trace, Capture(), len(history)
    with capture.recording():
        result = fn(*args, **kwargs)
    if local.trace is not trace:
        last = history[-1] if len(history) > runs else None
        why = "its program was cut" if last is None else _told(last.reason, last.where)
        return result, None, capture, why
    if capture.look is not None:
        return result, None, capture, _told(*capture.look)
    return result, trace, capture, ""


def _told(reason: str, where: tuple[str, int]) -> str:
    return f"a value was looked at by {reason} at {where[0]}:{where[1]}"
