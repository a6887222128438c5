"""Edges of graph nodes: the operands that a node's next functions belong to, in PyTorch's order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.program import Call, Slot

from .._core.trie import State, Value
from .._core.view_ops import arguments_of_lens
from .missing_formulas import has_no_formula
from .node_names import arguments, copies, differentiated, is_clamp_of_tensors
from .reads_of_gradients import reads, takes_input

# What PyTorch saves as an index or a mask has no edge.
_NO_EDGE = frozenset({"storage", "mask", "condition", "index", "indices", "places", "start"})


# The parameters that have one here, in the order of the edges; left out they lead nowhere.
_EDGES = {
    "segment_reduce": ("data",),
    "nn.functional.embedding": ("weight",),
    "nn.functional.nll_loss": ("input",),
    "nn.functional.nll_loss2d": ("input",),
    "nn.functional.multi_margin_loss": ("input",),
    "nn.functional.soft_margin_loss": ("input",),
    "nn.functional._fractional_max_pool2d": ("input",),
    "nn.functional._fractional_max_pool3d": ("input",),
    "lu_unpack": ("LU_data",),
    "lu_solve": ("LU_data", "input"),
    "linalg.lu_solve": ("LU", "B"),
    "nn.functional._ctc_loss": ("log_probs",),
    "nn.functional.multilabel_margin_loss": ("input",),
    "nn.functional.binary_cross_entropy": ("input", "target"),
    "nn.functional.binary_cross_entropy_with_logits": ("input", "target"),
    "nn.functional.layer_norm": ("input", "weight", "bias"),
    "nn.functional._native_batch_norm": ("input", "weight", "bias"),
    "nn.functional.native_batch_norm": ("input", "weight", "bias"),
    "native_layer_norm": ("input", "weight", "bias"),
    "native_group_norm": ("input", "weight", "bias"),
    **dict.fromkeys(  # products with a mask, which nobody sees
        ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"),
        ("input", "mask"),
    ),
    **{f"conv{d}d": ("input", "weight", "bias") for d in "123"},
    **{f"conv_transpose{d}d": ("input", "weight", "bias") for d in "123"},
}


# A Python number in these is made a tensor, which has an edge that leads nowhere.
WRAPS = frozenset({"add", "sub", "mul", "div", "where", "true_divide", "fill_"})


def wraps_number(call: Any, inputs: Sequence[Value]) -> bool:
    """Tell whether a number among the arguments, or one that became an input, is made a tensor."""
    op = getattr(call, "op", None)
    if op is None or op.name not in WRAPS:
        return False
    given = any(type(a) in (int, float, complex, bool) for a in call.args)
    return given or any(v.weak for v in inputs)


def asks_nobody(call: Any, inputs: Sequence[Value]) -> bool:
    """Tell whether no operand asks autograd, since all were made in inference mode.

    What PyTorch makes first, and computes or writes with, does; numbers may have become inputs.
    """
    if not all(v.inference or v.weak for v in inputs):
        return False
    return not (wraps_number(call, inputs) or copies(call))


# Whose gradients one function makes, in an order of its own.
_TOGETHER = {"atan2": ("self", "other"), "solve": ("B", "A"), "solve_ex": ("B", "A")}


def by_name(call: Any, operands: Sequence[int]) -> list[int]:
    """Sort operands as PyTorch's nodes take their gradients: by name."""
    slots = [*zip(call.op.parameters, call.args, strict=False), *call.kwargs.items()]
    names = {a.index: "self" if p == "input" else p for p, a in slots if isinstance(a, Slot)}
    own = _TOGETHER.get(call.op.name)
    if own is not None:
        names = {k: str(own.index(p)) for k, p in names.items() if p in own}
    return sorted(operands, key=lambda k: (names.get(k, ""), k))


def places(state: State) -> tuple[int | None, ...]:
    """Find the operand that each of a node's next functions belongs to, None for a number."""
    call = state.call
    if isinstance(call, VjpCall):
        return gradient_places(state)
    if not isinstance(call, Call):
        return tuple(range(len(state.operands)))
    found: list[int | None] = []
    wraps = call.op.name in WRAPS and not call.op.backward.endswith("Backward1")
    given = arguments(state)
    if call.op.qualified in _EDGES:
        slots = [given.get(name) for name in _EDGES[call.op.qualified]]
        return tuple(a.index if isinstance(a, Slot) else None for a in slots)
    hidden = arguments_of_lens(call.op)
    if hidden:  # how a view is seen has no edges
        own = len(call.args) - hidden
        given = {k: a for i, (k, a) in enumerate(given.items()) if i < own or i >= len(call.args)}
    if copies(call) and state.operands[0].inference:
        return (None, 0)  # what is new has an edge, too
    if call.op.random:
        del given[call.op.parameters[0]]  # the key of its numbers
    clamp = call.op.name == "clamp" and is_clamp_of_tensors(given)
    if clamp:
        given.setdefault("min")
        given.setdefault("max")
    for name in sorted(given, key=_order(call.op)):  # named arguments come in any order
        if name not in _NO_EDGE:
            found += _in_argument(state, given[name], name, wraps, clamp)
    if call.op.name != "set_" and has_no_formula(state):  # has edges to what requires grad alone
        if call.op.name.endswith("_out"):  # `out=` comes last
            found = found[1:] + found[:1]
        return tuple(k for k in found if k is not None and state.operands[k].requires_grad)
    if call.op.name.endswith("_out") and call.op.backward == "CopySlices":
        # PyTorch leaves out the first edge, which it takes for that of what is written to.
        led = [k for k in found[1:] if k is not None and state.operands[k].requires_grad]
        return (found[0], *led[1:])
    return tuple(found)


def _in_argument(
    state: State, template: Any, name: str, wraps: bool, clamp: bool
) -> Iterator[int | None]:
    """Yield the `places` of one parameter's argument: operands, None for a number with an edge."""
    if isinstance(template, Slot):
        if wraps or not state.operands[template.index].weak:
            yield template.index
    elif isinstance(template, (tuple, list)):
        for x in template:
            yield from _in_argument(state, x, name, wraps, clamp)
    elif template is None:
        if clamp and name in ("min", "max"):
            yield None
    elif wraps and name in ("input", "other", "value"):
        if type(template) in (int, float, complex, bool):
            yield None


def _order(op: Any) -> Callable[[str], int]:
    found = {name: i for i, name in enumerate(op.parameters)}
    return lambda name: found.get(name, len(found))


def gradient_places(state: State) -> tuple[int, ...]:
    """List the operands of a gradient node that lead on: incoming gradients, then what it reads."""
    call = state.call
    first = call.n - len(call.missing)
    read = reads(call, tuple(v.aval for v in state.operands))
    if takes_input(call) and not any(i == 0 for i, _ in call.missing):
        read |= {0}
    own = getattr(getattr(call.call, "op", None), "qualified", None)
    if own in _EDGES:
        # What the op has no edge for has none here.
        present = [i for i in range(call.n) if i not in dict(call.missing)]
        read &= {present.index(i) for i in places(differentiated(state)) if i in present}
    led = [k for k in sorted(read) if is_differentiable(state.operands[k].dtype)]
    return (*range(first, len(state.operands)), *led)
