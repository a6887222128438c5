"""Names and edges of graph nodes where PyTorch has several overloads behind one name.

The op table has one entry for `x ** 2` and `x ** y`; PyTorch has two, whose nodes are called
`PowBackward0` and `PowBackward1`, and only the second has an edge for the exponent.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from leafax.functional.lowering.jvp import JvpCall
from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import camel
from leafax.functional.program.program import Call, Slot

from .._core.trie import State, Value
from .._core.view_ops import arguments_of_lens
from .no_derivative import has_no_formula, written_in_place

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
_COMPARED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
# A Python number in these is made a tensor, which has an edge that leads nowhere.
WRAPS = frozenset({"add", "sub", "mul", "div", "where", "true_divide", "fill_"})
_ALWAYS_WRITTEN_OUT = ("CopySlices", "CopyBackwards", "NotImplemented", "Identity")

_AS_IT_IS = frozenset({"CopySlices", "DivBackward1"})

Arguments = dict[str, Any]


def _given(name: str, no: str, yes: str) -> Callable[[Arguments], str]:
    return lambda a: yes if a.get(name) is not None else no


def _said(op: str, *names: str) -> Callable[[Arguments], str]:
    """Of two signatures the second has these arguments; they may be None."""
    return lambda a: f"{op}Backward{int(any(name in a for name in names))}"


def _tensor(name: str, no: str, yes: str) -> Callable[[Arguments], str]:
    return lambda a: yes if isinstance(a.get(name), Slot) else no


def _pow(a: Arguments) -> str:
    values = list(a.values())
    if not isinstance(values[0], Slot):
        return "PowBackward2"
    return "PowBackward1" if isinstance(values[1], Slot) else "PowBackward0"


def _of_two(op: str) -> Callable[[Arguments], str]:
    """Of three signatures the second takes a number first, the third a number last."""

    def name(a: Arguments) -> str:
        first, last = (isinstance(x, Slot) for x in list(a.values())[:2])
        return f"{op}Backward{1 if not first else 0 if last else 2}"

    return name


def _clamp(a: Arguments) -> str:
    tensors = isinstance(a.get("min"), Slot) or isinstance(a.get("max"), Slot)
    return "ClampBackward0" if tensors else "ClampBackward1"


def _squeeze(a: Arguments) -> str:
    dim = a.get("dim")
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


def _split(a: Arguments) -> str:
    sizes = a.get("split_size_or_sections", 0)
    return "SplitBackward0" if isinstance(sizes, int) else "SplitWithSizesBackward0"


def _chunk(state: State) -> str:
    """PyTorch splits an empty dim by sizes, all of them 0."""
    given, shape = arguments(state), state.operands[0].shape
    empty = shape[given.get("dim", 0)] == 0
    unsafe = "Unsafe" if state.call.op.name.startswith("unsafe") else ""
    return f"{unsafe}Split{'WithSizes' if empty else ''}Backward0"


def _pad(a: Arguments) -> str:
    kind = {"reflect": "Reflection", "replicate": "Replication"}.get(a.get("mode", "constant"))
    return f"{kind}Pad{len(a['pad']) // 2}DBackward0" if kind else "ConstantPadNdBackward0"


def _normal(a: Arguments) -> str:
    mean, std = (isinstance(a.get(name), Slot) for name in ("mean", "std"))
    if "input" in a:  # what fills a tensor
        return "NormalBackward0"
    return f"NormalBackward{3 if mean and std else 1 if mean else 2}"


def _scatter(a: Arguments) -> str:
    if a.get("reduce") is not None:
        return "NotImplemented"
    return "ScatterBackward0" if isinstance(a.get("src"), Slot) else "ScatterBackward1"


_RULES: dict[str, Callable[[Arguments], str]] = {
    "clamp": _clamp,
    "clamp_min": _tensor("min", "ClampMinBackward0", "ClampMinBackward1"),
    "clamp_max": _tensor("max", "ClampMaxBackward0", "ClampMaxBackward1"),
    "copysign": _tensor("other", "CopysignBackward1", "CopysignBackward0"),
    "div": lambda a: "DivBackward2" if "rounding_mode" in a else "DivBackward0",  # None, too
    "fmod": _tensor("other", "FmodBackward0", "FmodBackward1"),
    "lerp": _tensor("weight", "LerpBackward0", "LerpBackward1"),
    "masked_fill": _tensor("value", "MaskedFillBackward0", "MaskedFillBackward1"),
    "index_fill": _tensor("value", "IndexFillBackward0", "IndexFillBackward1"),
    "mean": _said("Mean", "dim", "keepdim"),
    "normal": _normal,
    "pow": _pow,
    "prod": _given("dim", "ProdBackward0", "ProdBackward1"),
    "remainder": _tensor("other", "RemainderBackward0", "RemainderBackward1"),
    "scatter": _scatter,
    "round": _said("Round", "decimals"),
    "sort": _said("Sort", "stable"),
    "rsub": _tensor("other", "RsubBackward1", "RsubBackward0"),
    "split": _split,
    "squeeze": _squeeze,
    "sum": _said("Sum", "dim", "keepdim"),
    "xlogy": _of_two("Xlogy"),
}


def _interpolate(state: State) -> str:
    """PyTorch has a node for each mode and number of dimensions."""
    given = arguments(state)
    dims, mode = len(state.operands[0].shape) - 2, given.get("mode", "nearest")
    if mode == "area":
        return "SqueezeBackward1" if dims == 1 else f"AdaptiveAvgPool{dims}DBackward0"
    kind = {"nearest-exact": "NearestExact"}.get(mode, mode.capitalize())
    return f"Upsample{kind}{dims}D{'Aa' if given.get('antialias') else ''}Backward0"


def arguments(state: State) -> Arguments:
    """The call's arguments by parameter; numbers that became inputs count as numbers."""
    call = state.call

    def number(a: Any) -> Any:
        return 0 if isinstance(a, Slot) and state.operands[a.index].weak else a

    named = zip(call.op.parameters, call.args, strict=False)
    return {k: number(a) for k, a in [*named, *call.kwargs.items()]}


def wraps_number(call: Any, inputs: Sequence[Value]) -> bool:
    """Whether a number among the arguments, or one that became an input, is made a tensor."""
    op = getattr(call, "op", None)
    if op is None or op.name not in WRAPS:
        return False
    given = any(type(a) in (int, float, complex, bool) for a in call.args)
    return given or any(v.weak for v in inputs)


def copies(call: Any) -> bool:
    """Whether PyTorch writes the operand into a new tensor: that is a `copy_`, and has its node."""
    op = getattr(call, "op", None)
    return op is not None and op.name in ("clone", "_to_copy")


def asks_nobody(call: Any, inputs: Sequence[Value]) -> bool:
    """Whether no operand asks autograd, since all were made in inference mode.

    What PyTorch makes first, and computes or writes with, does; numbers may have become inputs.
    """
    if not all(v.inference or v.weak for v in inputs):
        return False
    return not (wraps_number(call, inputs) or copies(call))


# Whose gradients one function makes, in an order of its own.
_TOGETHER = {"atan2": ("self", "other"), "solve": ("B", "A"), "solve_ex": ("B", "A")}


def by_name(call: Any, operands: Sequence[int]) -> list[int]:
    """These operands in the order in which PyTorch's nodes take their gradients: by name."""
    slots = [*zip(call.op.parameters, call.args, strict=False), *call.kwargs.items()]
    names = {a.index: "self" if p == "input" else p for p, a in slots if isinstance(a, Slot)}
    own = _TOGETHER.get(call.op.name)
    if own is not None:
        names = {k: str(own.index(p)) for k, p in names.items() if p in own}
    return sorted(operands, key=lambda k: (names.get(k, ""), k))


def node_name(state: State) -> str:
    """The name of a state's node, `"AddBackward0"`."""
    call = state.call
    if isinstance(call, Call):
        op = call.op
        if op.backward in _AS_IT_IS:
            return op.backward
        if op.name == "interpolate":
            return _interpolate(state)
        if op.name == "pad":
            return _pad(arguments(state))
        if op.name == "_max_unpool":
            return f"MaxUnpool{len(arguments(state)['size'])}DBackward0"
        if op.name == "squeeze_copy":
            return f"{_squeeze(arguments(state))}_copy"
        if op.backward in ("SplitBackward0", "UnsafeSplitBackward0") and "chunk" in op.name:
            return _chunk(state)
        if op.name == "movedim" and not state.operands[0].shape:
            return "AliasBackward0"  # nothing to permute
        if has_no_formula(state):
            return "NotImplemented"
        if copies(call) and state.operands[0].inference:
            return "CopyBackwards"
        if written_in_place(state):
            return camel(op.name) + "Backward1"
        if op.name == "diag" and len(state.operands[0].shape) == 2:
            return "DiagonalBackward0_copy"
        if op.name in _COMPARED and op.overwrites:
            other = arguments(state).get("other")
            return f"{camel(op.name)}Backward{int(isinstance(other, Slot))}"
        if op.qualified == "fill.bernoulli":
            return f"BernoulliBackward{1 if isinstance(arguments(state).get('p'), Slot) else 2}"
        if op.name == "float_power":
            return _pow(arguments(state))
        if op.name == "xlog1py":
            return _of_two("SpecialXlog1Py")(arguments(state))
        if op.qualified == "fft.fft" and state.operands[0].dtype.kind != "c":
            return "FftR2CBackward0"
        if op.name == "fill" and op.overwrites:
            value = arguments(state).get("value")
            return "FillBackward3" if isinstance(value, Slot) else "FillBackward2"
        rule = _RULES.get(op.name)
        known = rule is not None and op.backward == camel(op.name) + "Backward" + op.backward[-1]
        return rule(arguments(state)) if rule is not None and known else op.backward
    if isinstance(call, JvpCall):
        inner_op = getattr(call.call, "op", None)
        return (camel(inner_op.name) if inner_op is not None else "Vjp") + "JvpBackward"
    inner = call.call if isinstance(call, VjpCall) else call.source
    inner_op, times = getattr(inner, "op", None), "Backward"
    while inner_op is None and getattr(inner, "call", None) is not None:  # of a gradient
        inner, times = inner.call, times + "Backward"
        inner_op = getattr(inner, "op", None)
    if inner_op is None:
        return "VjpBackwardBackward0"
    plain = isinstance(call, VjpCall) and isinstance(inner, Call)
    first = node_name(_differentiated(state)) if plain else inner_op.backward
    named = _NAMED_BACKWARD.match(first)
    name = named[1] if named is not None else camel(inner_op.name)
    return f"{_DIFFERENTIATED_BY.get(name, name)}{times}Backward0"


_NAMED_BACKWARD = re.compile(r"(\w+)Backward\d+(_copy)?$")
# Whose gradient PyTorch takes by another op's function.
_DIFFERENTIATED_BY = {"Celu": "Elu", "Embedding": "EmbeddingDense"}


class _Differentiated(NamedTuple):
    """What was differentiated: as much of its state as its node's name follows from."""

    call: Any
    operands: tuple[Any, ...]


def _differentiated(state: State) -> Any:
    call = state.call
    absent, present = dict(call.missing), iter(state.operands)
    operands = tuple(Value(-1, absent[i]) if i in absent else next(present) for i in range(call.n))
    return _Differentiated(call.call, operands)


def qualified(name: str) -> str:
    """What `grad_fn.name()` says of a node class."""
    return f"torch::autograd::{name}" if name in _ALWAYS_WRITTEN_OUT else name


def places(state: State) -> tuple[int | None, ...]:
    """For each of the node's next functions the operand it belongs to, None for a number."""
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
    clamp = call.op.name == "clamp" and _clamp(given) == "ClampBackward0"
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
    """`places` of what one parameter was given: its operands, None for a number with an edge."""
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
    """The operands of a gradient node that lead on: incoming gradients, then what it reads."""
    from .._autograd.graph.keep_over_cut import reads, takes_input

    call = state.call
    first = call.n - len(call.missing)
    read = reads(call, tuple(v.aval for v in state.operands))
    if takes_input(call) and not any(i == 0 for i, _ in call.missing):
        read |= {0}
    own = getattr(getattr(call.call, "op", None), "qualified", None)
    if own in _EDGES:
        # What the op has no edge for has none here.
        present = [i for i in range(call.n) if i not in dict(call.missing)]
        read &= {present.index(i) for i in places(_differentiated(state)) if i in present}
    led = [k for k in sorted(read) if is_differentiable(state.operands[k].dtype)]
    return (*range(first, len(state.operands)), *led)
