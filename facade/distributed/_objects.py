"""Collectives of Python objects, which go through the processes' tensors as pickles."""

from __future__ import annotations

from typing import Any

from .._core.processes.objects import gather_objects
from ._tensors import check_only_at, member, place_in_group

__all__ = [
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list",
]  # fmt: skip


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Put the objects of all processes into the list, in order."""
    pg = member(group, "all_gather_object")
    if pg is not None:
        object_list[: pg.size()] = gather_objects(pg, obj, "all_gather_object")


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None,
    group: Any = None, group_dst: int | None = None,
) -> None:  # fmt: skip
    """Put the objects of all processes into the list that process `dst` has."""
    pg = member(group, "gather_object")
    if pg is None:
        return
    place = place_in_group(pg, dst, group_dst, "gather_object")
    check_only_at(pg.rank() == place, object_gather_list, "gather_list", "destination")
    found = gather_objects(pg, obj, "gather_object")
    if object_gather_list:
        object_gather_list[: pg.size()] = found


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Put the objects of process `src` into the lists of the others."""
    pg = member(group, "broadcast_object_list")
    if pg is None:
        return
    place = place_in_group(pg, src, group_src, "broadcast_object_list")
    if pg.size() > 1:
        own = list(object_list) if pg.rank() == place else None
        found = gather_objects(pg, own, "broadcast_object_list")[place]
        if pg.rank() != place:
            object_list[:] = found


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: list[Any] | None = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Put the object of process `src`'s list at this one's place first into the output list."""
    pg = member(group, "scatter_object_list")
    if pg is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    place = place_in_group(pg, src, group_src, "scatter_object_list")
    own = scatter_object_input_list if pg.rank() == place else None
    if pg.rank() == place and len(own or ()) != pg.size():
        raise ValueError(
            f"scatter_object_list: expected a list of {pg.size()} objects, one for each process"
        )
    found = gather_objects(pg, own, "scatter_object_list")[place]
    scatter_object_output_list[0] = found[pg.rank()]
