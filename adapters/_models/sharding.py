"""Specs of a model's tensors by pattern, for a mesh of devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from leafax.distributed.sharding import place_tensors

from .groups import text_of
from .select import Tensors, choose


def shard(
    tensors: Tensors, mesh: Any, rules: Mapping[Any, Any], classes: Callable[[], dict[str, type]]
) -> None:
    """Place a model's tensors on a mesh by rules; see `Freezing.shard`."""
    specs: dict[str, Any] = {}
    for what, spec in rules.items():
        several = what if isinstance(what, tuple) else (what,)
        chosen = choose(tensors, several, classes)
        if chosen <= specs.keys():
            raise ValueError(
                f"every tensor that `{text_of(what)}` selects has an earlier rule already: put the "
                f"narrower pattern first"
            )
        for name in chosen - specs.keys():
            specs[name] = spec(name, tensors[name]) if callable(spec) else spec
    place_tensors(tensors, mesh, specs)
