"""Facts about a thread that few ops ask for, by topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .state import State

if TYPE_CHECKING:
    from .recorder import Mode


class Trie:
    """The states that a thread has made."""

    def __init__(self) -> None:
        self.roots: dict[Mode, State] = {}
        self.states = 0  # how many there are; too many are forgotten, see `eviction.py`
        self.clock = 0  # counts cuts


class Settings:
    """Choices about autograd that users made for a thread."""

    def __init__(self, watch: Any, anomaly: Any) -> None:
        self.multithreading = True  # what users were told; nothing here depends on it
        self.grad_layout = True  # a new `.grad` lies in memory as its tensor does
        self.view_replay = False  # views made now are made again by their own ops
        self.watch = watch  # looks for NaN in what a node passes on
        self.anomaly = anomaly  # tells where a node that failed was recorded


class Autograd:
    """Work of autograd that is going on in a thread."""

    def __init__(self) -> None:
        self.tasks: list[Any] = []  # backward passes that are walking, outermost first
        self.pack_hooks: tuple[Any, ...] = ()  # saved-tensor hooks in force, innermost last
        self.guard: Any = None  # called before a tensor is written to
        # Where `version_checks.py` asked last for the latest versions, and them.
        self.latest: Any = (None, {})


class Cuts:
    """Rules for where the program of a thread is cut."""

    def __init__(self) -> None:
        self.uncut = False  # a stretch that must stay in one program is being recorded
        self.aside = False  # what is looked at in that stretch is computed aside, without a cut
        self.capture: Any = None  # the call that is recorded to be replayed, see `_replay`
        self.at_once = True  # ops on small data at rest on the host are computed and not recorded
        self.turn_end: State | None = None  # where the last turns of a loop without looks ended
