"""Views that may not be written to in PyTorch, and its words for them."""

from __future__ import annotations

from typing import Any

from .._core.trie import LEAF, NODE, Value, local
from .._rules.error_texts import short_name
from .._rules.node_names import node_name

# What made a view ambiguous: what PyTorch adds to its error.
_ADVICE = {
    "multi": (
        "This view is the output of a function that returns multiple views. Such functions do "
        "not allow the output views to be modified inplace. You should replace the inplace "
        "operation by an out-of-place one."
    ),
    "function": (
        "This view was created inside a custom Function (or because an input was returned as-is) "
        "and the autograd logic to handle view+inplace would override the custom backward "
        "associated with the custom Function, leading to incorrect gradients. This behavior is "
        "forbidden. You can fix this by cloning the output of the custom Function."
    ),
}


_SCOPED = (
    "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
    "code by moving both the view and the inplace either both inside the {scope} block (if you "
    "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
    "tracked)."
)


class AmbiguousView(RuntimeError):
    """A view was used whose history nobody can tell; PyTorch's class is `RuntimeError`."""


AmbiguousView.__name__ = "RuntimeError"


def ambiguous(t: Any, what: str) -> str:
    """Return PyTorch's words for a view that may not be written to (or whose base may not)."""
    old = t._stale if t._stale is not None else t._v
    node = _maker(t, old)
    why = t._creation
    maker = f"Output {node[1]} of {node[0]}" if node else ""
    if why in ("no_grad", "inference") or not maker:
        begin = _begin(f"{maker} is a view of a view which" if maker else "A view", what, why)
    else:
        begin = f"{maker} is a view and {what} modified inplace."
    return f"{begin} {_ADVICE.get(why) or _scoped(why)}"


def unseen(inference: bool) -> str:
    """Return PyTorch's words for a view made without grad mode, whose base was written to."""
    why = "inference" if inference else "no_grad"
    begin = _begin("A view", "its base or another view of its base has been", why)
    return f"{begin} {_scoped(why)}"


def _begin(view: str, what: str, why: str) -> str:
    if why == "inference":
        return f"{view} was created in inference mode and {what} modified inplace in normal mode."
    return f"{view} was created in no_grad mode and {what} modified inplace with grad mode enabled."


def _scoped(why: str) -> str:
    return _SCOPED.format(scope="inference_mode" if why == "inference" else "no_grad")


def multiple(name: str, out: int, why: str = "multi") -> str:
    """Return PyTorch's words for one of several views whose base was written to."""
    what = "its base or another view of its base has been modified inplace."
    return f"Output {out} of {name} is a view and {what} {_ADVICE[why]}"


def _maker(t: Any, value: Value) -> tuple[str, int] | None:
    name = None
    if value.role == NODE and value.edge is not None:
        name, out = node_name(value.edge.state), value.edge.out
    elif value.role > LEAF:
        fn, out = t._node, t._out
        if fn is None and value.edge in local.trace.sources:
            source = local.trace.sources[value.edge]
            fn, out = source._node, source._out
        name = None if fn is None else type(fn).__name__
    return None if name is None else (short_name(name), out)
