"""A recorded call of a model some of whose kernels have low-rank adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp

from .by_id import ById
from .calls import Linear, Pure, shared
from .low_rank import added


class Adapted(Pure):
    """A call with adapters: their factors come behind the model's own leaves."""

    def __init__(
        self, inner: Pure, places: tuple[int, ...], scales: tuple[float, ...],
        beside: tuple[int, ...],
    ) -> None:  # fmt: skip
        super().__init__(inner.__name__, inner, places, scales, beside)
        self.__name__ = inner.__name__
        self.inner, self.places, self.scales, self.beside = inner, places, scales, beside
        self.draws = inner.draws

    def tagging(self, tagger: Any) -> Any:
        return self.inner.tagging(tagger)

    def adding(self, adder: Any) -> Any:
        return self.inner.adding(adder)

    def module_of(self, place: int) -> str:
        return self.inner.module_of(place)

    def __call__(self, leaves: Any, key: Any, args: Any, kwargs: Any) -> Any:
        n = len(leaves) - 2 * len(self.places)
        own = list(leaves[:n])
        factors = {
            place: (leaves[n + 2 * i], leaves[n + 2 * i + 1], scale)
            for i, (place, scale) in enumerate(zip(self.places, self.scales, strict=True))
        }
        beside = {self.inner.module_of(place): place for place in self.beside}
        while True:
            # Which of them are linear layers only the call itself tells, so the others are put
            # into their kernels and it is traced once more.
            held = [self._sum(i, x, factors, beside) for i, x in enumerate(own)]
            used: set[str] = set()
            failed: set[str] = set()
            mine = {m: (*factors[p], own[p].shape) for m, p in beside.items()}
            with self.inner.adding(_adder(mine, used, failed)):
                out, changed = self.inner(held, key, args, kwargs)
            missing = (beside.keys() - used) | failed
            if not missing:
                return out, changed
            for module in missing:
                del beside[module]

    def _sum(self, i: int, x: Any, factors: Any, beside: Mapping[str, int]) -> Any:
        if i not in factors or i in beside.values():
            return x
        a, b, scale = factors[i]
        return x + ((a @ b) * scale).reshape(x.shape).astype(x.dtype)


def _adder(factors: Mapping[str, Any], used: set[str], failed: set[str]) -> Callable[..., Any]:
    busy = False  # the narrow layer that `added` calls is a layer too

    def add(path: str, linear: Linear, x: Any, y: Any) -> Any:
        """Return what a linear layer at this path returns for `x`, where it returned `y`."""
        nonlocal busy
        if busy or path not in factors:
            return y
        used.add(path)
        a, b, scale, shape = factors[path]
        a, b, x = (jnp.asarray(f, y.dtype) for f in (a, b, x))
        more = None
        if tuple(linear.shape) == shape:  # it is another inside of `nn.scan`
            busy = True
            try:
                more = added(linear.kind, linear.layer, shape, x, a, b, linear.equation)
            finally:
                busy = False
        if more is None:
            failed.add(path)
            return y
        return y + more * jnp.asarray(scale, y.dtype)

    return add


def adapted(pure: Pure, own: Any, leaves: Any, by: ById) -> tuple[Pure, Any]:
    """Return the call of `pure` with the adapters of those of its own leaves that have one."""
    places = tuple(i for i, t in enumerate(own) if t in by)
    if not places:
        return pure, leaves
    some = [by[own[i]] for i in places]
    beside = tuple(i for i, f in zip(places, some, strict=True) if f.beside)
    made = shared(Adapted(pure, places, tuple(f.scale for f in some), beside))
    made.draws = pure.draws
    return made, (*leaves, *(t for f in some for t in (f.a, f.b)))
