"""An optimizer's state as a bundle: between two steps nobody looks at it, so no tensors are made.

`optimizer.state` is a plain attribute until a few steps were replayed. Then it is taken from the
instance, with the tensors in it, and a `Bundle` a group has their arrays. Whoever asks for the
attribute finds the descriptor here, which puts all back. Which tensors somebody holds, or could
get at without asking, is told by their reference counts: such a state stays as it is.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from ..._core.locks import sharing
from ..._tracing import inputs
from ..._tracing.bundles import Bundle, holders

_PATIENCE, _MOST_PATIENCE = 3, 1 << 30
_FEW = 8  # tensors for which it is not worth while
_FIELDS = frozenset({"_v", "_trace", "_array", "_stale"})  # of a tensor at rest and nothing else


class Bundling:
    """Memory of how an optimizer's state is bundled.

    Attributes:
      left: steps until the state is bundled, if they are all replayed as they were recorded.
      patience: how many these are; twice as many each time.
    """

    def __init__(self) -> None:
        self.left, self.patience = _PATIENCE, _PATIENCE
        self._bundles: dict[int, tuple[list[int], Bundle]] = {}  # by group, with its parameters
        self._state: Any = None

    def wait(self) -> None:
        """Begin to count anew."""
        self.left = self.patience

    def bundle_of(self, group: Any, params: list[Any]) -> Bundle | None:
        """Return the bundle of the state of just these parameters, if there is one."""
        ids, bundle = self._bundles.get(id(group), (None, None))
        return bundle if ids == [*map(id, params)] else None

    def bundle(self, fields: dict[str, Any], groups: Sequence[tuple[Any, ...]]) -> bool:
        """Bundle a state that is worth it, and that nobody else has a hand in.

        Args:
          fields: the optimizer's, among them its `state`.
          groups: each group, what of its parameters are updated and the names of their states.
        """
        with sharing:
            self.patience = min(2 * self.patience, _MOST_PATIENCE)
            self.wait()
            if _have_other_holders([fields["state"]]):
                return False
            found = []
            for group, params, names in groups:
                slots = _slots(fields["state"], params, names)
                if slots is None:
                    return False
                found.append((id(group), [*map(id, params)], slots))
            if sum(len(slots) for _, _, slots in found) < _FEW:
                return False
            # In this order an interrupt finds either the tensors or the bundles complete.
            self._bundles = {group: (ids, Bundle(slots)) for group, ids, slots in found}
            self._state = fields.pop("state")
            for _, _, slots in found:
                for entry, name in slots:
                    entry[name] = None  # type: ignore[assignment]
            return True

    def release(self, fields: dict[str, Any]) -> None:
        """Put the state with its tensors back among the optimizer's fields."""
        with sharing:
            if self._state is None:  # another thread did
                return
            for _, bundle in self._bundles.values():
                bundle.release()
            fields.setdefault("state", self._state)
            self.wait()
            self._bundles, self._state = {}, None


class BundledState:
    """The attribute `state` of optimizers, found where the instance has none."""

    def __get__(self, optimizer: Any, cls: Any = None) -> defaultdict[Any, dict[str, Any]]:
        fields = {} if optimizer is None else vars(optimizer)
        if "_bundling" in fields:
            fields["_bundling"].release(fields)
            holders.discard(optimizer)
        if "state" not in fields:
            name = cls.__name__
            raise AttributeError(
                f"type object '{name}' has no attribute 'state'" if optimizer is None
                else f"'{name}' object has no attribute 'state'"
            )  # fmt: skip
        return fields["state"]  # type: ignore[no-any-return]


Slots = list[tuple[dict[str, Any], str]]


def _slots(
    state: dict[Any, dict[str, Any]], params: Sequence[Any], names: Sequence[str]
) -> Slots | None:
    """List where the state's tensors stand: entries of dicts.

    Returns:
      None if one of them is missing, is more than data at rest, or has another holder.
    """
    entries = [state[p] for p in params if p in state]
    if len(entries) < len(params) or not all(name in e for e in entries for name in names):
        return None
    tensors = [e[name] for e in entries for name in names]
    if _have_other_holders(entries) or _have_other_holders(tensors):
        return None
    plain = all(type(t) is inputs._tensor_class and _FIELDS.issuperset(vars(t)) for t in tensors)
    if not plain or not all(t._array is not None and t._trace is None for t in tensors):
        return None
    return [(e, name) for e in entries for name in names]


def _most_held(things: list[Any]) -> int:
    return max(map(sys.getrefcount, things), default=0)


_ONE_HOLDER = _most_held(list({"held": object()}.values())) + 1


def _have_other_holders(things: list[Any]) -> bool:
    """Tell whether anything in a list is held by more than the list and one other."""
    return _most_held(things) > _ONE_HOLDER
