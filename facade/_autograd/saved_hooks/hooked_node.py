"""The graph node of an op recorded while saved-tensor hooks are in force."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

from leafax.functional.lowering.vjp import vjp_of
from leafax.functional.program.program import Slot

from ..._core.dtypes import of
from ..._core.grad_modes import within
from ..._core.handle import Handle
from ..._core.trie import Mode, State, Value, local
from ..._rules.no_derivative import refuse, refuse_arguments, refuse_complex, refuse_integers
from ..._rules.node_names import asks_nobody, node_name, places, qualified
from ..._rules.result_rules import RESULT_RULES
from ..._rules.saved_names import may_have
from ..._rules.undefined_gradients import drop_ungiven
from ..._storage.shared_storage import share
from ..._tracing.inputs import enter, make
from ..._tracing.record import record
from ..formulas.indexing import FORMULAS as INDEXED
from ..graph.edges import edge_of
from ..graph.fit_gradient import fit
from ..graph.keep_over_cut import given_of
from ..graph.node import Node
from ..graph.python_node import CustomNode, external
from ..saved.saved_values import FREED, WRAPPING, argument, saved_places, wraps
from ..saved.unpacked_checks import check_unpacked
from .packing import is_held, operands, overwritten, pack, results
from .saved_tensors_hooks import Packed


class Recorded(NamedTuple):
    """What the recorder's door needs of a state."""

    call: Any
    values: tuple[Value, ...]
    value: Value | None
    operands: tuple[Value, ...] = ()
    packed: tuple[Any, ...] = ()  # for each result the tensor that hooks saw and hold, or None

    def tie(self, outs: list[Any]) -> None:
        """Let results share memory with what hooks hold of them: writes are seen there."""
        for out, held in zip(outs, self.packed, strict=False):
            if held is not None:
                share(held, out, (), view=False)

    def tie_written(self, t: Any) -> None:
        """Let what hooks hold of the new value of `t` see the writes that follow."""
        for held in self.packed[:1]:
            if held is None or held is t:
                continue
            members = [m() for m in held._store.members] if held._shares else []
            for m in (held, *members):
                if m is not None and m is not t and not m._lens and m._base_ is None:
                    share(t, m, (), view=False)


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
            from .saved_tensor import AtHooked, SavedTensor

            for saved, index in self.__dict__.get("saves", ()):
                if saved == name[len("_raw_saved_") :]:
                    return SavedTensor.at(AtHooked(self, index))
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _saved(self, name: str) -> Any:
        """`_attributes.saved_attribute` of this node."""
        from ..saved.saved_attributes import copied, wrapped

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
        """What the node keeps beside tensors."""
        from ..saved.saved_arguments import saved_argument

        def unpack(i: int) -> Any:
            return self.kept[i] if i in self.kept else self.packed[i].unpack(self)

        try:
            return saved_argument(name, self.call, [a.shape for a in self.avals], unpack)
        except KeyError:
            pass
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '_saved_{name}'")

    def _operand(self, i: int) -> Any:
        """Saved operand `i`, in the dtype that the op had it in."""
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
        refuse(_Facts(self), wanted, self.name())
        by_index = self.call.op.qualified in INDEXED
        spelled = self._spelled(grads, needed_nodes) if local.mode.grad or by_index else None
        if spelled is not None:
            return spelled
        passed: list[Any] = [None] * len(self._edges)
        rule = RESULT_RULES.get(self.call.op.name)
        if rule is not None and -1 in self.packed and self.call.op.backward != "CopySlices":
            grad = rule(self.packed[-1].unpack(self), grads[0])
            passed[wanted[0]] = fit(self.name(), 0, grad, self.kinds[0])
            return passed
        if -1 in self.packed and grads[0] is not None:
            from ..formulas.from_result import gradients

            spelled = gradients(_Spelling(self), grads, needed_nodes)
            if spelled is not None:
                return spelled
        given = tuple(k for k in self.given if k < len(grads) and grads[k] is not None)
        present = dict(self.kept)
        present.update({i: self._operand(i) for i in self.packed if i >= 0})
        absent = tuple((i, a) for i, a in enumerate(self.avals) if i not in present)
        cts = [fit(self.name(), k, grads[k], self.outs[k]) for k in given]
        trace = local.trace
        values = [enter(present[i], trace) for i in sorted(present)]
        values += [enter(c, trace) for c in cts]
        from ..._rules.reads_of_gradients import is_zero, linear
        from ..engine.record_gradient import record_gradient

        # Gradients that are differentiated again are one node an input, as in PyTorch.
        for group in [(k,) for k in wanted] if local.mode.grad else [wanted]:
            call = vjp_of(self.call, len(self.avals), group, given, absent)
            tracked = local.mode.grad and (not linear(call) or any(c._tracked for c in cts))
            tracked = tracked and not is_zero(call, values)
            outs = record_gradient(trace, call, values, None, tracked)
            for k, out in zip(group, outs, strict=True):
                passed[k] = out
        return passed

    def _spelled(self, grads: list[Any], needed_nodes: set[Any]) -> list[Any] | None:
        """The gradients by PyTorch's formula, whose ops save what they read through hooks."""
        from ..formulas.differentiate import differentiate

        try:
            return differentiate(_Spelling(self), grads, needed_nodes)
        except KeyError:  # the formula reads what was not kept
            return None


class _Operand(NamedTuple):
    shape: Any
    dtype: Any
    weak: bool
    strides: Any = None


class _Facts:
    """What a node tells of the step that it differentiates."""

    def __init__(self, node: HookedNode) -> None:
        self.call, self.autocast = node.call, node.autocast
        self.operands = [
            _Operand(a.shape, a.dtype, w, k.strides)
            for a, w, k in zip(node.avals, node.weak, node.kinds, strict=True)
        ]
        self.value = node.outs[0]


class _Spelling(_Facts):
    """A hooked node as formulas see nodes; each saved tensor is unpacked once.

    Attributes:
      state: itself: `call`, `operands` and `mode` are all that formulas look at.
    """

    trace = None

    def __init__(self, node: HookedNode) -> None:
        super().__init__(node)
        self._node = node
        self._seen: dict[int, Any] = {}
        self.name, self.next_edges = node.name, node.next_edges
        self.next_places = node.next_places

    @property
    def state(self) -> _Spelling:  # not an attribute: what it unpacked would be in a cycle
        return self

    mode = state

    def unpack(self, index: int) -> Any:
        if index not in self._seen:
            node = self._node
            if index in node.kept:
                self._seen[index] = node.kept[index]
            elif index < 0:
                self._seen[index] = t = node.packed[index].unpack(node)
                check_unpacked(node.call.op, node.outs[-1 - index].dtype, t)
            else:
                self._seen[index] = node._operand(index)
        return self._seen[index]


@cache
def _class(name: str) -> type[HookedNode]:
    told = qualified(name)
    members = {"__module__": "torch.autograd", "name": lambda self: told}
    return type(name, (HookedNode,), members)


def hooked_node(state: State, trace: Any) -> HookedNode:
    """The node of a step that was recorded without gradients."""
    node = _class(node_name(state))(state)
    node._edges = [edge_of(trace, v) for v in state.operands]
    return node


def recorded(op: Any, args: Any, kwargs: Any) -> Any:
    """Record one op under hooks: what `_record.record` returns, or None if nothing is saved."""
    mode = local.mode
    if not mode.grad or not op.saves or op.view or not op.differentiable:
        return None
    try:
        with within(Mode.of(False, mode.inference, mode.autocast, False)):
            state, trace = record(op, args, kwargs, budget=False)
    except Exception:
        with within(Mode.of(True, mode.inference, mode.autocast, False)):
            record(op, args, kwargs, budget=False)  # what autograd says comes first
        raise
    if not any(v.requires_grad for v in state.operands) or asks_nobody(state.call, state.operands):
        return _as_is(state), trace
    refuse_arguments(state.call, state.operands)  # which nobody asked without grad mode
    refuse_complex(op, state.values)
    refuse_integers(op, state.values, state.operands)
    if not given_of(state):
        return _as_is(state), trace
    node = hooked_node(state, trace)
    tracked = set(node.given).difference(op.constant_outputs or ())
    outs = [
        make(external(v, node, k) if k in tracked else v, trace) for k, v in enumerate(state.values)
    ]
    pack(node, operands(node, state, args, kwargs, trace))
    with _counted(op, args, outs):
        pack(node, results(node, outs))
    trace = local.trace  # a hook that observes cuts: the outputs are on arrays then
    values = tuple(enter(t, trace) for t in outs)
    packed = tuple([o if is_held(o) else None for o in outs])
    return Recorded(state.call, values, values[0], state.operands, packed), trace


@contextmanager
def _counted(op: Any, args: Any, outs: list[Any]) -> Iterator[None]:
    """Let hooks see the result of a write with the counter of what is written to, as after it."""
    place = overwritten(op)
    target = args[place] if place >= 0 else None
    if not isinstance(target, Handle) or target._v.inference:  # type: ignore[attr-defined]
        yield
        return
    if target._vc is None:  # type: ignore[attr-defined]
        target._vc = [0]  # type: ignore[attr-defined]
    counter = outs[0]._vc = target._vc  # type: ignore[attr-defined]
    counter[0] += 1
    try:
        yield
    finally:
        counter[0] -= 1  # the write itself comes next


def _as_is(state: State) -> Recorded:
    return Recorded(state.call, state.values, state.value, state.operands)
