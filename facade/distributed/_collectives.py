"""PyTorch's collectives of tensors, over the processes of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.processes import collectives
from .._core.processes.startup import store
from ._kinds import ReduceOp, name_of
from ._tensors import (
    Work,
    arrays_of,
    check_count,
    check_only_at,
    check_tensor,
    check_tensors,
    done,
    member,
    place_in_group,
    write,
)

__all__ = [
    "all_gather", "all_gather_into_tensor", "all_reduce", "all_to_all", "all_to_all_single",
    "barrier", "broadcast", "gather", "monitored_barrier", "reduce", "reduce_scatter",
    "reduce_scatter_tensor", "scatter",
]  # fmt: skip


def all_reduce(
    tensor: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write into the tensor what the tensors of all processes give together."""
    check_tensor(tensor, "tensor")
    pg = member(group, "all_reduce")
    if pg is not None and pg.size() > 1:
        (found,) = collectives.reduce_arrays(pg, arrays_of([tensor]), name_of(op), "all_reduce")
        write(tensor, found)
    return done(async_op and pg is not None)


def reduce(
    tensor: Any, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Write into the tensor of process `dst` what those of all give together."""
    check_tensor(tensor, "tensor")
    pg = member(group, "reduce")
    if pg is None:
        return None
    place = place_in_group(pg, dst, group_dst, "reduce")
    if pg.size() > 1:
        (found,) = collectives.reduce_arrays(pg, arrays_of([tensor]), name_of(op), "reduce")
        if pg.rank() == place:
            write(tensor, found)
    return done(async_op)


def broadcast(
    tensor: Any, src: int | None = None, group: Any = None, async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Write the tensor of process `src` into those of the others."""
    check_tensor(tensor, "tensor")
    pg = member(group, "broadcast")
    if pg is None:
        return None
    place = place_in_group(pg, src, group_src, "broadcast")
    if pg.size() > 1:
        (found,) = collectives.broadcast_arrays(pg, arrays_of([tensor]), place, "broadcast")
        if pg.rank() != place:
            write(tensor, found)
    return done(async_op)


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Wait until all processes of the group are here."""
    pg = member(group, "barrier")
    if pg is not None and pg.size() > 1:
        ones = np.ones((), np.int32)
        collectives.reduce_arrays(pg, [ones], "SUM", "barrier")
    return done(async_op and pg is not None)


def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Wait until all processes of the group are here, but not longer than `timeout`.

    Raises:
      RuntimeError: one did not come in time.
    """
    pg = member(group, "monitored_barrier")
    if pg is None or pg.size() == 1:
        return
    seconds = pg.seconds if timeout is None else timeout.total_seconds()
    name = pg.next_call("monitored_barrier")
    try:
        store().wait_at_barrier(name, int(seconds * 1000), list(pg.ranks))
    except Exception as error:
        raise RuntimeError(
            f"Rank {pg.rank()} failed to pass monitoredBarrier in {seconds:g} s: {error}"
        ) from error


def all_gather(
    tensor_list: list[Any], tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes into those of the list, in order."""
    check_tensors(tensor_list, "tensor_list")
    check_tensor(tensor, "tensor")
    pg = member(group, "all_gather")
    if pg is None:
        return None
    check_count(tensor_list, pg, "all_gather")
    if pg.size() == 1:
        write(tensor_list[0], arrays_of([tensor])[0])
        return done(async_op)
    (rows,) = collectives.gather_arrays(pg, arrays_of([tensor]), "all_gather")
    for t, row in zip(tensor_list, rows, strict=True):
        write(t, row)
    return done(async_op)


def all_gather_into_tensor(
    output_tensor: Any, input_tensor: Any, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write the tensors of all processes into one, stacked or one after the other."""
    check_tensor(output_tensor, "output_tensor")
    check_tensor(input_tensor, "input_tensor")
    pg = member(group, "all_gather_into_tensor")
    if pg is None:
        return None
    _check_numel(output_tensor, input_tensor.numel() * pg.size(), "all_gather_into_tensor")
    arrays = arrays_of([input_tensor])
    if pg.size() > 1:
        arrays = collectives.gather_arrays(pg, arrays, "all_gather_into_tensor")
    write(output_tensor, arrays[0])
    return done(async_op)


def reduce_scatter_tensor(
    output: Any, input: Any, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Write into the output this process's part of what the inputs of all give together."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    pg = member(group, "reduce_scatter_tensor")
    if pg is None:
        return None
    _check_numel(input, output.numel() * pg.size(), "reduce_scatter_tensor")
    (array,) = arrays_of([input])
    if pg.size() > 1:
        rows = array.reshape((pg.size(), *output.shape))
        array = collectives.reduce_scatter_array(pg, rows, name_of(op), "reduce_scatter_tensor")
    write(output, array)
    return done(async_op)


def reduce_scatter(
    output: Any, input_list: list[Any], op: Any = ReduceOp.SUM, group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Write into the output what the tensors of all at this process's place give together."""
    check_tensor(output, "output")
    check_tensors(input_list, "input_list")
    pg = member(group, "reduce_scatter")
    if pg is None:
        return None
    check_count(input_list, pg, "reduce_scatter")
    arrays = arrays_of(input_list)
    if pg.size() > 1:
        arrays = collectives.reduce_arrays(pg, arrays, name_of(op), "reduce_scatter")
    write(output, arrays[pg.rank()])
    return done(async_op)


def gather(
    tensor: Any, gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    async_op: bool = False, group_dst: int | None = None,
) -> Work | None:  # fmt: skip
    """Write the tensors of all processes into the list that process `dst` has."""
    check_tensor(tensor, "tensor")
    pg = member(group, "gather")
    if pg is None:
        return None
    place = place_in_group(pg, dst, group_dst, "gather")
    check_only_at(pg.rank() == place, gather_list, "gather_list", "destination")
    into = gather_list or []
    if into:
        check_tensors(into, "gather_list")
        check_count(into, pg, "gather")
    if pg.size() == 1:
        write(into[0], arrays_of([tensor])[0])
        return done(async_op)
    (rows,) = collectives.gather_arrays(pg, arrays_of([tensor]), "gather")
    for t, row in zip(into, rows, strict=False):  # the others have no list
        write(t, row)
    return done(async_op)


def scatter(
    tensor: Any, scatter_list: list[Any] | None = None, src: int | None = None, group: Any = None,
    async_op: bool = False, group_src: int | None = None,
) -> Work | None:  # fmt: skip
    """Write into the tensor that of process `src`'s list at this one's place."""
    check_tensor(tensor, "tensor")
    pg = member(group, "scatter")
    if pg is None:
        return None
    place = place_in_group(pg, src, group_src, "scatter")
    check_only_at(pg.rank() == place, scatter_list, "scatter_list", "source")
    given = scatter_list or [tensor] * pg.size()
    check_tensors(given, "scatter_list")
    check_count(given, pg, "scatter")
    arrays = arrays_of(given)
    if pg.size() == 1:
        write(tensor, arrays[0])
        return done(async_op)
    rows = np.stack([np.asarray(x) for x in arrays])
    write(tensor, collectives.scatter_array(pg, rows, place, "scatter"))
    return done(async_op)


def all_to_all(
    output_tensor_list: list[Any], input_tensor_list: list[Any], group: Any = None,
    async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Write tensor `i` of each process's inputs into the outputs of process `i`, in order."""
    check_tensors(output_tensor_list, "output_tensor_list")
    check_tensors(input_tensor_list, "input_tensor_list")
    pg = member(group, "all_to_all")
    if pg is None:
        return None
    for each in (output_tensor_list, input_tensor_list):
        check_count(each, pg, "all_to_all")
    if len({tuple(t.shape) for t in (*output_tensor_list, *input_tensor_list)}) > 1:
        raise NotImplementedError("all_to_all: leafax takes tensors of one shape")
    rows: Any = np.stack([np.asarray(x) for x in arrays_of(input_tensor_list)])
    if pg.size() > 1:
        rows = collectives.exchange_array(pg, rows, "all_to_all")
    for t, row in zip(output_tensor_list, rows, strict=True):
        write(t, row)
    return done(async_op)


def all_to_all_single(
    output: Any, input: Any, output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None, group: Any = None, async_op: bool = False,
) -> Work | None:  # fmt: skip
    """Write part `i` of each process's input into the output of process `i`, in order."""
    check_tensor(output, "output")
    check_tensor(input, "input")
    pg = member(group, "all_to_all_single")
    if pg is None:
        return None
    for sizes in (output_split_sizes, input_split_sizes):
        if sizes and len(set(sizes)) > 1:
            raise NotImplementedError("all_to_all_single: leafax takes parts of one size")
    _check_numel(output, input.numel(), "all_to_all_single")
    if input.shape[0] % pg.size():
        raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
    (array,) = arrays_of([input])
    if pg.size() > 1:
        rows = array.reshape((pg.size(), -1))
        array = collectives.exchange_array(pg, rows, "all_to_all_single")
    write(output, array)
    return done(async_op)


def _check_numel(t: Any, numel: int, what: str) -> None:
    if t.numel() != numel:
        raise RuntimeError(
            f"{what}: expected a tensor of {numel} elements over all processes, got one of shape "
            f"{tuple(t.shape)}"
        )
