"""Names and edges of graph nodes where PyTorch has several overloads behind one name.

The op table has one entry for `x ** 2` and `x ** y`; PyTorch has two, whose nodes are called
`PowBackward0` and `PowBackward1`, and only the second has an edge for the exponent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from leafax.functional.lowering.jvp import JvpCall
from leafax.functional.lowering.vjp import VjpCall
from leafax.functional.program.op import camel
from leafax.functional.program.program import Call, Slot

from .._core.trie import State, Value
from .missing_formulas import has_no_formula, lacks_inplace_formula

COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_ALWAYS_WRITTEN_OUT = ("CopySlices", "CopyBackwards", "NotImplemented", "Identity")

_AS_IT_IS = frozenset({"CopySlices", "DivBackward1"})

Arguments = dict[str, Any]


def _given(name: str, no: str, yes: str) -> Callable[[Arguments], str]:
    return lambda a: yes if a.get(name) is not None else no


def _said(op: str, *names: str) -> Callable[[Arguments], str]:
    """Name the node of two signatures: the second has these arguments; they may be None."""
    return lambda a: f"{op}Backward{int(any(name in a for name in names))}"


def _tensor(name: str, no: str, yes: str) -> Callable[[Arguments], str]:
    return lambda a: yes if isinstance(a.get(name), Slot) else no


def _pow(a: Arguments) -> str:
    values = list(a.values())
    if not isinstance(values[0], Slot):
        return "PowBackward2"
    return "PowBackward1" if isinstance(values[1], Slot) else "PowBackward0"


def _of_two(op: str) -> Callable[[Arguments], str]:
    """Name the node of three signatures: the second has a number first, the third one last."""

    def name(a: Arguments) -> str:
        first, last = (isinstance(x, Slot) for x in list(a.values())[:2])
        return f"{op}Backward{1 if not first else 0 if last else 2}"

    return name


def is_clamp_of_tensors(a: Arguments) -> bool:
    """Tell whether a bound of `clamp` is a tensor."""
    return isinstance(a.get("min"), Slot) or isinstance(a.get("max"), Slot)


def _clamp(a: Arguments) -> str:
    return "ClampBackward0" if is_clamp_of_tensors(a) else "ClampBackward1"


def _squeeze(a: Arguments) -> str:
    dim = a.get("dim")
    return f"SqueezeBackward{0 if dim is None else 1 if isinstance(dim, int) else 2}"


def _split(a: Arguments) -> str:
    sizes = a.get("split_size_or_sections", 0)
    return "SplitBackward0" if isinstance(sizes, int) else "SplitWithSizesBackward0"


def _chunk(state: State) -> str:
    """Name the node of `chunk`: PyTorch splits an empty dim by sizes, all of them 0."""
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
    """Name the node of an interpolation: PyTorch has one for each mode and number of dimensions."""
    given = arguments(state)
    dims, mode = len(state.operands[0].shape) - 2, given.get("mode", "nearest")
    if mode == "area":
        return "SqueezeBackward1" if dims == 1 else f"AdaptiveAvgPool{dims}DBackward0"
    kind = {"nearest-exact": "NearestExact"}.get(mode, mode.capitalize())
    return f"Upsample{kind}{dims}D{'Aa' if given.get('antialias') else ''}Backward0"


def arguments(state: State) -> Arguments:
    """Map the call's arguments by parameter; numbers that became inputs count as numbers."""

    def number(a: Any) -> Any:
        return 0 if isinstance(a, Slot) and state.operands[a.index].weak else a

    return {k: number(a) for k, a in state.call.arguments.items()}


def copies(call: Any) -> bool:
    """Tell whether PyTorch writes the operand into a new tensor, which has a `copy_`'s node."""
    op = getattr(call, "op", None)
    return op is not None and op.name in ("clone", "_to_copy")


def node_name(state: State) -> str:
    """Name a state's node, `"AddBackward0"`."""
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
        if lacks_inplace_formula(state):
            return camel(op.name) + "Backward1"
        if op.name == "diag" and len(state.operands[0].shape) == 2:
            return "DiagonalBackward0_copy"
        if op.name in COMPARISONS and op.overwrites:
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
    first = node_name(differentiated(state)) if plain else inner_op.backward
    named = _NAMED_BACKWARD.match(first)
    name = named[1] if named is not None else camel(inner_op.name)
    return f"{_DIFFERENTIATED_BY.get(name, name)}{times}Backward0"


_NAMED_BACKWARD = re.compile(r"(\w+)Backward\d+(_copy)?$")
# Whose gradient PyTorch takes by another op's function.
_DIFFERENTIATED_BY = {"Celu": "Elu", "Embedding": "EmbeddingDense"}


class _Differentiated(NamedTuple):
    """A differentiated step, as much of it as its node's name follows from."""

    call: Any
    operands: tuple[Any, ...]


def differentiated(state: State) -> Any:
    call = state.call
    absent, present = dict(call.missing), iter(state.operands)
    operands = tuple(Value(-1, absent[i]) if i in absent else next(present) for i in range(call.n))
    return _Differentiated(call.call, operands)


def qualified(name: str) -> str:
    """Spell a node's class as `grad_fn.name()` does."""
    return f"torch::autograd::{name}" if name in _ALWAYS_WRITTEN_OUT else name
