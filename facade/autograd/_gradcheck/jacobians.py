"""Jacobians for `gradcheck`: by differences, by backward mode, by forward mode.

A Jacobian has a row for each element of an input and a column for each element of an output.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ..._autograd.backward import grad
from ..._autograd.graph.fit_gradient import zeros
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._ops.creation.from_data import tensor
from ..._runtime.observation import synchronize
from .. import forward_ad
from .messages import NOT_REENTRANT


class Mismatch(Exception):
    """Report a check that failed."""


def needs_gradient(x: Any) -> bool:
    """Tell if `x` is a tensor that requires grad."""
    return isinstance(x, Handle) and bool(x.requires_grad)  # type: ignore[attr-defined]


def as_outputs(out: Any) -> list[Any]:
    """Return a function's outputs as a list."""
    return list(out) if isinstance(out, (tuple, list)) else [out]


def to_numpy(t: Any) -> Any:
    """Return the NumPy array of a tensor."""
    with no_grad():
        return t.detach().numpy()


def split_outputs(func: Any, part: str) -> Callable[..., Any]:
    """Make a `func` whose complex outputs are replaced by their real or imaginary parts."""

    def fn(*args: Any) -> tuple[Any, ...]:
        return tuple(
            (o.real if part == "real" else o.imag) if o.is_complex() else o
            for o in as_outputs(func(*args))
        )

    return fn


def split_inputs(func: Any, args: Any, part: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Make a `func` of the real or imaginary parts of its complex inputs, and those."""
    complexes = [isinstance(a, Handle) and a.is_complex() for a in args]
    given = tuple(
        (a.real if part == "real" else a.imag).detach().clone().requires_grad_(a.requires_grad)
        if c
        else a
        for a, c in zip(args, complexes, strict=True)
    )

    def fn(*parts: Any) -> Any:
        made = []
        for a, p, c in zip(args, parts, complexes, strict=True):
            if c:
                pair = (p, a.imag.detach()) if part == "real" else (a.real.detach(), p)
                p = apply(TABLE["complex"], *pair)
            made.append(p)
        return func(*made)

    return fn, given


def compute_numerical(call: Callable[[], Any], targets: Any, eps: float) -> list[list[Any]]:
    """Compute Jacobians by differences, for each target that requires grad and each output.

    The targets' memory is written to while `call` runs, so it need not be given them. For a
    complex input and a real output the Jacobian is `d/dRe + i d/dIm`, PyTorch's gradient.
    """
    found = []
    for x in targets:
        if not needs_gradient(x):
            continue
        shape = tuple(x.shape)
        rows: list[list[Any]] = []
        for place in np.ndindex(shape):
            along = np.zeros(shape)
            along[place] = 1
            rows.append(difference_along(call, x, (along, along), eps, f"on index {place} "))
        if not rows:
            outs = [to_numpy(o).reshape(-1) for o in as_outputs(call())]
            found.append([np.zeros((0, o.size)) for o in outs])
        else:
            found.append([np.stack(column) for column in zip(*rows, strict=True)])
    return found


def difference_along(
    call: Callable[[], Any], x: Any, u: tuple[Any, Any], eps: float, where: str = ""
) -> list[Any]:
    """Differentiate each output, flat, along `u`, the real and imaginary part of a step of `x`."""
    row = _ends(call, x, u[0], eps, where)
    if x.is_complex():
        row = [r + 1j * s for r, s in zip(row, _ends(call, x, u[1] * 1j, eps, where), strict=True)]
    return row


def _ends(call: Callable[[], Any], x: Any, along: Any, eps: float, where: str) -> list[Any]:
    ends: list[Any] = []
    base = to_numpy(x).copy()
    step = (eps * along).astype(base.dtype)
    try:
        for moved in (base - step, base + step):
            _put(x, moved)
            outs = [o for o in as_outputs(call())]
            ends.append([(o.shape, o.dtype, to_numpy(o).reshape(-1)) for o in outs])
    finally:
        _put(x, base)
    for (s1, d1, _), (s2, d2, _) in zip(*ends, strict=True):
        for what, a, b in (("shape", s1, s2), ("dtype", d1, d2)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed {where}by {eps}, but got: {what}s {a} and {b}."
                )
    if any(out.dtype == bool for _, _, out in ends[0]):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
            "`logical_xor()` operator instead."
        )
    return [(b[2] - a[2]) / (2 * eps) for a, b in zip(*ends, strict=True)]


def _put(x: Any, array: Any) -> None:
    """Replace the data of `x`, for all that share it and unseen by autograd, as `x.data` does."""
    synchronize()
    if x._shares or x._viewers or x._array is None:
        x.data.copy_(tensor(array))
    else:  # nothing to record
        x._array = tensor(array, dtype=x.dtype)._array


def compute_analytical(args: Any, out: Any, nondet_tol: float, dtypes: bool) -> list[Any]:
    """Compute the Jacobian of one output by backward mode, for each input that requires grad."""
    return check_jacobians(args, partial(compute_vjp_rows, args, out), nondet_tol, dtypes)


def check_jacobians(
    args: Any, rows: Callable[[], list[list[Any]]], nondet_tol: float, dtypes: bool
) -> list[Any]:
    """Stack the columns that backward gives to Jacobians, and check that they are sound."""
    found, reentrant, sizes, types = stack_jacobians(args, rows, nondet_tol)
    if not types and dtypes:
        raise Mismatch("Gradient has dtype mismatch")
    if not sizes:
        raise Mismatch("Analytical gradient has incorrect size")
    if not reentrant:
        raise Mismatch(
            "Backward is not reentrant, i.e., running backward with same input and "
            "grad_output multiple times gives different values, although analytical gradient "
            f"matches numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
            + NOT_REENTRANT
        )
    return found


def stack_jacobians(
    args: Any, rows: Callable[[], list[list[Any]]], nondet_tol: float
) -> tuple[list[Any], bool, bool, bool]:
    """Return Jacobians, if a second backward agrees, and if sizes and dtypes are right."""
    wanted = [t for t in args if needs_gradient(t)]
    # Each pass is a program of its own, after the one that makes what they read: of one program
    # XLA rounds the parts as it fuses them, and the two would differ in the last digit.
    synchronize()
    first = rows()
    sizes = types = True
    for t, gs in zip(wanted, first, strict=True):
        for g in gs:
            sizes &= g is None or tuple(g.shape) == tuple(t.shape)
            types &= g is None or g.dtype == t.dtype
    if not sizes:
        return [], True, sizes, types
    found = [_stack(t, gs) for t, gs in zip(wanted, first, strict=True)]
    for last in (False, True):
        again = [_stack(t, gs) for t, gs in zip(wanted, rows(), strict=True)]
        pairs = [(a, b) for a, b in zip(found, again, strict=True) if a.size]
        reentrant = not any(abs(a - b).max() > nondet_tol for a, b in pairs)
        if reentrant or last or not all(np.allclose(a, b, 1e-9, 1e-9) for a, b in pairs):
            break
        found = again  # the first may have gone op by op, and this one not; the next will not
    return found, reentrant, sizes, types


def compute_vjp_rows(args: Any, out: Any) -> list[list[Any]]:
    """Compute gradients of each element of `out` alone, for each input that requires grad."""
    wanted = [t for t in args if needs_gradient(t)]
    found: list[list[Any]] = [[] for _ in wanted]
    for place in np.ndindex(tuple(out.shape)):
        one = np.zeros(tuple(out.shape))
        one[place] = 1
        grads = grad(
            out.clone(), wanted, tensor(one, dtype=out.dtype), retain_graph=True, allow_unused=True
        )
        for rows, g in zip(found, grads, strict=True):
            rows.append(g)
    return found


def _stack(t: Any, rows: list[Any]) -> Any:
    if not rows:
        return np.zeros((t.numel(), 0))
    arrays = [to_numpy(zeros(t._v) if g is None else g).reshape(-1) for g in rows]
    return np.stack(arrays, axis=1)


def compute_forward(fn: Any, args: Any, dtypes: bool) -> list[list[Any]]:
    """Compute Jacobians by forward mode, for each input that requires grad and each output."""
    found = []
    for i in [i for i, t in enumerate(args) if needs_gradient(t)]:
        rows: list[list[Any]] = []
        shape = tuple(args[i].shape)
        for place in np.ndindex(shape):
            along = np.zeros(shape)
            along[place] = 1
            rows.append(compute_tangents(fn, args, i, along, dtypes))
        if not rows:  # an input without elements
            outs = [zeros(o._v) for o in as_outputs(fn(*args))]
            found.append([to_numpy(o).reshape(1, -1)[:0] for o in outs])
            continue
        found.append([np.stack(column) for column in zip(*rows, strict=True)])
    return found


def compute_tangents(fn: Any, args: Any, i: int, along: Any, dtypes: bool) -> list[Any]:
    """Compute the tangent of each output, flat, as the input `i` moves along `along`."""
    row = []
    with forward_ad.dual_level():
        duals = list(args)
        for j, t in enumerate(args):
            if needs_gradient(t):
                one = along if j == i else np.zeros(tuple(t.shape))
                duals[j] = forward_ad.make_dual(t.detach(), tensor(one, dtype=t.dtype))
        for o in as_outputs(fn(*duals)):
            value, tangent = forward_ad.unpack_dual(o)
            if dtypes and tangent is not None and tangent.is_complex() != value.is_complex():
                raise Mismatch("Forward AD gradient has dtype mismatch.")
            row.append(to_numpy(zeros(value._v) if tangent is None else tangent).reshape(-1))
    return row
