"""`grad_fn._saved_*` of nodes that the recorder made: tensors, and what is kept beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from leafax.functional.program.program import Slot

from ..._core.grad_modes import within
from ..._core.trie import Mode, local
from ..._rules.error_texts import FREED
from ..._rules.saved_columns import WRAPPING, argument, saved_places, wraps
from ..._rules.saved_names import may_have
from ..._rules.strides.layouts import laid
from ..._tracing.inputs import from_array
from ..data_writes import rewritten
from ..extensions import extensions
from ..graph.version_checks import check_versions, latest_versions
from .saved_arguments import saved_argument
from .saved_views import as_view

if TYPE_CHECKING:
    from ..graph.node import Node


def saved_attribute(node: Node, name: str) -> Any:
    """Give `grad_fn._saved_<name>`.

    Raises:
      RuntimeError: once a backward pass freed it, or if it was written to since.
      AttributeError: if the node has nothing of that name.
    """
    call = node.state.call
    op = getattr(call, "op", None)
    if op is None or not may_have(node.name(), name):
        raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")
    if name not in op.saves:
        return _kept(node, name)
    given = argument(call, name)
    found = [index for saved, index in saved_places(node.state) if saved == name]
    if node.is_freed() and (found or wraps(call, given)):
        raise RuntimeError(FREED)
    if isinstance(given, Slot):
        if not found and node.state.operands[given.index].weak:  # it became an input
            return node.unpack(given.index).item()
        given = None
    if isinstance(given, (tuple, list)):  # indices, None where a dimension has none
        places = iter(found)
        return tuple(None if a is None else _tensor(node, next(places)) for a in given)
    if found:
        if found[0] >= 0 and node.state.operands[found[0]].weak and op.name not in WRAPPING:
            return node.unpack(found[0]).item()
        t = _tensor(node, found[0])
        return copied(t) if op.overwrites and name == "self" else t
    if wraps(call, given):
        return wrapped(given)
    return None if given is None else _kept(node, name)


def _tensor(node: Node, index: int) -> Any:
    if node.packed is not None and index in node.packed:
        return node.packed[index].unpack(node)
    if node.saved is not None:
        check_versions(node, {}, index)
    elif node.trace is local.trace:
        check_versions(node, latest_versions(local.trace.state), index)
    fresh = rewritten(node).get(index)  # the tensor has other data since
    return as_view(node, index, node.unpack(index) if fresh is None else fresh.unpack(node))


def copied(t: Any) -> Any:
    """Copy what an in-place op overwrites, as PyTorch saves it; the copy has a node of its own."""
    if not t.requires_grad:
        return t
    with within(Mode.of(True, False, local.mode.autocast)):  # it was copied when it was saved
        return t.clone()


def _kept(node: Node, name: str) -> Any:
    def unpack(index: int) -> Any:
        if node.trace is None and index not in (node.saved or {}):
            raise KeyError(name)  # a number that was an input of a program that has run
        return node.unpack(index)

    try:
        operands = node.state.operands
        shapes = [v.shape for v in operands]
        # PyTorch asks for the strides of what gets a gradient.
        strides = [tuple(laid(v).strides) if v.requires_grad else () for v in operands]
        return saved_argument(name, node.state.call, shapes, unpack, strides)
    except KeyError:
        pass
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '_saved_{name}'")


def wrapped(number: Any) -> Any:
    """Wrap a Python number as PyTorch does: in a tensor of the widest dtype of its kind."""
    with jax.enable_x64(True):
        return from_array(jnp.asarray(number))


extensions.attributes["_saved_"] = saved_attribute
