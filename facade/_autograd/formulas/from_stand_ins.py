"""Gradients of nodes that have something else by now than the tensors that they saved.

Hooks on one saved tensor packed it, or a write through `.data` changed it.
"""

from __future__ import annotations

from typing import Any

from leafax.functional.program.program import Slot

from ..._core.trie import local
from ..._core.view_ops import path_of, reader, spell, writer
from ..._dispatch.record import apply, record
from ..._rules.error_texts import FREED
from ..._rules.no_derivative import refuse
from ..._rules.reads_of_gradients import given_of, needed
from ..._rules.result_rules import RESULT_RULES
from ..._rules.saved_columns import saved_places
from ..._tracing.inputs import make
from ..engine.record_gradient import record_saved
from ..extensions import extensions
from ..graph.fit_gradient import fit
from .differentiate import differentiate, number
from .from_result import from_result
from .indexing import FORMULAS as INDEXED


class WithStandIns:
    """A node as formulas see nodes, some of whose saved tensors something else stands for."""

    def __init__(self, node: Any, packed: dict[int, Any]) -> None:
        self._node, self._packed = node, packed
        self.state, self.trace = node.state, node.trace
        self.name, self.next_edges = node.name, node.next_edges
        self.next_places = node.next_places
        self._seen: dict[int, Any] = {}

    def unpack(self, index: int) -> Any:
        if index not in self._seen:
            packed = self._packed.get(index)
            found = self._node.unpack(index) if packed is None else packed.unpack(self._node)
            self._seen[index] = found
        return self._seen[index]


def from_stand_ins(
    node: Any, packed: dict[int, Any], grads: list[Any], needed_nodes: set[Any]
) -> list[Any]:
    """Take what a node passes on from what stands for some of the tensors that it saved.

    Args:
      packed: the stand-ins, by operand or -1 - output: what hooks packed, or what `.data` is now.
    """
    if node.is_freed():
        raise RuntimeError(FREED)
    state, edges = node.state, node.next_edges()
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
        found = differentiate(WithStandIns(node, packed), grads, needed_nodes)
        if found is not None:
            return found
    if any(index == -1 for _, index in saved_places(state)) and any(g is not None for g in grads):
        found = from_result(WithStandIns(node, packed), grads, needed_nodes)
        if found is not None:
            return found
    given = tuple(k for k in given_of(state) if k < len(grads) and grads[k] is not None)
    present = {i: packed[i].unpack(node) if i in packed else node.unpack(i) for i in needed(state)}
    cts = [fit(node.name(), k, grads[k], state.values[k]) for k in given]
    outs = record_saved(state, wanted, given, cts, present, local.mode.grad)
    for k, out in zip(wanted, outs, strict=True):
        passed[k] = out
    return passed


def _of_part(node: Any, rule: Any, result: Any, grad: Any) -> Any:
    """Take the gradient of a base after a write to a view: `rule` holds for what was written."""
    call = node.state.call
    given = [number(node, a.index) if isinstance(a, Slot) else a for a in call.args[1:]]
    structure, flat = spell(path_of(call.op, given) or ())
    seen = [record(reader(structure), (t, *flat), {})[0].value for t in (result, grad)]
    part = rule(*[make(value, local.trace) for value in seen])
    return apply(writer(structure, False), grad, part, *flat)


extensions.from_stand_ins = from_stand_ins
