"""In-place ops on views while saved-tensor hooks are in force.

As in PyTorch hooks see the view, and the gradient of the op is the view's part of the base's.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

from leafax.functional.program.op import Op

from ..._core.grad_modes import within
from ..._core.trie import Mode, Value, local
from ..._core.view_ops import Lens, spell, writer
from ..._dispatch.record import apply, record
from ..._rules.error_texts import FREED
from ..._rules.reads_of_gradients import given_of
from ..._storage.enter import enter
from ..._storage.shared_storage import share
from ..._storage.write import write_view
from ..._tracing.inputs import make
from ..graph.copy_slices import CopySlices
from ..graph.fit_gradient import Kind, zeros
from ..graph.history import external
from ..graph.python_node import CustomNode
from .hooked_node import hooked_node
from .packing import operands, overwritten, pack


def write_through(
    op: Op, t: Any, args: tuple[Any, ...], kwargs: dict[str, Any], call: Any, own: Value | None
) -> bool:
    """Write to the view `t` as `op`, an in-place op, does; False if it saves nothing.

    Args:
      args: the op's operands, `t` among them.
      call: `(op, args, kwargs)` that makes of the base what it holds then.
      own: as `write_view` has it.
    """
    mode = local.mode
    if not op.saves or not op.differentiable:
        return False
    with within(Mode.of(False, mode.inference, mode.autocast)):
        state, trace = record(op, args, kwargs, budget=False)
    if not given_of(state):
        return False
    node, place = hooked_node(state, trace), overwritten(op)
    slices = CopySlices(node, place, t._base_, t._blens)
    pack(node, operands(node, state, args, kwargs, trace))
    node._edges[place] = slices.next_edges()[0]  # its part of the gradient goes there
    with within(Mode.of(False, mode.inference, mode.autocast)):
        whole = record(*call)[0].value
    assert whole is not None
    write_view(t, external(whole, slices, 0), own)
    if any(i == -1 for _, i in node.saves):
        value = enter(t, local.trace)
        result = share(t._base_, make(value, local.trace), t._blens, view=True)
        result._lens = t._lens
        pack(node, [(-1, result)])
        node.packed[-1].edge = _Again(slices, t._blens)
    return True


class _Again:
    """The edge of the unpacked result: to the base's node, which holds the result."""

    def __init__(self, slices: CopySlices, lens: Lens) -> None:
        self._slices, self._lens = ref(slices), lens

    def __call__(self) -> Any:
        slices = self._slices()
        if slices is None:
            raise RuntimeError(FREED)
        return _Part(slices, self._lens), 0


class _Part(CustomNode):
    """The node of a view that is read anew from its base."""

    def __init__(self, slices: CopySlices, lens: Lens) -> None:
        super().__init__()
        self._edges, self._lens = [(slices, 0)], lens

    def name(self) -> str:
        """Get the node's name."""
        return "AsStridedBackward0"

    def output_kinds(self) -> list[Any]:
        return [None]

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        if grads[0] is None:
            return [None]
        base = self._edges[0][0].output_kinds()[0]
        whole = zeros(Kind(base.shape, grads[0]._v.dtype))
        structure, flat = spell(self._lens)
        return [apply(writer(structure, False), whole, grads[0], *flat)]
