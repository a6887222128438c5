"""Backward passes that NumPy computes at once, through graphs of small arrays on the host.

A graph that was never met hardly comes again where the last ones did not either: episodes of other
lengths, say. To record its gradients is to make a place of the trie for each, and a program that
runs once. Here each node's gradient is computed in the engine's order, and nothing of it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from leafax.functional.execution.confined import confined
from leafax.functional.execution.known_ops import SingleOp, single_op
from leafax.functional.execution.single_ops import on_host
from leafax.functional.lowering.vjp import vjp_of
from leafax.functional.program.program import Call
from leafax.functional.program.program import Node as ProgramNode

from ..._core.grad_modes import no_grad
from ..._core.run_log import at_once
from ..._host.compute import kind_of, tensor_on
from ..._rules.no_derivative import refuse
from ..._rules.reads_of_gradients import given_of
from ..._rules.undefined_gradients import drop_ungiven
from ..._storage.host_arrays import as_numpy
from ..._tracing.inputs import from_array
from ..at_once.template import FLOATS, MOST, needs_xla, run_small
from ..engine.record_gradient import residual_call
from ..engine.task import accumulating


class _Pull:
    """The gradient of nodes that are alike.

    Attributes:
      wanted: the operands that get one.
      places: those of what was saved that it takes.
      node, op: what is run; None if nothing is.
      kinds: the shapes and dtypes of the gradients that it takes.
    """

    __slots__ = ("wanted", "places", "node", "op", "kinds")

    def __init__(
        self, wanted: tuple[int, ...], places: tuple[int, ...], node: Any, op: SingleOp | None,
        kinds: list[Any],
    ) -> None:  # fmt: skip
        self.wanted, self.places, self.node, self.op, self.kinds = wanted, places, node, op, kinds


def is_small(nodes: Sequence[Any], leaves: Sequence[Any]) -> bool:
    """Tell whether NumPy may compute the gradients of these nodes."""
    if confined or not on_host():
        return False
    for leaf in leaves:
        value = leaf._v
        if value.numel > MOST or value.dtype not in FLOATS or value.strides is not None:
            return False
        if value.device is not None:
            return False
    for node in nodes:
        call = node.state.call
        if type(call) is not Call or call.op.namespace == "opaque" or call.op in needs_xla:
            return False
        for value in (*node.state.values, *node.state.operands):
            if value.numel > MOST or value.device is not None:
                return False
            if value.requires_grad and value.dtype not in FLOATS:
                return False
    return True


def gradients(root: Any, out: int, nodes: Sequence[Any], one: Any) -> dict[Any, np.ndarray] | None:
    """Compute the gradients that a pass brings to the ends of a graph of plain nodes.

    Args:
      root, out: the node where the pass begins, and which of its results gets `one`.
      nodes: all of the graph that are of ops; they stand on their own.

    Returns:
      the gradient of each end that gets one; None where a program has to compute them.
    """
    with jax.enable_x64(True), np.errstate(all="ignore"):
        return _walk(root, out, nodes, one)


def _walk(root: Any, out: int, nodes: Sequence[Any], one: Any) -> dict[Any, np.ndarray] | None:
    buffers: dict[Any, list[Any]] = {root: [None] * out + [np.asarray(one)]}
    # A node was recorded after those that it leads to.
    for node in sorted(nodes, key=_order, reverse=True):
        grads = buffers.pop(node, ())
        edges = node.next_edges()
        state = node.state
        given = tuple([k for k in given_of(state) if k < len(grads) and grads[k] is not None])
        pull = _pull_of(node, edges, given)
        if pull is None:
            return None
        if not pull.wanted:
            continue
        arrays: list[Any]
        if node.residual is None:
            saved = node.saved
            arrays = [as_numpy(saved[i].tensor._array) for i in pull.places]
        else:
            arrays = list(map(as_numpy, node.residual[1]))
        for k, kind in zip(given, pull.kinds, strict=True):
            grad = grads[k]
            if grad.shape != kind[0] or grad.dtype != kind[1]:
                return None
            arrays.append(grad)
        assert pull.op is not None
        passed = run_small(pull.node, pull.op, arrays, state.call.op)
        for k, grad in zip(pull.wanted, passed, strict=True):
            target, place = edges[k]
            if type(grad) is not np.ndarray:
                grad = np.array(grad)
            slots = buffers.setdefault(target, [])
            while len(slots) <= place:
                slots.append(None)
            if slots[place] is not None:
                grad = np.asarray(slots[place] + grad)
            slots[place] = grad
    at_once.ops += len(nodes)
    return {end: slots[0] for end, slots in buffers.items()}


def _order(node: Any) -> Any:
    return node.graph_order


def _pull_of(node: Any, edges: list[Any], given: tuple[int, ...]) -> _Pull | None:
    """Return how to compute a node's gradient; None where a program has to."""
    state = node.state
    wanted = tuple([k for k, e in enumerate(edges) if e is not None])
    key = wanted, given, node.residual is None
    pulls = state.pulls
    if pulls is None:
        pulls = state.pulls = {}
    try:
        return pulls[key]  # type: ignore[no-any-return]
    except KeyError:
        pull = pulls[key] = _make_pull(node, wanted, given)
        return pull


def _make_pull(node: Any, wanted: tuple[int, ...], given: tuple[int, ...]) -> _Pull | None:
    state = node.state
    if state.call.op.no_gradient is not None:  # the engine raises it
        return None
    try:
        refuse(state, wanted if given else ())
        gets = [True if k in wanted else None for k in _places(state)]
        passed = drop_ungiven(state.call, state.operands, gets)
    except Exception:  # the engine meets it again
        return None
    if any(passed[k] is None for k in wanted):
        return None
    kinds = [(tuple(state.values[k].shape), state.values[k].dtype) for k in given]
    if not (wanted and given):
        return _Pull((), (), None, None, kinds)
    places: tuple[int, ...] = ()
    if node.residual is None:
        places = tuple(sorted(i for i in node.saved if i >= 0))
        missing = tuple([(i, state.operands[i].aval) for i in _places(state) if i not in places])
        call: Any = vjp_of(state.call, len(state.operands), wanted, given, missing)
        avals = [node.saved[i].tensor._v.aval for i in places]
    else:
        residual, arrays = node.residual
        have = [i for i, v in enumerate(state.operands) if v.requires_grad]
        call = residual_call(state, residual, given, tuple([have.index(k) for k in wanted]))
        avals = [from_array(a)._v.aval for a in arrays]
    taken = (*avals, *[state.values[k].aval for k in given])
    numbers = tuple(range(len(taken)))
    return _Pull(
        wanted, places, ProgramNode(call, numbers, call.abstract(taken)), single_op(call, taken),
        kinds,
    )  # fmt: skip


def _places(state: Any) -> range:
    return range(len(state.operands))


def accumulate(ends: Sequence[Any], found: dict[Any, np.ndarray]) -> None:
    """Add the gradients that a pass found to those of the leaves at the ends of the graph."""
    for end in ends:
        array, leaf = found.get(end), end.variable
        if array is None:
            continue
        grad = tensor_on(array, kind_of(array.dtype, array.shape))
        with accumulating:
            if leaf._grad is None:
                leaf._grad = grad
            else:
                with no_grad():
                    leaf._grad.add_(grad)
