"""Hooks on one saved tensor of one node: `grad_fn._raw_saved_self.register_hooks(pack, unpack)`."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.program import Slot

from ..._rules.saved_columns import argument, is_number, saved_places
from ..._rules.saved_names import may_have
from ..extensions import extensions
from .saved_tensor import AtNode, SavedTensor


def raw_saved(node: Any, wanted: str) -> Any:
    """Give `grad_fn._raw_saved_<wanted>` of a node that the recorder made."""
    found = [index for saved, index in saved_places(node.state) if saved == wanted]
    call = node.state.call
    saves = getattr(getattr(call, "op", None), "saves", ())
    has = wanted in saves and not is_number(node.state, wanted)
    if has and may_have(node.name(), wanted):
        given = argument(call, wanted)
        if isinstance(given, (tuple, list)) and not isinstance(given, Slot):
            places = iter(found)
            return tuple(
                SavedTensor.at(AtNode(node, None if a is None else next(places))) for a in given
            )
        return SavedTensor.at(AtNode(node, found[0] if found else None))
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '_raw_saved_{wanted}'")


extensions.attributes["_raw_saved_"] = raw_saved
