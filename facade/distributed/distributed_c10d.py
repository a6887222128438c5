"""PyTorch's `torch.distributed.distributed_c10d`: collectives of a group of one process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NoReturn

from .._core.process_group import ProcessGroup as ProcessGroup
from .._core.process_group import default_group as _get_default_group
from .._core.process_group import (
    is_initialized,
    make_default_group,
    remove_default_group,
)
from ._kinds import *  # noqa: F403
from ._kinds import Backend, P2POp, PrefixStore, ReduceOp, Store, Work

__all__ = [
    "Backend", "P2POp", "PrefixStore", "ProcessGroup", "ReduceOp", "Store", "Work", "all_gather",
    "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all",
    "all_to_all_single", "barrier", "broadcast", "broadcast_object_list",
    "destroy_process_group", "gather", "gather_object", "get_backend", "get_global_rank",
    "get_group_rank", "get_node_local_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "irecv", "is_backend_available",
    "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend",
    "monitored_barrier", "new_group", "recv", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter", "scatter_object_list", "send",
]  # fmt: skip

default_pg_timeout = timedelta(minutes=30)


class _Group(type):
    """Answer for the default group, which is there once it is made."""

    @property
    def WORLD(cls) -> ProcessGroup | None:  # noqa: N802 # PyTorch's name
        """Return the default group, None before it is made."""
        return _get_default_group() if is_initialized() else None


class group(metaclass=_Group):  # noqa: N801 # PyTorch's name
    """The default group, as `group.WORLD`."""


class GroupMember(metaclass=_Group):
    """An older name of `group`."""

    NON_GROUP_MEMBER = -100


def init_process_group(
    backend: Any = None, init_method: Any = None, timeout: Any = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None,
    device_id: Any = None, **kwargs: Any,
) -> None:  # fmt: skip
    """Make the default process group, of this process alone.

    Args:
      backend: its name.
      world_size, rank: 1 and 0; by default the environment's WORLD_SIZE and RANK.
      init_method, timeout, store, group_name, pg_options, device_id: of several processes.

    Raises:
      NotImplementedError: there are several processes.
    """
    make_default_group(backend, world_size, rank)


def destroy_process_group(group: Any = None) -> None:
    """Forget the default process group."""
    remove_default_group()


def new_group(*args: Any, **kwargs: Any) -> ProcessGroup:
    """Return a further group of this process."""
    return ProcessGroup(_get_default_group().backend)


def get_rank(group: Any = None) -> int:
    """Return the number of this process: 0."""
    return _get_default_group().rank()


def get_world_size(group: Any = None) -> int:
    """Count the processes: 1."""
    return _get_default_group().size()


def get_backend(group: Any = None) -> str:
    """Return the name that the default group was made with."""
    return _get_default_group().backend


def get_process_group_ranks(group: Any = None) -> list[int]:
    """Return the numbers of the processes: 0 alone."""
    return [get_rank()]


def get_global_rank(group: Any, group_rank: int) -> int:
    """Return the number of a process among all: 0."""
    return get_rank()


get_group_rank = get_global_rank


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
    """Return False: one process sends nothing."""
    return False


is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = is_gloo_available


def is_backend_available(backend: str) -> bool:
    """Return False: one process sends nothing."""
    return False


def is_torchelastic_launched() -> bool:
    """Tell whether `torchrun` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _done(async_op: bool) -> Work | None:
    _get_default_group()
    return Work() if async_op else None


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Leave the tensor as it is: there is no other to add."""
    return _done(async_op)


def reduce(
    tensor: Any, dst: Any = None, op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False, group_dst: Any = None,
) -> Work | None:  # fmt: skip
    """Leave the tensor as it is: there is no other to add."""
    return _done(async_op)


def broadcast(
    tensor: Any, src: Any = None, group: Any = None, async_op: bool = False, group_src: Any = None
) -> Work | None:
    """Leave the tensor as it is: there is nobody to send it to."""
    return _done(async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait for no one."""
    return _done(async_op)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait for no one."""
    _done(False)


def all_gather(
    tensor_list: Sequence[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensor into the list's only one."""
    work = _done(async_op)
    tensor_list[0].copy_(tensor)
    return work


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write one tensor into the other, which may have a first dimension of 1 more."""
    work = _done(async_op)
    output_tensor.copy_(input_tensor.reshape(output_tensor.shape))
    return work


reduce_scatter_tensor = _reduce_scatter_base = all_gather_into_tensor
_all_gather_base = all_to_all_single = all_gather_single = all_gather_into_tensor


def gather(
    tensor: Any, gather_list: Sequence[Any] | None = None, dst: Any = None, group: Any = None,
    async_op: bool = False, group_dst: Any = None,
) -> Work | None:  # fmt: skip
    """Write the tensor into the list's only one."""
    return all_gather(gather_list or [], tensor, group, async_op)


def scatter(
    tensor: Any, scatter_list: Sequence[Any] | None = None, src: Any = None, group: Any = None,
    async_op: bool = False, group_src: Any = None,
) -> Work | None:  # fmt: skip
    """Write the list's only tensor into the other."""
    return all_gather([tensor], (scatter_list or [])[0], group, async_op)


def reduce_scatter(
    output: Any, input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Write the list's only tensor into the other."""
    return all_gather([output], input_list[0], group, async_op)


def all_to_all(
    output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Write one list's only tensor into the other's."""
    return all_gather(output_tensor_list, input_tensor_list[0], group, async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the object into the list."""
    _done(False)
    object_list[0] = obj


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: Any = None, group: Any = None,
    group_dst: Any = None,
) -> None:  # fmt: skip
    """Put the object into the list."""
    all_gather_object(object_gather_list or [None], obj)


def broadcast_object_list(object_list: list[Any], *args: Any, **kwargs: Any) -> None:
    """Leave the list as it is: there is nobody to send it to."""
    _done(False)


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    *args: Any, **kwargs: Any,
) -> None:  # fmt: skip
    """Put one list's only object into the other."""
    all_gather_object(scatter_object_output_list, (scatter_object_input_list or [None])[0])


def send(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise: there is no other process.

    Raises:
      ValueError: always.
    """
    _get_default_group()
    raise ValueError("there is no other process: leafax has groups of one process so far")


recv = isend = irecv = batch_isend_irecv = send
