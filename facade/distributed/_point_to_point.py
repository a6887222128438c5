"""Tensors from one process to another, through what JAX's processes tell each other values by.

No program has to run in both for that; it is meant for what is small.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.processes.errors import DistBackendError
from .._core.processes.group import ProcessGroup, group_of
from .._core.processes.startup import store
from ._tensors import Work, arrays_of, check_tensor, member, place_in_group, write

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def send(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Send a tensor to process `dst`, which calls `recv`."""
    pg = group_of(group)
    if pg is not None and place_in_group(pg, dst, group_dst, "send") == pg.rank():
        raise ValueError(_SELF.format(kind="destination"))
    isend(tensor, dst, group, tag, group_dst)


def recv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> int:  # fmt: skip
    """Write into the tensor what process `src` sends; return its number."""
    pg = group_of(group)
    if pg is None:
        member(group, "recv")
        return -1
    if src is None and group_src is None:
        raise NotImplementedError("recv: leafax receives from a process that is named: give `src`")
    place = place_in_group(pg, src, group_src, "recv")
    if place == pg.rank():
        raise ValueError(_SELF.format(kind="source"))
    check_tensor(tensor, "tensor")
    _receiving(pg, tensor, place, tag).wait()
    return pg.ranks[place]


def isend(
    tensor: Any, dst: int | None = None, group: Any = None, tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Send a tensor to process `dst`, and go on."""
    check_tensor(tensor, "tensor")
    pg = member(group, "isend")
    if pg is None:
        return None
    place = place_in_group(pg, dst, group_dst, "isend")
    memory = io.BytesIO()
    array = np.asarray(arrays_of([tensor])[0])
    np.save(memory, array.view(np.uint8) if array.dtype.kind == "V" else array, allow_pickle=False)
    name = pg.next_call(f"from {pg.rank()} to {place} tag {tag}")
    store().key_value_set_bytes(name, memory.getvalue())
    return Work()


class _Receiving(Work):
    """A tensor that is to come, and is waited for by `wait`."""

    def __init__(self, receive: Callable[[], None]) -> None:
        self._receive: Callable[[], None] | None = receive

    def wait(self, timeout: Any = None) -> bool:
        """Wait until the tensor is there."""
        if (receive := self._receive) is not None:
            self._receive = None
            receive()
        return True


def irecv(
    tensor: Any, src: int | None = None, group: Any = None, tag: int = 0,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Return what waits for a tensor of process `src`, to be written into this one."""
    check_tensor(tensor, "tensor")
    pg = member(group, "irecv")
    if pg is None:
        return None
    place = place_in_group(pg, src, group_src, "irecv")
    return _receiving(pg, tensor, place, tag)


class P2POp:
    """A call of `isend` or `irecv`, for `batch_isend_irecv`.

    Args:
      op: `isend` or `irecv`.
      tensor: what is sent or written into.
      peer: the other process.
      group, tag: as those functions take them.
      group_peer: the other process by its number in the group.
    """

    def __init__(
        self, op: Callable[..., Any], tensor: Any, peer: int | None = None, group: Any = None,
        tag: int = 0, group_peer: int | None = None,
    ) -> None:  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.peer, self.group = op, tensor, peer, group
        self.tag, self.group_peer = tag, group_peer


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Start several sends and receives; return what waits for each."""
    works = [p.op(p.tensor, p.peer, p.group, p.tag, p.group_peer) for p in p2p_op_list]
    return [w for w in works if w is not None]


_SELF = (
    "Invalid {kind} rank: {kind} rank should not be the same as the rank of the current process."
)


def _receiving(group: ProcessGroup, tensor: Any, place: int, tag: int) -> _Receiving:
    """Return what waits for the next tensor of a process: the order is that of these calls."""
    name = group.next_call(f"from {place} to {group.rank()} tag {tag}")
    return _Receiving(lambda: _receive(group, tensor, place, name))


def _receive(group: ProcessGroup, tensor: Any, place: int, name: str) -> None:
    try:
        data = store().blocking_key_value_get_bytes(name, int(group.seconds * 1000))
    except Exception as error:
        raise DistBackendError(
            f"recv: nothing came from process {group.ranks[place]} in {group.seconds:g} s: {error}"
        ) from error
    store().key_value_delete(name)
    array = np.load(io.BytesIO(data), allow_pickle=False)
    like = np.dtype(tensor.dtype.np) if hasattr(tensor.dtype, "np") else array.dtype
    write(tensor, array.view(like) if array.dtype != like else array)
