"""Groups of processes, and the default one, which has all of them.

A rank is a process of JAX with all the devices that it computes on: there is one controller a
process, not one a device.
"""

from __future__ import annotations

from typing import Any

import jax

NON_GROUP_MEMBER = -100  # PyTorch's object for a group that this process is not in

_NOT_INITIALIZED = (
    "Default process group has not been initialized, please make sure to call init_process_group."
)


class ProcessGroup:
    """A group of processes.

    Args:
      backend: what programs named when they made it.
      ranks: the processes' numbers among all, ascending.
      rank: the number of this one among all.
      name: the group's name, another one for each.
      seconds: how long it waits for processes that do not come.
    """

    def __init__(
        self,
        backend: str = "gloo",
        ranks: tuple[int, ...] = (0,),
        rank: int = 0,
        name: str = "default_pg",
        seconds: float = 1800.0,
    ) -> None:
        self.backend = backend
        self.ranks = ranks
        self.seconds = seconds
        self._rank = rank
        self._parts: dict[tuple[int, ...], ProcessGroup] = {}
        self._name = name
        self._mesh: Any = None
        self._calls: dict[str, int] = {}

    def rank(self) -> int:
        """Return the number of this process in the group, -1 if it is not in it."""
        return self.ranks.index(self._rank) if self._rank in self.ranks else -1

    def size(self) -> int:
        """Count the processes."""
        return len(self.ranks)

    def name(self) -> str:
        """Return the backend's name."""
        return self.backend

    @property
    def group_name(self) -> str:
        """Return the group's name."""
        return self._name

    @property
    def mesh(self) -> Any:
        """Return a mesh of one device of each process, its axis named `rank`."""
        if self._mesh is None:
            first: dict[int, Any] = {}
            for device in jax.devices():
                first.setdefault(device.process_index, device)
            devices = [first[r] for r in self.ranks]
            self._mesh = jax.make_mesh(
                (len(devices),), ("rank",), (jax.sharding.AxisType.Auto,), devices=devices
            )
        return self._mesh

    def part(self, ranks: tuple[int, ...]) -> ProcessGroup:
        """Return the group of some of these processes: the same each time, as it counts calls."""
        if ranks == self.ranks:
            return self
        if ranks not in self._parts:
            name = f"mesh {ranks}"
            self._parts[ranks] = ProcessGroup(self.backend, ranks, self._rank, name, self.seconds)
        return self._parts[ranks]

    def next_call(self, what: str) -> str:
        """Return a name for what all processes of the group do next, the same in each."""
        n = self._calls[what] = self._calls.get(what, 0) + 1
        return f"leafax/{self._name}/{what}/{n}"


class World:
    """The default group, and the names of all groups.

    Attributes:
      default: None until it is made.
      joined: JAX has been told of the other processes.
      made: how many further groups were made.
    """

    default: ProcessGroup | None = None
    joined: bool = False
    made: int = 0


world = World()


def is_initialized() -> bool:
    """Tell whether the default process group has been made."""
    return world.default is not None


def default_group() -> ProcessGroup:
    """Return the default process group.

    Raises:
      ValueError: it has not been made.
    """
    if world.default is None:
        raise ValueError(_NOT_INITIALIZED)
    return world.default


def group_of(group: Any) -> ProcessGroup | None:
    """Return the group that a function was given: the default for None; None if it is not in it."""
    if group is None or isinstance(group, type):  # the class `group` stands for `group.WORLD`
        return default_group()
    if group == NON_GROUP_MEMBER:
        return None
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"expected a process group, got {type(group).__name__}")
    return group if group.rank() >= 0 else None


def make_group(ranks: tuple[int, ...], backend: str, seconds: float | None) -> ProcessGroup:
    """Make a group of some of the processes; all of them make it, in the same order.

    Raises:
      ValueError: a rank is given twice.
      RuntimeError: a rank is none of the default group's.
    """
    whole = default_group()
    world.made += 1
    name = str(world.made)
    if len(set(ranks)) != len(ranks):
        raise ValueError("the new group's ranks must be unique")  # not PyTorch's: it hangs
    if len(ranks) > whole.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group"
        )
    if any(not 0 <= r < whole.size() for r in ranks):
        raise ValueError(
            "The new group's rank should be within the world_size set by init_process_group"
        )
    ranks = tuple(sorted(ranks))
    seconds = whole.seconds if seconds is None else seconds
    return ProcessGroup(backend, ranks, whole.rank(), name, seconds)
