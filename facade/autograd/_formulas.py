"""Gradients as PyTorch's formulas spell them, for graphs that are differentiated again.

With `create_graph` a user sees the gradient's own graph: `x * x` has a gradient that `MulBackward0`
made, from exactly those tensors that the formula reads. Ops that are listed here are differentiated
by other ops then; the rest by one node for the whole gradient.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from leafax.functional import TABLE, Call, Input, Op, Slot

from .._record import apply
from .._underived import refuse_parts
from . import _index_formulas, _scatter_formulas
from ._context import fit


class Saved:
    """What a formula reads: the gradient `g`, operands by parameter, shapes, the result."""

    def __init__(self, node: Any, grad: Any) -> None:
        self.node, self.g = node, grad
        call = node.state.call
        self.given = dict(zip(call.op.parameters, call.args, strict=False)) | call.kwargs

    def __getitem__(self, name: str) -> Any:
        """An operand as it was saved, or a number."""
        a = self.given[name]
        if not isinstance(a, Slot):
            return a
        if self.node.state.operands[a.index].weak:
            return number(self.node, a.index)
        return self.node.unpack(a.index)

    def static(self, name: str, default: Any = None) -> Any:
        """An argument that is no tensor."""
        return self.given.get(name, default)

    def shape(self, name: str = "input") -> tuple[int, ...]:
        """The shape of an operand."""
        return tuple(self.node.state.operands[self.given[name].index].shape)

    @property
    def result(self) -> Any:
        """The op's (first) result."""
        return self.node.unpack(-1)

    def output(self, k: int) -> Any:
        """The op's `k`-th result, counted from 0."""
        return self.node.unpack(-1 - k)

    def scaled(self, grad: Any, name: str) -> Any:
        """`grad` times the number that the op was given by that name."""
        return _factor(self, grad, name)


def number(node: Any, index: int) -> Any:
    """The Python number that became a runtime input of the node's op."""
    value = node.state.operands[index]
    if node.trace is None:
        return node.unpack(index).item()
    before = value.state.path()[:-1]
    return node.trace.arrays[sum(isinstance(s.entry, Input) for s in before)]


Formula = Callable[[Saved], Any]


def _by_number(name: str) -> Op:
    """An op of PyTorch's that takes a number and has an edge for the tensor alone."""
    op = TABLE[name]
    backward = op.backward.replace("Backward0", "Backward1")
    return Op(op.fn, name=name, backward=backward, saves=op.saves, numbers=op.numbers)


def _of_result(name: str, fn: Callable[..., Any]) -> Op:
    """The gradient of an op as an op of the incoming gradient and the result."""
    return Op(fn, name=name, saves={"result": "grad_output", "grad_output": "result"})


_MUL, _ADD, _SUB, _DIV = map(_by_number, ("mul", "add", "sub", "div"))


def _sigmoid_backward(grad_output: Any, result: Any) -> Any:
    return grad_output * (1 - jnp.conj(result)) * jnp.conj(result)


def _tanh_backward(grad_output: Any, result: Any) -> Any:
    return grad_output * jnp.conj(1 - result * result)


def _threshold_backward(grad_output: Any, result: Any) -> Any:
    return jnp.where(result > 0, grad_output, 0)


_SIGMOID = _of_result("sigmoid_backward", _sigmoid_backward)
_TANH = _of_result("tanh_backward", _tanh_backward)
_THRESHOLD = _of_result("threshold_backward", _threshold_backward)


def _softmax_backward(grad_output: Any, result: Any, dim: int) -> Any:
    inner = grad_output * result
    return inner - result * inner.sum(dim, keepdims=True)


def _log_softmax_backward(grad_output: Any, result: Any, dim: int) -> Any:
    return grad_output - jnp.exp(result) * grad_output.sum(dim, keepdims=True)


_SOFTMAX = _of_result("_softmax_backward_data", _softmax_backward)
_LOG_SOFTMAX = _of_result("_log_softmax_backward_data", _log_softmax_backward)


def _times(t: Any, number: Any) -> Any:
    return apply(_MUL, t, number)


def _conj(t: Any) -> Any:
    if isinstance(t, (int, float, complex)):
        return t.conjugate()
    return t.conj() if t.is_complex() else t


def _scaled(s: Saved, grad: Any) -> Any:
    alpha = s.static("alpha", 1)
    if isinstance(alpha, Slot):
        return grad * _conj(s["alpha"])
    return grad if alpha in (1, None) else _times(grad, _conj(alpha))


def _pow_base(s: Saved) -> Any:
    exponent = s["exponent"]
    if isinstance(exponent, (int, float, complex)):
        if exponent == 0:
            return s.g.new_zeros(s.shape())
        return s.g * _conj(_times(s["input"].pow(exponent - 1), exponent))
    power = s.g * _conj(exponent * s["input"].pow(apply(_SUB, exponent, 1)))
    return power.new_zeros(()).where(exponent == 0, power)


def _pow_exponent(s: Saved) -> Any:
    base = s["input"]
    if isinstance(base, (int, float, complex)):
        if not base:
            return s.g * 0
        log = cmath.log(base) if isinstance(base, complex) or base < 0 else math.log(base)
        return s.g * _conj(_times(s.result, log))
    power = _conj(s.result * base.log())
    exponent = s["exponent"]
    grows = (
        exponent >= 0 if not exponent.is_complex() else (exponent.imag == 0) & (exponent.real >= 0)
    )
    return s.g * power.new_zeros(()).where((base == 0) & grows, power)


def _dims(dim: Any, ndim: int) -> list[int]:
    dims = [dim] if isinstance(dim, int) else list(dim) or list(range(ndim))
    return sorted(d % ndim for d in dims) if ndim else []


def _spread(s: Saved) -> Any:
    """The gradient of a sum: the same number wherever one was summed."""
    shape, dim, grad = s.shape(), s.static("dim"), s.g
    if dim is not None and not s.static("keepdim", False):
        for d in _dims(dim, len(shape)):
            grad = grad.unsqueeze(d)
    return grad.expand(shape)


def _mean(s: Saved) -> Any:
    shape, dim = s.shape(), s.static("dim")
    dims = range(len(shape)) if dim is None else _dims(dim, len(shape))
    return apply(_DIV, _spread(s), math.prod(shape[d] for d in dims))


def _turned(t: Any) -> Any:
    return _conj(t.t())


def _by_columns(s: Saved, name: str) -> bool:
    """Whether a matrix lies in memory column after column."""
    kind = s.node.state.operands[s.given[name].index]
    strides = getattr(kind, "strides", None)
    return bool((strides or (kind.shape[1], 1)) == (1, kind.shape[0]))


def _left_factor(s: Saved, left: str = "input") -> Any:
    if _by_columns(s, left):
        return _conj(s["mat2"]).mm(s.g.t()).t()
    return s.g.mm(_turned(s["mat2"]))


def _right_factor(s: Saved, left: str = "input") -> Any:
    if _by_columns(s, "mat2"):
        return s.g.t().mm(_conj(s[left])).t()
    return _turned(s[left]).mm(s.g)


def _unsqueezed(s: Saved) -> Any:
    return s.g.reshape(s.shape()) if s.static("dim") is None else _back_in(s)


def _back_in(s: Saved) -> Any:
    shape, grad = s.shape(), s.g
    for d in _dims(s.static("dim"), len(shape)):
        if shape[d] == 1:
            grad = grad.unsqueeze(d)
    return grad


def _permuted(s: Saved) -> Any:
    dims = s.static("dims")
    inverse = [0] * len(dims)
    for k, d in enumerate(dims):
        inverse[d % len(dims)] = k
    return s.g.permute(tuple(inverse))


def _where(s: Saved, first: bool) -> Any:
    zero = s.g.new_zeros(())
    there = s["condition"]
    return s.g.where(there, zero) if first else zero.where(there, s.g)


def _value(s: Saved) -> Any:
    return s["value"] if "value" in s.given else 1


def _xlogy(s: Saved) -> Any:
    x, other = s["input"], s["other"]
    grad = s.g.xlogy(other)
    if isinstance(other, (int, float)):
        return grad if other > 0 else grad.masked_fill(x == 0, 0.0)
    return grad.masked_fill((x == 0) & (other <= 0), 0.0)


def _cross(s: Saved, x: Any, y: Any) -> Any:
    return apply(TABLE["linalg.cross"], x, y, s.static("dim", -1))


def _chosen(s: Saved, mine: str, other: str, ordered: str) -> Any:
    """The gradient of `maximum` or `minimum`: equal elements share it."""
    a, b = s[mine], s[other]
    share = apply(_DIV, s.g, 2).where(a == b, s.g)
    return share.masked_fill(a < b if ordered == "lt" else a > b, 0)


def _pieces(s: Saved) -> list[Any]:
    """The gradient of `cat`, cut into its operands'."""
    dim, start, found = s.static("dim", 0), 0, []
    for a in s.given["tensors"]:
        n = s.node.state.operands[a.index].shape[dim]
        found.append(s.g.narrow(dim, start, n))
        start += n
    return found


# The gradient of each tensor of a list.
_LISTS: dict[str, Formula] = {
    "cat": _pieces,
    "stack": lambda s: [s.g.select(s.static("dim", 0), k) for k in range(len(s.given["tensors"]))],
}


def _factor(s: Saved, grad: Any, name: str) -> Any:
    """A gradient times the number that the op multiplied by."""
    factor = s.static(name, 1)
    if isinstance(factor, Slot):
        return grad * _conj(s[name])
    return grad if factor == 1 else _times(grad, _conj(factor))


def _weighed(s: Saved, start: bool) -> Any:
    """The gradient of one of the two that `lerp` is between."""
    weight = s["weight"]
    if isinstance(weight, (int, float, complex)):
        return _times(s.g, _conj(1 - weight if start else weight))
    return s.g * _conj(apply(TABLE["sub"], 1, weight) if start else weight)


_VIEWED: dict[str, Formula] = {"input": lambda s: s.g.reshape(s.shape())}
_MOVED: dict[str, Formula] = {
    "input": lambda s: s.g.movedim(s.static("destination"), s.static("source")),
}

# What was written over gets a zero that depends on nothing.
_FILLED: dict[str, Formula] = {
    "input": lambda s: s.g.new_zeros(s.shape()), "value": lambda s: s.g.sum(),
}  # fmt: skip

# By op and parameter: the gradient for that operand.
FORMULAS: dict[str, dict[str, Formula]] = {
    "add": {"input": lambda s: s.g, "other": lambda s: _scaled(s, s.g)},
    "sub": {"input": lambda s: s.g, "other": lambda s: _scaled(s, -s.g)},
    "rsub": {"input": lambda s: _scaled(s, -s.g), "other": lambda s: s.g},
    "mul": {
        "input": lambda s: s.g * _conj(s["other"]),
        "other": lambda s: s.g * _conj(s["input"]),
    },
    "div": {
        "input": lambda s: s.g / _conj(s["other"]),
        "other": lambda s: -s.g * _conj((s["input"] / s["other"]) / s["other"]),
    },
    "addcmul": {
        "input": lambda s: s.g,
        "tensor1": lambda s: s.g * _conj(_times(s["tensor2"], _value(s))),
        "tensor2": lambda s: s.g * _conj(_times(s["tensor1"], _value(s))),
    },
    "addcdiv": {
        "input": lambda s: s.g,
        "tensor1": lambda s: s.g * _conj(s.g.new_tensor(_value(s)) / s["tensor2"]),
        "tensor2": lambda s: (
            -s.g * _conj(_times(s["tensor1"], _value(s)) / (s["tensor2"] * s["tensor2"]))
        ),
    },
    "fmod": {
        "input": lambda s: s.g,
        "other": lambda s: -s.g * s["input"].div(s["other"], rounding_mode="trunc"),
    },
    "remainder": {
        "input": lambda s: s.g,
        "other": lambda s: -s.g * s["input"].div(s["other"], rounding_mode="floor"),
    },
    "frac": {"input": lambda s: s.g},
    "xlogy": {"input": _xlogy, "other": lambda s: s.g * s["input"] / s["other"]},
    "linalg.cross": {
        "input": lambda s: _cross(s, _conj(s["other"]), s.g),
        "other": lambda s: _cross(s, s.g, _conj(s["input"])),
    },
    "neg": {"input": lambda s: -s.g},
    "pow": {"input": _pow_base, "exponent": _pow_exponent},
    "square": {"input": lambda s: s.g * _conj(_times(s["input"].pow(1), 2))},
    "exp": {"input": lambda s: s.g * _conj(s.result)},
    "exp2": {"input": lambda s: _times(s.g * _conj(s.result), math.log(2))},
    "expm1": {"input": lambda s: s.g * apply(_ADD, _conj(s.result), 1)},
    "log": {"input": lambda s: s.g / _conj(s["input"])},
    "log2": {"input": lambda s: s.g / _times(_conj(s["input"]), math.log(2))},
    "log10": {"input": lambda s: s.g / _times(_conj(s["input"]), math.log(10))},
    "log1p": {"input": lambda s: s.g / _conj(apply(_ADD, s["input"], 1))},
    "sin": {"input": lambda s: s.g * _conj(s["input"].cos())},
    "cos": {"input": lambda s: s.g * -_conj(s["input"].sin())},
    "tan": {"input": lambda s: s.g * _conj(apply(_ADD, s.result.pow(2), 1))},
    "sinh": {"input": lambda s: s.g * _conj(s["input"].cosh())},
    "cosh": {"input": lambda s: s.g * _conj(s["input"].sinh())},
    "asin": {"input": lambda s: s.g * _conj(apply(_ADD, -s["input"] * s["input"], 1).rsqrt())},
    "acos": {"input": lambda s: s.g * -_conj(apply(_ADD, -s["input"] * s["input"], 1).rsqrt())},
    "atan": {"input": lambda s: s.g / _conj(apply(_ADD, s["input"] * s["input"], 1))},
    "sqrt": {"input": lambda s: s.g / _times(_conj(s.result), 2)},
    "rsqrt": {"input": lambda s: _times(s.g, -0.5) * _conj(s.result.pow(3))},
    "reciprocal": {"input": lambda s: -s.g * _conj(s.result * s.result)},
    "erf": {"input": lambda s: _times((-(s["input"].pow(2))).exp(), 2 / math.sqrt(math.pi)) * s.g},
    "sigmoid": {"input": lambda s: apply(_SIGMOID, s.g, s.result)},
    "tanh": {"input": lambda s: apply(_TANH, s.g, s.result)},
    "relu": {"input": lambda s: apply(_THRESHOLD, s.g, s.result)},
    "abs": {"input": lambda s: s.g * s["input"].sgn()},
    "sum": {"input": _spread},
    "mean": {"input": _mean},
    "mm": {"input": _left_factor, "mat2": _right_factor},
    "addmm": {
        "input": lambda s: _factor(s, s.g, "beta"),
        "mat1": lambda s: _factor(s, _left_factor(s, "mat1"), "alpha"),
        "mat2": lambda s: _factor(s, _right_factor(s, "mat1"), "alpha"),
    },
    "bmm": {
        "input": lambda s: s.g.bmm(_conj(s["mat2"].transpose(1, 2))),
        "mat2": lambda s: _conj(s["input"].transpose(1, 2)).bmm(s.g),
    },
    "mv": {
        "input": lambda s: s.g.reshape(-1, 1) * _conj(s["vec"]),
        "vec": lambda s: _turned(s["input"]).mv(s.g),
    },
    "dot": {
        "input": lambda s: s.g * _conj(s["tensor"]),
        "tensor": lambda s: s.g * _conj(s["input"]),
    },
    "maximum": {
        "input": lambda s: _chosen(s, "input", "other", "lt"),
        "other": lambda s: _chosen(s, "other", "input", "lt"),
    },
    "minimum": {
        "input": lambda s: _chosen(s, "input", "other", "gt"),
        "other": lambda s: _chosen(s, "other", "input", "gt"),
    },
    "softmax": {"input": lambda s: apply(_SOFTMAX, s.g, s.result, s.static("dim"))},
    "log_softmax": {"input": lambda s: apply(_LOG_SOFTMAX, s.g, s.result, s.static("dim"))},
    "clone": {"input": lambda s: s.g},
    "contiguous": {"input": lambda s: s.g},
    "_to_copy": {"input": lambda s: s.g},
    "t": {"input": lambda s: s.g.t()},
    "transpose": {"input": lambda s: s.g.transpose(s.static("dim0"), s.static("dim1"))},
    "swapaxes": {"input": lambda s: s.g.transpose(s.static("axis0"), s.static("axis1"))},
    "swapdims": {"input": lambda s: s.g.transpose(s.static("dim0"), s.static("dim1"))},
    "T": {"input": lambda s: s.g.permute(*range(s.g.dim())[::-1])},
    "mT": {"input": lambda s: s.g.transpose(-2, -1)},
    "movedim": _MOVED,
    "moveaxis": _MOVED,
    "permute": {"input": _permuted},
    "view": _VIEWED,
    "_unsafe_view": _VIEWED,
    "reshape": _VIEWED,
    "flatten": _VIEWED,
    "ravel": _VIEWED,
    "unflatten": _VIEWED,
    "unsqueeze": {"input": lambda s: s.g.squeeze(s.static("dim"))},
    "squeeze": {"input": _unsqueezed},
    "expand": {"input": lambda s: s.g.sum_to_size(s.shape())},
    "scatter_reduce": {"input": _scatter_formulas.for_input, "src": _scatter_formulas.for_src},
    "index_reduce": {"input": _scatter_formulas.for_input, "source": _scatter_formulas.for_src},
    "lerp": {
        "input": lambda s: _weighed(s, True),
        "end": lambda s: _weighed(s, False),
        "weight": lambda s: s.g * _conj(s["end"] - s["input"]),
    },
    "zero": _FILLED,
    "fill": _FILLED,
    "fill_": _FILLED,
    "where": {"input": lambda s: _where(s, True), "other": lambda s: _where(s, False)},
}

FORMULAS |= _index_formulas.FORMULAS
FORMULAS |= {f"{name}_": FORMULAS[name] for name in ("t", "transpose", "squeeze", "unsqueeze")}


# What these pass on is the incoming gradient itself, or a view of it.
_VIEWING = frozenset({
    "add", "sub", "sum", "cat", "stack", "clone", "contiguous", "_to_copy", "t", "transpose",
    "swapaxes", "swapdims", "T", "mT", "movedim", "moveaxis", "permute", "view", "reshape",
    "_unsafe_view", "flatten", "ravel", "unflatten", "unsqueeze", "squeeze", "squeeze_", "addcmul",
    "addcdiv", "fmod", "remainder", "frac",
})  # fmt: skip


def differentiate(
    node: Any, grads: list[Any], needed: set[Any], views: bool = False,
    table: dict[str, dict[str, Formula]] | None = None,
) -> list[Any] | None:  # fmt: skip
    """The gradients that `node` passes on, by its formula; None if it has none.

    Args:
      grads: one an output.
      needed: the nodes whose gradients are wanted.
      views: ask for those formulas alone that make views, for somebody who looks at strides and
        writes in place.
      table: other formulas than those for graphs that are differentiated again.
    """
    state = node.state
    call = state.call
    if not isinstance(call, Call) or call.op.backward == "CopySlices":
        return None
    if views and call.op.qualified not in _VIEWING:
        return None
    if call.op.overwrites and FORMULAS.get(call.op.qualified) is not _FILLED:
        return None
    formulas = (FORMULAS if table is None else table).get(call.op.qualified)
    lists = _LISTS.get(call.op.qualified) if table is None else None
    if (formulas is None and lists is None) or grads[0] is None or state.mode.autocast is not None:
        return None
    s = Saved(node, grads[0])
    if s.static("rounding_mode") is not None or s.static("reduce", "prod") != "prod":
        return None
    edges = node.next_edges()
    passed: list[Any] = [None] * len(edges)
    order = node.next_places()

    def put(index: int, grad: Any) -> None:
        kind = state.operands[index]
        if kind.dtype.kind != "c" and grad._v.dtype.kind == "c":
            refuse_parts(call.op)
            grad = grad.real
        place = order.index(index) if index in order else index
        passed[index] = fit(node.name(), place, grad, kind)

    wanted = {k for k, e in enumerate(edges) if e is not None and e[0] in needed}
    if lists is not None:
        for a, grad in zip(s.given["tensors"], lists(s), strict=True):
            if a.index in wanted:
                put(a.index, grad)
        return passed
    assert formulas is not None
    slots = {a.index: name for name, a in s.given.items() if isinstance(a, Slot)}
    if not all(slots.get(k) in formulas for k in wanted):
        return None
    for k in sorted(wanted):
        put(k, formulas[slots[k]](s))
    return passed
