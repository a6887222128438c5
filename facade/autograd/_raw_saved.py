"""Hooks on one saved tensor of one node: `grad_fn._raw_saved_self.register_hooks(pack, unpack)`."""

from __future__ import annotations

from functools import partial
from typing import Any

from leafax.functional import vjp_of

from .._enter import enter
from .._keep import given_of, needed
from .._saved import FREED, saved_places
from .._trace import local
from ._context import fit
from ._hooked_node import RESULT_RULES
from ._saved_hooks import Packed


class SavedTensor:
    """One tensor that a node saved."""

    def __init__(self, node: Any, index: int) -> None:
        self._node, self._index = node, index

    def register_hooks(self, *hooks: Any) -> None:
        """Replace the saved tensor by `pack_hook` of it now, and by `unpack_hook` of that later.

        Args: `(pack_hook, unpack_hook)`.

        Raises:
          RuntimeError: if it is freed, or has hooks already.
        """
        if len(hooks) != 2 or not all(callable(h) for h in hooks):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types "
                "are supported:\n    1. (self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None"
            )
        pack_hook, unpack_hook = hooks
        node, index = self._node, self._index
        if node.is_freed():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if node.packed is not None and index in node.packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        edge = node.edges()[index] if index >= 0 else -1 - index
        packed = Packed(node.unpack(index), (pack_hook, unpack_hook), edge)
        node.packed = {**(node.packed or {}), index: packed}
        if node.saved is not None:
            node.saved.pop(index, None)
        node.mark_hooked()


def attribute(node: Any, name: str) -> Any:
    """`_raw_saved_*` of an ordinary node, and its `apply_custom` once it has hooks."""
    if name == "apply_custom":
        return partial(apply_packed, node)
    if node.is_freed():
        raise RuntimeError(FREED)
    for saved, index in saved_places(node.state):
        if saved == name[len("_raw_saved_") :]:
            return SavedTensor(node, index)
    raise AttributeError(f"'{node.name()}' object has no attribute '{name}'")


def apply_packed(
    node: Any, grads: list[Any], needed_nodes: set[Any], packed: Any = None
) -> list[Any]:
    """The gradient of a node that has hooks on some of its saved tensors.

    Args:
      packed: what stands for them, by operand or -1 - output; by default what its hooks packed.
    """
    if node.is_freed():
        raise RuntimeError(FREED)
    state, edges, packed = node.state, node.edges(), packed or node.packed
    wanted = tuple(k for k, e in enumerate(edges) if e is not None and e[0] in needed_nodes)
    passed: list[Any] = [None] * len(edges)
    rule = RESULT_RULES.get(state.call.op.name)
    if rule is not None and -1 in packed:
        passed[wanted[0]] = fit(
            node.name(), 0, rule(packed[-1].unpack(node), grads[0]), state.operands[0]
        )
        return passed
    given = tuple(k for k in given_of(state) if k < len(grads) and grads[k] is not None)
    present = {i: packed[i].unpack(node) if i in packed else node.unpack(i) for i in needed(state)}
    absent = tuple((i, v.aval) for i, v in enumerate(state.operands) if i not in present)
    cts = [fit(node.name(), k, grads[k], state.values[k]) for k in given]
    call = vjp_of(state.call, len(state.operands), wanted, given, absent)
    trace = local.trace
    values = [enter(present[i], trace) for i in sorted(present)]
    values += [enter(c, trace) for c in cts]
    from .._engine import _record

    outs = _record(trace, call, values, None, local.mode.grad)
    for k, out in zip(wanted, outs, strict=True):
        passed[k] = out
    return passed
