"""PyTorch's `torch.distributed.distributed_c10d`: process groups, and collectives over them.

A rank is a process. `init_process_group` has JAX's processes find each other; a process computes
on all devices that JAX gives it, one controller for them, where PyTorch has a process a device.
Collectives of tensors are programs over one device of each process.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

from .._core.processes.group import NON_GROUP_MEMBER, group_of, make_group, world
from .._core.processes.group import ProcessGroup as ProcessGroup
from .._core.processes.group import default_group as _get_default_group
from .._core.processes.group import is_initialized as is_initialized
from .._core.processes.startup import make_default_group, remove_default_group
from ._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from ._kinds import Backend, PrefixStore, ReduceOp, Store
from ._kinds import FileStore as FileStore
from ._kinds import HashStore as HashStore
from ._kinds import ProcessGroupGloo as ProcessGroupGloo
from ._kinds import ProcessGroupNCCL as ProcessGroupNCCL
from ._kinds import TCPStore as TCPStore
from ._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    scatter_object_list,
)
from ._point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from ._tensors import Work

__all__ = [
    "Backend", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "Work", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "irecv", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
    "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
]  # fmt: skip

default_pg_timeout = timedelta(minutes=30)
all_gather_single = _all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor


class _Group(type):
    """Answer for the default group, which is there once it is made."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 # PyTorch's name
        """Return the default group, None before it is made."""
        return world.default


class group(metaclass=_Group):  # noqa: N801 # PyTorch's name
    """The default group, as `group.WORLD`."""


class GroupMember(metaclass=_Group):
    """An older name of `group`."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


def init_process_group(
    backend: Any = None, init_method: str | None = None, timeout: timedelta | None = None,
    world_size: int = -1, rank: int = -1, store: Any = None, group_name: str = "",
    pg_options: Any = None, device_id: Any = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Make the default process group, and have the processes find each other through JAX.

    With several processes it comes before the first tensor: JAX learns of the others before it
    makes its devices.

    Args:
      backend: its name; JAX has one way for each kind of device, NCCL on GPUs and Gloo on CPUs.
      init_method: `env://`, the default, or `tcp://host:port`.
      timeout: how long to wait for other processes.
      world_size, rank: by default the environment's WORLD_SIZE and RANK.
      store, group_name, pg_options, device_id: not used.

    Raises:
      ValueError: the group is there, or the environment lacks a variable.
      RuntimeError: several processes, and JAX holds arrays already.
      DistNetworkError: the others did not come in time.
    """
    seconds = (timeout or default_pg_timeout).total_seconds()
    make_default_group(backend, init_method, world_size, rank, seconds)


def destroy_process_group(group: Any = None) -> None:
    """Leave the default process group; a further one is only forgotten."""
    if (pg := group_of(group)) is None or pg is _get_default_group():
        remove_default_group()


def new_group(
    ranks: Any = None, timeout: timedelta | None = None, backend: Any = None,
    pg_options: Any = None, use_local_synchronization: bool = False, group_desc: Any = None,
    device_id: Any = None, sort_ranks: bool = True,
) -> Any:  # fmt: skip
    """Return a group of some processes; all processes make it, in the same order.

    Args:
      ranks: the processes' numbers, all for None.
      timeout: how long to wait for others.
      backend: its name; the default group's for None.

    Returns:
      The group; `GroupMember.NON_GROUP_MEMBER` in a process that is not in it.
    """
    whole = _get_default_group()
    chosen = whole.ranks if ranks is None else tuple(ranks)
    seconds = None if timeout is None else timeout.total_seconds()
    made = make_group(chosen, str(backend or whole.backend), seconds)
    return made if made.rank() >= 0 else NON_GROUP_MEMBER


def get_rank(group: Any = None) -> int:
    """Return the number of this process in a group, -1 if it is not in it."""
    pg = group_of(group)
    return -1 if pg is None else pg.rank()


def get_world_size(group: Any = None) -> int:
    """Count the processes of a group, -1 if this one is not in it."""
    pg = group_of(group)
    return -1 if pg is None else pg.size()


def get_backend(group: Any = None) -> str:
    """Return the name that a group was made with."""
    pg = group_of(group)
    if pg is None:
        raise ValueError("Invalid process group specified")
    return pg.backend


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the numbers of a group's processes among all."""
    pg = group_of(group)
    return [] if pg is None else list(pg.ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the number of a process among all, given that in a group."""
    pg = _registered(group)
    if not 0 <= group_rank < pg.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return pg.ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Return the number of a process in a group, given that among all."""
    pg = _registered(group)
    if global_rank not in pg.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return pg.ranks.index(global_rank)


def _registered(group: Any) -> ProcessGroup:
    if not isinstance(group, ProcessGroup):
        raise ValueError(
            f"Group {group} is not registered, please create group with "
            "torch.distributed.new_group API"
        )
    return group


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return the number of this process on its machine, as the environment says.

    Raises:
      RuntimeError: it does not say, and there is no other number to return.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )


def is_gloo_available() -> bool:
    """Tell whether there are several processes, which JAX brings together."""
    return is_initialized() and _get_default_group().size() > 1


def is_nccl_available() -> bool:
    """Tell whether there are several processes on GPUs, which JAX brings together."""
    if not is_gloo_available():
        return False
    devices = _get_default_group().mesh.devices.flat
    return bool(devices[0].platform in ("gpu", "cuda", "rocm"))


def is_mpi_available() -> bool:
    """Return False: JAX's processes do not use it."""
    return False


is_ucc_available = is_xccl_available = is_mpi_available


def is_backend_available(backend: str) -> bool:
    """Tell whether there are several processes that JAX brings together so."""
    asked = {"gloo": is_gloo_available, "nccl": is_nccl_available}
    return asked.get(backend.lower(), is_mpi_available)()


def is_torchelastic_launched() -> bool:
    """Tell whether `torchrun` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ
