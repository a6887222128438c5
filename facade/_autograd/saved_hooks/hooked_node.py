"""The graph node of an op recorded while saved-tensor hooks are in force."""

from __future__ import annotations

from functools import cache
from typing import Any

from leafax.functional.lowering.vjp import vjp_of
from leafax.functional.program.program import Slot

from ..._core.dtypes import of
from ..._core.trie import State, local
from ..._rules.dependence import is_zero, linear
from ..._rules.error_texts import FREED
from ..._rules.no_derivative import refuse
from ..._rules.node_edges import places
from ..._rules.node_names import node_name, qualified
from ..._rules.reads_of_gradients import given_of
from ..._rules.result_rules import RESULT_RULES
from ..._rules.saved_columns import WRAPPING, argument, saved_places, wraps
from ..._rules.saved_names import may_have
from ..._rules.undefined_gradients import drop_ungiven
from ..._storage.enter import enter
from ..engine.record_gradient import record_gradient
from ..formulas.differentiate import differentiate
from ..formulas.from_result import from_result
from ..formulas.indexing import FORMULAS as INDEXED
from ..graph.edges import edge_of
from ..graph.fit_gradient import fit
from ..graph.node import Node
from ..graph.python_node import CustomNode
from ..saved.saved_arguments import saved_argument
from ..saved.saved_attributes import copied, wrapped
from .node_view import NodeFacts, NodeView
from .packing import overwritten
from .saved_tensor import AtHooked, SavedTensor
from .saved_tensors_hooks import Packed
from .unpacked_checks import check_unpacked


class HookedNode(CustomNode):
    """Differentiates one op from what the hooks unpack.

    Attributes:
      packed: by operand, or by -1 - output.
      kept: operands that the gradient reads and no hook can see: keys, masks, indices.
    """

    def __init__(self, state: State) -> None:
        super().__init__()
        self.call = state.call
        self.avals = [v.aval for v in state.operands]
        self.kinds = [v.resting for v in state.operands]
        self.weak = [v.weak for v in state.operands]
        self.autocast = state.mode.autocast
        self.outs = [v.resting for v in state.values]
        self.given = given_of(state)
        self.order_of_edges = places(state)
        # Hooks see no numbers, not those either that became inputs.
        self.saves = tuple(s for s in saved_places(state) if s[1] < 0 or not self.weak[s[1]])
        self.packed: dict[int, Packed] = {}
        self.kept: dict[int, Any] = {}

    def __repr__(self) -> str:
        return f"<{self.name()} object at {hex(id(self))}>"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_") and "call" in self.__dict__:
            wanted = name[len("_saved_") :]
            if any(saved == wanted for saved, _ in self.saves) or may_have(self.name(), wanted):
                return self._saved(wanted)
        if name.startswith("_raw_saved_"):
            for saved, index in self.__dict__.get("saves", ()):
                if saved == name[len("_raw_saved_") :]:
                    return SavedTensor.at(AtHooked(self, index))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _saved(self, name: str) -> Any:
        """Give `_saved_<name>` of this node."""
        op = self.call.op
        found = [index for saved, index in self.saves if saved == name]
        given: Any = argument(self.call, name) if name in op.saves else None
        number = given if isinstance(given, Slot) and self.weak[given.index] else None  # an input
        if self.freed and (found or number is not None or wraps(self.call, given)):
            raise RuntimeError(FREED)
        if found and type(given) in (tuple, list):
            tensors = iter([self.packed[index].unpack(self) for index in found])
            return tuple([None if a is None else next(tensors) for a in given])
        if found:
            t = self.packed[found[0]].unpack(self)
            return copied(t) if 0 <= found[0] == overwritten(op) else t
        if name not in op.saves:
            return self._argument(name)
        if number is not None and number.index in self.kept:
            value = self.kept[number.index].item()
            return wrapped(value) if op.name in WRAPPING else value
        if wraps(self.call, given):
            return wrapped(given)
        return None if given is None or isinstance(given, Slot) else self._argument(name)

    def _argument(self, name: str) -> Any:
        """Give what the node keeps beside tensors."""

        def unpack(i: int) -> Any:
            return self.kept[i] if i in self.kept else self.packed[i].unpack(self)

        try:
            return saved_argument(name, self.call, [a.shape for a in self.avals], unpack)
        except KeyError:
            pass
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{name}'")

    def operand(self, i: int) -> Any:
        """Unpack operand `i`, in the dtype that the op had it in."""
        t, want = self.packed[i].unpack(self), self.avals[i].dtype
        check_unpacked(self.call.op, want, t)
        return t if t._v.dtype == want else t.to(of(want))

    def output_kinds(self) -> list[Any]:
        return self.outs[: self.given[-1] + 1] if self.given else []

    def next_places(self) -> tuple[int | None, ...]:
        return self.order_of_edges

    __call__ = Node.__call__

    def free(self) -> None:
        self.freed = True
        self.packed, self.kept = {}, {}

    def apply_custom(self, grads: list[Any], needed_nodes: set[Any]) -> list[Any]:
        if self.freed:
            raise RuntimeError(FREED)
        return drop_ungiven(self.call, self.avals, self._apply(grads, needed_nodes))

    def _apply(self, grads: list[Any], needed_nodes: set[Any]) -> list[Any]:
        wanted = tuple(
            k for k, e in enumerate(self._edges) if e is not None and e[0] in needed_nodes
        )
        if not wanted:  # a pass that ends here unpacks all the same
            for saved in self.packed.values():
                saved.unpack(self)
            return [None] * len(self._edges)
        refuse(NodeFacts(self), wanted, self.name())
        by_index = self.call.op.qualified in INDEXED
        found = self._by_formula(grads, needed_nodes) if local.mode.grad or by_index else None
        if found is not None:
            return found
        passed: list[Any] = [None] * len(self._edges)
        rule = RESULT_RULES.get(self.call.op.name)
        if rule is not None and -1 in self.packed and self.call.op.backward != "CopySlices":
            grad = rule(self.packed[-1].unpack(self), grads[0])
            passed[wanted[0]] = fit(self.name(), 0, grad, self.kinds[0])
            return passed
        if -1 in self.packed and grads[0] is not None:
            found = from_result(NodeView(self), grads, needed_nodes)
            if found is not None:
                return found
        given = tuple(k for k in self.given if k < len(grads) and grads[k] is not None)
        present = dict(self.kept)
        present.update({i: self.operand(i) for i in self.packed if i >= 0})
        absent = tuple((i, a) for i, a in enumerate(self.avals) if i not in present)
        cts = [fit(self.name(), k, grads[k], self.outs[k]) for k in given]
        trace = local.trace
        values = [enter(present[i], trace) for i in sorted(present)]
        values += [enter(c, trace) for c in cts]
        # Gradients that are differentiated again are one node an input, as in PyTorch.
        for group in [(k,) for k in wanted] if local.mode.grad else [wanted]:
            call = vjp_of(self.call, len(self.avals), group, given, absent)
            tracked = local.mode.grad and (not linear(call) or any(c._tracked for c in cts))
            tracked = tracked and not is_zero(call, values)
            outs = record_gradient(trace, call, values, None, tracked)
            for k, out in zip(group, outs, strict=True):
                passed[k] = out
        return passed

    def _by_formula(self, grads: list[Any], needed_nodes: set[Any]) -> list[Any] | None:
        """Take the gradients from PyTorch's formula; its ops save what they read through hooks."""
        try:
            return differentiate(NodeView(self), grads, needed_nodes)
        except KeyError:  # the formula reads what was not kept
            return None


@cache
def _class(name: str) -> type[HookedNode]:
    told = qualified(name)
    members = {"__module__": "torch.autograd", "name": lambda self: told}
    return type(name, (HookedNode,), members)


def hooked_node(state: State, trace: Any) -> HookedNode:
    """Make the node of a step that was recorded without gradients."""
    node = _class(node_name(state))(state)
    node._edges = [edge_of(trace, v) for v in state.operands]
    return node
