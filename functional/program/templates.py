"""Templates of calls: static arguments, with slots for arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple


class Slot(NamedTuple):
    """A place in a call's template for the call's `index`-th array."""

    index: int  # type: ignore[assignment]  # hides `tuple.index`, which no one calls


def freeze(x: Any) -> Any:
    """Return a hashable form of a static argument that tells 1, 1.0 and True (and ±0.0) apart."""
    kind = type(x)
    if kind is float:
        return (float, x.hex())
    if kind in (int, bool, complex):
        return (kind, repr(x))
    if kind in (tuple, list):
        return (kind, tuple(freeze(y) for y in x))
    if kind is dict:
        return (dict, tuple((k, freeze(v)) for k, v in x.items()))
    if kind is slice:
        return (slice, freeze((x.start, x.stop, x.step)))
    return x


def fill(template: Any, arrays: Sequence[Any]) -> Any:
    """Replace each `Slot` of `template` by its array."""
    kind = type(template)
    if kind is Slot:
        return arrays[template.index]
    if kind is tuple or kind is list:
        return kind(fill(x, arrays) for x in template)
    if kind is dict:
        return {k: fill(v, arrays) for k, v in template.items()}
    return template
