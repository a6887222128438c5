"""Hooks on one saved tensor of one node: `grad_fn._raw_saved_self.register_hooks(pack, unpack)`."""

from __future__ import annotations

from functools import partial
from typing import Any

from leafax.functional.program.program import Slot

from ..._core.trie import local
from ..._core.view_ops import path_of, reader, spell, writer
from ..._rules.no_derivative import refuse
from ..._rules.result_rules import RESULT_RULES
from ..._rules.saved_names import may_have
from ..._tracing.inputs import make
from ..._tracing.record import apply, record
from ..formulas.differentiate import number
from ..formulas.indexing import FORMULAS as INDEXED
from ..graph.fit_gradient import fit
from ..graph.keep_over_cut import given_of, needed
from ..saved.saved_values import FREED, argument, is_number, saved_places
from .saved_tensor import AtNode, SavedTensor


def attribute(node: Any, name: str) -> Any:
    """`_raw_saved_*` of an ordinary node, and its `apply_custom` once it has hooks."""
    if name == "apply_custom":
        return partial(apply_packed, node)
    wanted = name[len("_raw_saved_") :]
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
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def _of_part(node: Any, rule: Any, result: Any, grad: Any) -> Any:
    """The gradient of a base after a write to a view: `rule` holds for what was written."""
    call = node.state.call
    given = [number(node, a.index) if isinstance(a, Slot) else a for a in call.args[1:]]
    structure, flat = spell(path_of(call.op, given) or ())
    seen = [record(reader(structure), (t, *flat), {})[0].value for t in (result, grad)]
    part = rule(*[make(value, local.trace) for value in seen])
    return apply(writer(structure, False), grad, part, *flat)


def apply_packed(
    node: Any, grads: list[Any], needed_nodes: set[Any], packed: Any = None
) -> list[Any]:
    """The gradient of a node that has hooks on some of its saved tensors.

    Args:
      packed: what stands for them, by operand or -1 - output; by default what its hooks packed.
    """
    if node.is_freed():
        raise RuntimeError(FREED)
    state, edges, packed = node.state, node.next_edges(), packed or node.packed
    wanted = tuple(k for k, e in enumerate(edges) if e is not None and e[0] in needed_nodes)
    refuse(state, wanted)
    passed: list[Any] = [None] * len(edges)
    rule = RESULT_RULES.get(state.call.op.name)
    if rule is not None and -1 in packed:
        result = packed[-1].unpack(node)
        if state.call.op.backward == "CopySlices":
            grad = _of_part(node, rule, result, grads[0])
        else:
            grad = rule(result, grads[0])
        passed[wanted[0]] = fit(node.name(), 0, grad, state.operands[0])
        return passed
    if state.call.op.qualified in INDEXED or local.mode.grad:
        from ..formulas.differentiate import differentiate
        from ..formulas.from_result import Unpacked

        spelled = differentiate(Unpacked(node, packed), grads, needed_nodes)
        if spelled is not None:
            return spelled
    if any(index == -1 for _, index in saved_places(state)) and any(g is not None for g in grads):
        from ..formulas.from_result import Unpacked, gradients

        spelled = gradients(Unpacked(node, packed), grads, needed_nodes)
        if spelled is not None:
            return spelled
    given = tuple(k for k in given_of(state) if k < len(grads) and grads[k] is not None)
    present = {i: packed[i].unpack(node) if i in packed else node.unpack(i) for i in needed(state)}
    cts = [fit(node.name(), k, grads[k], state.values[k]) for k in given]
    from ..engine.record_gradient import record_saved

    outs = record_saved(state, wanted, given, cts, present, local.mode.grad)
    for k, out in zip(wanted, outs, strict=True):
        passed[k] = out
    return passed
