"""Gradients of products, inverses and factors of matrices, as PyTorch's formulas spell them."""

from __future__ import annotations

from functools import partial
from typing import Any

from leafax.functional.program.op import TABLE

from ..._dispatch.record import apply
from .tools import Formula, conj


def _turned(t: Any) -> Any:
    return conj(t.t())


def _by_columns(s: Any, name: str) -> bool:
    """Tell whether a matrix lies in memory column after column."""
    kind = s.node.state.operands[s.given[name].index]
    strides = getattr(kind, "strides", None)
    return bool((strides or (kind.shape[1], 1)) == (1, kind.shape[0]))


def _left_factor(s: Any, left: str = "input") -> Any:
    if _by_columns(s, left):
        return conj(s["mat2"]).mm(s.g.t()).t()
    return s.g.mm(_turned(s["mat2"]))


def _right_factor(s: Any, left: str = "input") -> Any:
    if _by_columns(s, "mat2"):
        return s.g.t().mm(conj(s[left])).t()
    return _turned(s[left]).mm(s.g)


def _cross(s: Any, x: Any, y: Any) -> Any:
    return apply(TABLE["linalg.cross"], x, y, s.static("dim", -1))


def _of_inverse(s: Any) -> Any:
    back = s.result.mH
    return -back.matmul(s.g.matmul(back))


def _solution(s: Any) -> tuple[Any, Any, Any]:
    """Give what came for the right-hand side of linear equations, and the solution; as matrices."""
    a, b = s.shape("A"), s.shape("B")
    is_vector = len(b) == 1 or (len(a) - 1 == len(b) and a[:-1] == b)
    g, x = (s.g.unsqueeze(-1), s.result.unsqueeze(-1)) if is_vector else (s.g, s.result)
    left = bool(s.static("left", True))
    if "upper" in s.given:
        op, turned = TABLE["linalg.solve_triangular"], {"upper": not s.static("upper")}
        if s.static("unitriangular", False):
            turned["unitriangular"] = True
    else:
        op, turned = TABLE["linalg.solve"], {}
    back = apply(op, s["A"].mH, g, left=left, **turned)
    return back, x, is_vector


def _right_hand_side(s: Any) -> Any:
    back, _, is_vector = s.once(_solution)
    return back.squeeze(-1) if is_vector else back


def _coefficients(s: Any) -> Any:
    back, x, _ = s.once(_solution)
    grad = -(back.matmul(x.mH) if s.static("left", True) else x.mH.matmul(back))
    if "upper" not in s.given:
        return grad
    skip = int(bool(s.static("unitriangular", False)))
    return grad.triu(skip) if s.static("upper") else grad.tril(-skip)


def _of_pseudoinverse(s: Any, name: str = "A") -> Any:
    """Differentiate a pseudoinverse as `pinv_backward` does: products go by the shorter side."""
    a, inverse, turned = s[name], s.result, s.g.mH
    inverse_h = inverse.mH
    if a.shape[-2] <= a.shape[-1]:
        k = turned.matmul(inverse)
        last = k.matmul(inverse_h)
        rest = inverse_h.matmul(inverse).matmul(turned - k.matmul(a))
        return -inverse.matmul(k).mH + last - a.matmul(inverse).matmul(last) + rest
    k = inverse.matmul(turned)
    first = inverse_h.matmul(k)
    rest = (turned - a.matmul(k)).matmul(inverse).matmul(inverse_h)
    return -k.matmul(inverse).mH + rest + first - first.matmul(inverse).matmul(a)


def _cholesky(s: Any) -> Any:
    """Differentiate a factorization as `cholesky_backward` does.

    With the factor L it is L^-H h(tril(L^H g)) L^-1 / 2, where h mirrors a triangle.
    """
    solve, upper = TABLE["linalg.solve_triangular"], bool(s.static("upper", False))
    factor, g = (s.result.mH, s.g.mH) if upper else (s.result, s.g)
    lower = factor.mH.matmul(g).tril()
    whole = 0.5 * (lower + lower.tril(-1).mH)
    left = apply(solve, factor.mH, whole, upper=True)
    return apply(solve, factor, left, upper=False, left=False)


def _of_factor(s: Any, factor: Any, symmetric: Any) -> Any:
    """Compute the gradient of a triangular factor, of all of its elements as PyTorch has it.

    Args:
      symmetric: that of the product of the factors, but for its sign.
    """
    return -(factor.matmul(symmetric) if s.static("upper") else symmetric.matmul(factor))


def _factor_of_inverse(s: Any) -> Any:
    inverse = s.result
    return _of_factor(s, s["input"], inverse.matmul((s.g + s.g.mH).matmul(inverse)))


def _solved(s: Any) -> Any:
    return apply(TABLE["cholesky_solve"], s.g, s["input2"], s.static("upper", False))


def _factor_of_solution(s: Any) -> Any:
    product = _solved(s).matmul(s.result.mH)
    return _of_factor(s, s["input2"], product + product.mH)


def _batches(s: Any) -> Any:
    return s.g.unsqueeze(0).expand(s.shape("batch1")[0], *s.g.shape)


_CROSS: dict[str, Formula] = {
    "input": lambda s: _cross(s, conj(s["other"]), s.g),
    "other": lambda s: _cross(s, s.g, conj(s["input"])),
}

_EQUATIONS: dict[str, Formula] = {"A": _coefficients, "B": _right_hand_side}

# By the result, which hooks may have changed, and operands.
OF_RESULT: dict[str, dict[str, Formula]] = {
    "linalg.inv": {"A": _of_inverse},
    "linalg.inv_ex": {"A": _of_inverse},
    "inverse": {"input": _of_inverse},
    "linalg.pinv": {"A": _of_pseudoinverse},
    "pinverse": {"input": partial(_of_pseudoinverse, name="input")},
    "linalg.solve": _EQUATIONS,
    "linalg.solve_ex": _EQUATIONS,
    "linalg.solve_triangular": _EQUATIONS,
    "linalg.cholesky": {"A": _cholesky},
    "linalg.cholesky_ex": {"A": _cholesky},
    "cholesky": {"input": _cholesky},
}

FORMULAS: dict[str, dict[str, Formula]] = {
    **{name: OF_RESULT[name] for name in ("linalg.inv", "inverse")},
    "cholesky_inverse": {"input": _factor_of_inverse},
    "cholesky_solve": {"input": _solved, "input2": _factor_of_solution},
    "linalg.cross": _CROSS,
    "mm": {"input": _left_factor, "mat2": _right_factor},
    "addmm": {
        "input": lambda s: s.scaled(s.g, "beta"),
        "mat1": lambda s: s.scaled(_left_factor(s, "mat1"), "alpha"),
        "mat2": lambda s: s.scaled(_right_factor(s, "mat1"), "alpha"),
    },
    "bmm": {
        "input": lambda s: s.g.bmm(conj(s["mat2"].transpose(1, 2))),
        "mat2": lambda s: conj(s["input"].transpose(1, 2)).bmm(s.g),
    },
    "mv": {
        "input": lambda s: s.g.reshape(-1, 1) * conj(s["vec"]),
        "vec": lambda s: _turned(s["input"]).mv(s.g),
    },
    "addmv": {
        "input": lambda s: s.scaled(s.g, "beta"),
        "mat": lambda s: s.scaled(s.g.reshape(-1, 1) * conj(s["vec"]), "alpha"),
        "vec": lambda s: s.scaled(_turned(s["mat"]).mv(s.g), "alpha"),
    },
    "addbmm": {
        "input": lambda s: s.scaled(s.g, "beta"),
        "batch1": lambda s: s.scaled(_batches(s).bmm(conj(s["batch2"].transpose(1, 2))), "alpha"),
        "batch2": lambda s: s.scaled(conj(s["batch1"].transpose(1, 2)).bmm(_batches(s)), "alpha"),
    },
    "vdot": {"input": lambda s: conj(s.g) * s["other"], "other": lambda s: s.g * s["input"]},
    "dot": {
        "input": lambda s: s.g * conj(s["tensor"]),
        "tensor": lambda s: s.g * conj(s["input"]),
    },
}
