"""Optax transformations' states for parameters that did not all start together.

Such a state has leaves of single parameters (moments) and shared ones (a step count). A parameter
that is thawed at step 10 must not be corrected as if its fresh moments were 10 steps old, so
parameters that started together are a *cohort*, and each has shared leaves of its own. The update
is computed for each cohort with its shared leaves and everyone's gradients, since a norm that is
clipped is everyone's, and what belongs to the cohort is taken from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.tree_util import DictKey, keystr

from leafax.functional.lowering.keys import without_keys

from ..._runtime.observation import observe
from ..._runtime.placing import place_beside
from ..._tracing.inputs import from_array

Key = tuple[int, str]  # a cohort (-1: the leaf is a parameter's) and a path in the state


class Layout(NamedTuple):
    """Arrangement of flat leaves as the state of the parameters that a step updates; hashable.

    Attributes:
      active: their numbers, in order.
      treedef: of the transformation's state for them.
      keys: of the leaves, in order.
      owners: of each leaf, the cohort (by position) that updates it.
      places: for each cohort, which leaves its state consists of, in the order of `treedef`.
      members: for each cohort, the numbers of its parameters.
    """

    active: tuple[int, ...]
    treedef: Any
    keys: tuple[Key, ...]
    owners: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]
    members: tuple[tuple[int, ...], ...]

    @property
    def cohorts(self) -> int:
        return len(self.members)


class Cohorts:
    """Tensors of one transformation's state, by cohort.

    Attributes:
      held: tensors by cohort and path.
      cohort_of: the cohort of each parameter that has state, by number.
    """

    def __init__(self, transform: Any, wide: bool) -> None:
        self.transform, self.wide = transform, wide
        self.held: dict[Key, Any] = {}
        self.cohort_of: dict[int, int] = {}
        self._last: Layout | None = None

    def layout(self, params: list[tuple[int, Any]]) -> Layout:
        """Return the layout for these numbered parameters; those without state start fresh."""
        active = tuple([n for n, _ in params])
        if self._last is None or self._last.active != active:
            self._leave(active)
            self._last = self._start(active, [p for _, p in params])
        return self._last

    def leaves(self, layout: Layout) -> list[Any]:
        """Return the tensors of a layout's leaves."""
        return [self.held[key] for key in layout.keys]

    def drop(self, number: int) -> None:
        """Forget the state of one parameter."""
        if self.cohort_of.pop(number, None) is None:
            return
        self.held = {k: t for k, t in self.held.items() if k[0] >= 0 or _number(k[1]) != number}
        used = set(self.cohort_of.values())
        self.held = {k: t for k, t in self.held.items() if k[0] < 0 or k[0] in used}
        self._last = None

    def place(self, params: Mapping[int, Any]) -> None:
        """Place the state of these parameters, given by number, where they lie."""
        for (cohort, path), t in self.held.items():
            number = _number(path) if cohort < 0 else next(iter(params), None)
            if number is not None and number in params:
                place_beside(params[number], t)

    def _leave(self, active: tuple[int, ...]) -> None:
        """Part those that stop from those that go on: their step counts differ from now on."""
        before = () if self._last is None else self._last.active
        stopping = set(before) - set(active)
        for cohort in {self.cohort_of[n] for n in stopping & self.cohort_of.keys()}:
            members = {n for n, c in self.cohort_of.items() if c == cohort}
            if members <= stopping or not members & set(active):
                continue
            new = self._unused()
            for (c, path), t in list(self.held.items()):
                if c == cohort:
                    self.held[new, path] = t.detach().clone()
            self.cohort_of.update(dict.fromkeys(members & stopping, new))

    def _unused(self) -> int:
        return max(self.cohort_of.values(), default=-1) + 1

    def _start(self, active: tuple[int, ...], params: list[Any]) -> Layout:
        arrays = {
            str(n): observe(p, "optimizer state") for n, p in zip(active, params, strict=True)
        }
        known = dict(zip(arrays, params, strict=True))
        with jax.enable_x64(self.wide):
            fresh = without_keys(self.transform.init(arrays))
            flat, treedef = jax.tree_util.tree_flatten_with_path(fresh)
            leaves = [(_owner(path, arrays), keystr(path), leaf) for path, leaf in flat]
            new = [n for n in active if n not in self.cohort_of]
            if new:
                self.cohort_of.update(dict.fromkeys(new, self._unused()))
            cohorts = sorted({self.cohort_of[n] for n in active})
            members = tuple(
                tuple(n for n in active if self.cohort_of[n] == cohort) for cohort in cohorts
            )
            index: dict[Key, int] = {}
            owners: list[int] = []
            places = []
            for i, cohort in enumerate(cohorts):
                place = []
                for owner, path, leaf in leaves:
                    key = (cohort, path) if owner is None else (-1, path)
                    if key not in index:
                        index[key] = len(index)
                        owners.append(
                            i if owner is None else cohorts.index(self.cohort_of[int(owner)])
                        )
                        old = self.held.get(key)
                        if old is None or tuple(old.shape) != jnp.shape(leaf):
                            made = from_array(jnp.array(leaf))
                            beside = params[0] if owner is None else known[owner]
                            self.held[key] = place_beside(beside, made)
                    place.append(index[key])
                places.append(tuple(place))
        return Layout(active, treedef, tuple(index), tuple(owners), tuple(places), members)

    # ------------------------------------------------------------ saving

    def packed(self, prefix: str) -> dict[str, Any]:
        """Return the tensors by path; shared ones of later cohorts have the cohort behind it."""
        return {
            f"{prefix}{path}@{cohort}" if cohort > 0 else f"{prefix}{path}": t
            for (cohort, path), t in self.held.items()
        }

    @classmethod
    def unpacked(
        cls, transform: Any, wide: bool, params: dict[int, Any], cohort_of: dict[int, int],
        state: dict[str, Any], prefix: str,
    ) -> Cohorts:  # fmt: skip
        """Undo `packed`, for numbered parameters."""
        made = cls(transform, wide)
        made.cohort_of = {n: cohort_of[n] for n in params}
        if not params:
            return made
        made._start(tuple(params), list(params.values()))
        for cohort, path in made.held:
            name = f"{prefix}{path}@{cohort}" if cohort > 0 else f"{prefix}{path}"
            if name not in state:
                raise ValueError(f"the state dict lacks {name!r} of this transformation's state")
            made.held[cohort, path] = state[name].detach().clone()
        made.place(params)
        return made


def _owner(path: Any, arrays: dict[str, Any]) -> str | None:
    """Return the parameter that a leaf at this path belongs to."""
    for entry in path:
        if isinstance(entry, DictKey) and entry.key in arrays:
            return str(entry.key)
    return None


def _number(path: str) -> int | None:
    found = [part.split("']")[0] for part in path.split("['")[1:]]
    numbers = [int(part) for part in found if part.isdigit()]
    return numbers[0] if numbers else None
