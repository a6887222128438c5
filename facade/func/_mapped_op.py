"""The op that a `vmap` records: the steps of an example, mapped over the batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from leafax.functional.lowering.lower import summarise
from leafax.functional.program.op import Fault, Op

from .._core.trie import Value
from .._dispatch.subgraph import Region

if TYPE_CHECKING:
    from ._level import Level

AXIS = "leafax_vmap"


def make_check(
    region: Region, outs: list[Any], level: Level, given: list[Value], dims: tuple[int, ...]
) -> Any:
    """Make one check on the batches of the mapped steps' data-dependent checks; or None."""
    if not any(getattr(getattr(s.call, "op", None), "check", None) for s in region.steps()):
        return None
    sites: list[Fault] = []
    found: list[Any] = []
    evaluate, size = None, level.size
    if level.randomness == "different":
        evaluate = level._make_splitting()

    def call(state: Any, given: list[Any]) -> Any:
        for fault in state.call.faults(*given):
            sites.append(fault)
            found.append(summarise(fault))
        return evaluate(state, given) if evaluate is not None else state.call.evaluate(*given)

    collect = region.function(outs, given, level._batched, call)
    axes = (*dims, *[None] * len(region.free))

    def faults(*example: Any) -> Any:
        sites.clear()
        found.clear()
        collect(*example)
        return tuple(found)

    def check(*arrays: Any) -> list[Fault]:
        many = jax.vmap(faults, in_axes=axes, axis_name=AXIS, axis_size=size)(*arrays)
        return [
            Fault(bad, site.error, site.message, value)
            for site, (bad, value) in zip(sites, many, strict=True)
        ]

    return check


def make_mapped_op(
    fn: Any,
    dims: tuple[int, ...],
    out_dims: tuple[Any, ...],
    n_free: int,
    size: int,
    check: Any,
    random: bool,
) -> Op:
    many = jax.vmap(
        fn, in_axes=(*dims, *[None] * n_free), out_axes=tuple(out_dims), axis_name=AXIS,
        axis_size=size,
    )  # fmt: skip

    def vmapped(*arrays: Any) -> Any:
        return many(*arrays)

    vmapped.draws = random  # type: ignore[attr-defined]
    return Op(vmapped, name="vmap", namespace="opaque", backward="VmapBackward", check=check)
