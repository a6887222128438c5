"""`gradcheck(fast_mode=True)`: Jacobians between two vectors, instead of whole ones.

The Jacobian of an input and an output is multiplied by a direction `u` of the input, and in
backward mode by a gradient `v` of the output too; what is added up so may be off by as much more.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..._autograd.backward import grad
from ..._ops.creation.from_data import tensor
from .jacobians import (
    Mismatch,
    as_outputs,
    check_jacobians,
    compute_analytical,
    compute_forward,
    compute_numerical,
    compute_tangents,
    difference_along,
    needs_gradient,
)
from .messages import SLOW_IS_FINE


def backward_fast(
    fn: Any, args: Any, got: Any, prefix: Any, eps: float, atol: float, rtol: float,
    nondet_tol: float, dtypes: bool,
) -> None:  # fmt: skip
    """Compare what backward mode says of real outputs with differences.

    Args:
      got: what `fn` gave for `args`.
      prefix: the words that go before the message for an output, by its number.

    Raises:
      Mismatch: where they differ.
    """
    outs = as_outputs(got)
    kept = [k for k, o in enumerate(outs) if needs_gradient(o)]
    wanted, us, vs = _directions(args, [outs[k] for k in kept])
    found = [
        difference_along(partial(fn, *args), x, u, eps) for x, u in zip(wanted, us, strict=True)
    ]
    if not kept:
        if any(n.size and abs(n).max() > nondet_tol for row in found for n in row):
            raise Mismatch("Numerical gradient for function expected to be zero")
        return
    made = []
    for k, v in zip(kept, vs, strict=True):
        given = tensor(v.reshape(tuple(outs[k].shape)), dtype=outs[k].dtype)
        rows = partial(_rows, wanted, outs[k], given)
        made.append([g[:, 0] for g in check_jacobians(args, rows, nondet_tol, dtypes)])
    for i, u in enumerate(us):
        for o, k in enumerate(kept):
            n, a = (vs[o] * found[i][k]).sum(), made[o][i]
            real, imag = (None if part is None else part.reshape(-1) for part in u)
            a = a @ real if imag is None else a.real @ real + 1j * (a.imag @ imag)
            within = atol * _total(wanted[i], u) * vs[o].sum()
            if not np.allclose(a, n, rtol, within):
                slow_n = compute_numerical(partial(fn, *args), wanted, eps)[i][k]
                slow_a = compute_analytical(args, outs[k], float("inf"), False)[i]
                advice = _slowly(slow_n, slow_a, atol, rtol)
                raise Mismatch(describe_mismatch(prefix(o), "", o, i, n, a) + advice)


def forward_fast(
    fn: Any, args: Any, got: Any, prefix: Any, eps: float, atol: float, rtol: float, dtypes: bool
) -> None:
    """Compare what forward mode says for real inputs with differences; see `backward_fast`."""
    kept = [k for k, o in enumerate(as_outputs(got)) if o.is_floating_point() or o.is_complex()]
    wanted, us, _ = _directions(args, [])
    places = [i for i, x in enumerate(args) if needs_gradient(x)]
    for i, (x, u) in enumerate(zip(wanted, us, strict=True)):
        found = difference_along(partial(fn, *args), x, u, eps)
        along = u[0].reshape(tuple(x.shape))
        made = compute_tangents(fn, args, places[i], along, dtypes)
        for o, k in enumerate(kept):
            n, a = found[k], made[k]
            if not np.allclose(a, n, rtol, atol * _total(x, u)):
                slow_n = compute_numerical(partial(fn, *args), wanted, eps)[i][k]
                advice = _slowly(slow_n, compute_forward(fn, args, False)[i][k], atol, rtol)
                mode = "computed with forward mode "
                raise Mismatch(describe_mismatch(prefix(i), mode, o, i, n, a) + advice)


def _rows(wanted: list[Any], out: Any, given: Any) -> list[list[Any]]:
    gs = grad(out.clone(), wanted, given, retain_graph=True, allow_unused=True)
    return [[g] for g in gs]


def describe_mismatch(prefix: str, mode: str, o: int, i: int, n: Any, a: Any) -> str:
    """Write the message for output `o` and input `i`: `n` is by differences, `a` is ours."""
    return (
        f"{prefix}Jacobian {mode}mismatch for output {o} with respect to input {i},\n"
        f"numerical:{tensor(n)}\nanalytical:{tensor(a)}\n"
    )


def _directions(args: Any, outs: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
    """Draw a real and an imaginary `u` for each input that requires grad, a `v` for each output."""
    rng = np.random.default_rng(0)

    def drawn(t: Any) -> Any:
        vector = rng.uniform(size=tuple(t.shape))
        return vector / np.linalg.norm(vector) if vector.size else vector

    wanted = [x for x in args if needs_gradient(x)]
    us = [(drawn(x), drawn(x) if x.is_complex() else None) for x in wanted]
    return wanted, us, [drawn(o).reshape(-1) for o in outs]


def _total(x: Any, u: Any) -> float:
    return float(u[0].sum() + (u[1].sum() if x.is_complex() else 0))


def _slowly(n: Any, a: Any, atol: float, rtol: float) -> str:
    text = (
        "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
        "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more background \n"
        "about fast mode. Below, we recompute numerical and analytical jacobians in slow mode:\n\n"
        f"Numerical:\n {tensor(n)}\nAnalytical:\n{tensor(a)}\n\n"
        f"The max per-element difference (slow mode) is: {abs(n - a).max()}.\n"
    )
    return text + SLOW_IS_FINE if np.allclose(a, n, rtol, atol) else text
