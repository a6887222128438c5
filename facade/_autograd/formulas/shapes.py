"""Gradients of sums and of what moves or copies elements, as PyTorch's formulas spell them."""

from __future__ import annotations

import math
from typing import Any

from leafax.functional.program.op import TABLE
from leafax.functional.program.platform import where_data_are_made

from ..._dispatch.conj_neg_bits import resolve_conj
from ..._dispatch.record import apply
from .scalar_ops import over
from .tools import Formula, NoFormula, dims_of


def spread(s: Any, grad: Any = None) -> Any:
    """Compute the gradient of a sum: the same number wherever one was summed.

    Args:
      grad: of the sum, where it is not the op's first result.
    """
    shape, dim, grad = s.shape(), s.static("dim"), s.g if grad is None else grad
    dim = None if isinstance(dim, bool) else dim  # that of `unbiased`, which comes first
    if dim is not None and not s.static("keepdim", False):
        for d in dims_of(dim, len(shape)):
            grad = grad.unsqueeze(d)
    return grad.expand(shape)


def of_mean(s: Any, grad: Any = None) -> Any:
    """Compute the gradient of a mean, or of what has one among its results."""
    shape, dim = s.shape(), s.static("dim")
    whole = dim is None or isinstance(dim, bool)
    dims = range(len(shape)) if whole else dims_of(dim, len(shape))
    return over(spread(s, grad), math.prod(shape[d] for d in dims))


def _unsqueezed(s: Any) -> Any:
    shape, grad, dim = s.shape(), s.g, s.static("dim")
    for d in range(len(shape)) if dim is None else dims_of(dim, len(shape)):
        if shape[d] == 1:
            grad = grad.unsqueeze(d)
    return grad


def _permuted(s: Any) -> Any:
    dims = s.static("dims")
    inverse = [0] * len(dims)
    for k, d in enumerate(dims):
        inverse[d % len(dims)] = k
    return s.g.permute(tuple(inverse))


def _pieces(s: Any) -> list[Any]:
    """Compute the gradient of `cat`, cut into its operands'."""
    dim, start, found = s.static("dim", 0), 0, []
    for a in s.given["tensors"]:
        shape = s.node.state.operands[a.index].shape
        if shape == (0,):  # such a one is left out, whatever the rank of the others
            found.append(s.g.new_zeros(shape))
            continue
        found.append(s.g.narrow(dim, start, shape[dim]))
        start += shape[dim]
    return found


def _blocks(s: Any) -> list[Any]:
    """Compute the gradient of `block_diag`, cut into its operands'."""
    row, column, found = 0, 0, []
    for a in s.given["tensors"]:
        shape = s.node.state.operands[a.index].shape
        if len(shape) != 2:
            raise NoFormula("vectors and numbers are made matrices")
        found.append(s.g.narrow(0, row, shape[0]).narrow(1, column, shape[1]))
        row, column = row + shape[0], column + shape[1]
    return found


# The gradient of each tensor of a list.
LISTS: dict[str, Formula] = {
    "block_diag": _blocks,
    "cat": _pieces,
    "stack": lambda s: [s.g.select(s.static("dim", 0), k) for k in range(len(s.given["tensors"]))],
}


def _joined(s: Any) -> Any:
    """Join the gradients of what cuts a tensor up, zeros where there is none."""
    dim, kinds = s.static("dim", 0), s.node.state.values
    whole = next(g for g in s.grads if g is not None)
    grads = [whole.new_zeros(tuple(k.shape)) if g is None else g for k, g in _each(kinds, s.grads)]
    return apply(TABLE["stack" if len(kinds[0].shape) < len(s.shape()) else "cat"], grads, dim)


def _each(kinds: Any, grads: list[Any]) -> list[tuple[Any, Any]]:
    return list(zip(kinds, [*grads, *[None] * (len(kinds) - len(grads))], strict=True))


_VIEWED: dict[str, Formula] = {"input": lambda s: s.g.reshape(s.shape())}
_MOVED: dict[str, Formula] = {
    "input": lambda s: s.g.movedim(s.static("destination"), s.static("source")),
}


def _copied_back(s: Any) -> Any:
    """Return the gradient of a copy on the device that was copied from."""
    if s.static("device") is None:
        return s.g
    where = s.operand("input").device or where_data_are_made()
    return apply(TABLE["_to_copy"], s.g, s.g._v.dtype, None, where)


# What was written over gets a zero that depends on nothing.
FILLED: dict[str, Formula] = {
    "input": lambda s: s.g.new_zeros(s.shape()), "value": lambda s: s.g.sum(),
}  # fmt: skip

_EXPANDED: dict[str, Formula] = {"input": lambda s: s.g.sum_to_size(s.shape())}

_CUT = (
    "unbind", "split", "chunk", "split_with_sizes", "unbind_copy", "split_with_sizes_copy",
    "split_copy", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes",
)  # fmt: skip

FORMULAS: dict[str, dict[str, Formula]] = {
    "sum": {"input": spread},
    "mean": {"input": of_mean},
    "clone": {"input": lambda s: s.g},
    "contiguous": {"input": lambda s: s.g},
    "_to_copy": {"input": _copied_back},
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
    "expand": _EXPANDED,
    "broadcast_to": _EXPANDED,
    "zero": FILLED,
    "fill": FILLED,
    "fill_": FILLED,
    "alias": {"input": lambda s: s.g},
    "conj": {"input": lambda s: s.g.conj()},
    "view_as_real": {"input": lambda s: apply(TABLE["view_as_complex"], s.g.contiguous())},
    "view_as_complex": {
        "input": lambda s: apply(TABLE["view_as_real"], resolve_conj(s.g.contiguous()))
    },
    # What was copied over gets zeros that depend on nothing.
    "copy": {"input": lambda s: s.g.new_zeros(s.shape()), "src": lambda s: s.g},
    **dict.fromkeys(_CUT, {"input": _joined}),
}

# These have several results, the first of which may have no gradient.
SEVERAL = frozenset({*_CUT, "aminmax", "var_mean", "std_mean"})

FORMULAS |= {f"{name}_": FORMULAS[name] for name in ("t", "transpose", "squeeze", "unsqueeze")}
FORMULAS |= {
    f"{name}_copy": FORMULAS[name]
    for name in (
        "alias", "expand", "view", "permute", "squeeze", "unsqueeze", "t", "transpose",
        "view_as_real", "view_as_complex",
    )
}  # fmt: skip

# What these pass on is the incoming gradient itself, or a view of it.
VIEWING = frozenset({
    "add", "sub", "sum", "cat", "stack", "clone", "contiguous", "_to_copy", "t", "transpose",
    "swapaxes", "swapdims", "T", "mT", "movedim", "moveaxis", "permute", "view", "reshape",
    "_unsafe_view", "flatten", "ravel", "unflatten", "unsqueeze", "squeeze", "squeeze_", "addcmul",
    "addcdiv", "fmod", "remainder", "frac", "conj",
})  # fmt: skip
