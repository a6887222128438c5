"""Jacobians for `gradcheck`: by differences, by backward mode, by forward mode; other checks.

A Jacobian has a row for each element of an input and a column for each element of an output.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional import TABLE, is_differentiable

from .._active import allowed
from .._creation import tensor
from .._handle import Handle
from .._modes import no_grad
from .._record import apply
from .._run import synchronize
from . import forward_ad
from ._backward import grad
from ._context import zeros
from ._function import Function
from ._gradcheck_messages import BATCHED, BATCHED_FORWARD, NOT_REENTRANT, RANDOM_INSIDE, differs

UNDEFINED = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)


class Mismatch(Exception):
    """A check failed."""


def _needs(x: Any) -> bool:
    return isinstance(x, Handle) and bool(x.requires_grad)  # type: ignore[attr-defined]


def _outputs(out: Any) -> list[Any]:
    return list(out) if isinstance(out, (tuple, list)) else [out]


def _array(t: Any) -> Any:
    with no_grad():
        return t.detach().numpy()


def parts_of_outputs(func: Any, part: str) -> Callable[..., Any]:
    """`func` with complex outputs replaced by their real or imaginary parts."""

    def fn(*args: Any) -> tuple[Any, ...]:
        return tuple(
            (o.real if part == "real" else o.imag) if o.is_complex() else o
            for o in _outputs(func(*args))
        )

    return fn


def parts_of_inputs(func: Any, args: Any, part: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """`func` as a function of the real or imaginary parts of its complex inputs, and those."""
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


def numerical(fn: Any, args: Any, eps: float) -> list[list[Any]]:
    """For each input that requires grad, for each output, the Jacobian by differences.

    For a complex input and a real output it is `d/dRe + i d/dIm`, PyTorch's gradient.
    """
    found = []
    for x in args:
        if not _needs(x):
            continue
        base = _array(x).copy()
        rows: list[list[Any]] = []
        try:
            for place in np.ndindex(base.shape):
                row = _difference(fn, args, x, base, place, eps)
                if base.dtype.kind == "c":
                    other = _difference(fn, args, x, base, place, eps * 1j)
                    row = [r + 1j * (1j * s) for r, s in zip(row, other, strict=True)]
                rows.append(row)
        finally:
            _put(x, base)
        if not rows:
            outs = [_array(o).reshape(-1) for o in _outputs(fn(*args))]
            found.append([np.zeros((0, o.size)) for o in outs])
        else:
            found.append([np.stack(column) for column in zip(*rows, strict=True)])
    return found


def _difference(fn: Any, args: Any, x: Any, base: Any, place: Any, step: Any) -> list[Any]:
    """Move one element of `x` in its own memory, as a function that is not handed `x` sees it."""
    ends: list[Any] = []
    for sign in (1, -1):
        moved = base.copy()
        moved[place] += sign * step
        _put(x, moved)
        outs = [o for o in _outputs(fn(*args))]
        ends.append([(o.shape, o.dtype, _array(o).reshape(-1)) for o in outs])
    for (s1, d1, _), (s2, d2, _) in zip(*ends, strict=True):
        for what, a, b in (("shape", s1, s2), ("dtype", d1, d2)):
            if a != b:
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are "
                    f"perturbed on index {place} by {step}, but got: {what}s {a} and {b}."
                )
    return [(a[2] - b[2]) / (2 * step) for a, b in zip(*ends, strict=True)]


def _put(x: Any, array: Any) -> None:
    """Replace the data of `x`, for all that share it and unseen by autograd, as `x.data` does."""
    synchronize()
    if x._shares or x._viewers or x._array is None:
        x.data.copy_(tensor(array))
    else:  # nothing to record
        x._array = tensor(array, dtype=x.dtype)._array


def analytical(args: Any, out: Any, nondet_tol: float, dtypes: bool) -> list[Any]:
    """The Jacobian of one output by backward mode, for each input that requires grad."""
    wanted = [t for t in args if _needs(t)]
    # Each pass is a program of its own, after the one that makes what they read: of one program
    # XLA rounds the parts as it fuses them, and the two would differ in the last digit.
    synchronize()
    first = _rows(wanted, out)
    for t, rows in zip(wanted, first, strict=True):
        for g in rows:
            if dtypes and g is not None and g.dtype != t.dtype:
                raise Mismatch("Gradient has dtype mismatch")
            if g is not None and tuple(g.shape) != tuple(t.shape):
                raise Mismatch("Analytical gradient has incorrect size")
    found = [_stack(t, rows) for t, rows in zip(wanted, first, strict=True)]
    again = [_stack(t, rows) for t, rows in zip(wanted, _rows(wanted, out), strict=True)]
    for a, b in zip(found, again, strict=True):
        if not np.allclose(a, b, rtol=0, atol=nondet_tol, equal_nan=True):
            raise Mismatch(
                "Backward is not reentrant, i.e., running backward with same input and "
                "grad_output multiple times gives different values, although analytical gradient "
                f"matches numerical gradient.The tolerance for nondeterminism was {nondet_tol}."
                + NOT_REENTRANT
            )
    return found


def _rows(wanted: list[Any], out: Any) -> list[list[Any]]:
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
    arrays = [_array(zeros(t._v) if g is None else g).reshape(-1) for g in rows]
    return np.stack(arrays, axis=1)


def forward(fn: Any, args: Any, dtypes: bool) -> list[list[Any]]:
    """For each input that requires grad, for each output, the Jacobian by forward mode."""
    wanted = [i for i, t in enumerate(args) if _needs(t)]
    found = []
    for i in wanted:
        rows: list[list[Any]] = []
        shape = tuple(args[i].shape)
        for place in np.ndindex(shape):
            with forward_ad.dual_level():
                duals = list(args)
                for j in wanted:
                    one = np.zeros(tuple(args[j].shape))
                    if j == i:
                        one[place] = 1
                    along = tensor(one, dtype=args[j].dtype)
                    duals[j] = forward_ad.make_dual(args[j].detach(), along)
                row = []
                for o in _outputs(fn(*duals)):
                    value, t = forward_ad.unpack_dual(o)
                    if dtypes and t is not None and t.is_complex() != value.is_complex():
                        raise Mismatch("Forward AD gradient has dtype mismatch.")
                    row.append(_array(zeros(value._v) if t is None else t).reshape(-1))
                rows.append(row)
        if not rows:  # an input without elements
            outs = [zeros(o._v) for o in _outputs(fn(*args))]
            found.append([_array(o).reshape(1, -1)[:0] for o in outs])
            continue
        found.append([np.stack(column) for column in zip(*rows, strict=True)])
    return found


# ---------------------------------------------------------------- other checks


def check_batched(args: Any, out: Any, output: int) -> None:
    """Whether gradients of several output gradients at once are those of one at a time."""
    wanted = [t for t in args if _needs(t)]
    rng = np.random.default_rng(0)
    cts = [tensor(rng.normal(size=tuple(out.shape)), dtype=out.dtype) for _ in range(2)]
    each = [grad(out, wanted, ct, retain_graph=True, allow_unused=True) for ct in cts]
    try:
        both = grad(
            out, wanted, apply(TABLE["stack"], tuple(cts), 0), retain_graph=True,
            allow_unused=True, is_grads_batched=True,
        )  # fmt: skip
    except RuntimeError as e:
        raise Mismatch(f"While computing batched gradients, got: {e}\n\n{BATCHED}") from e
    for i, b in enumerate(both):
        if b is not None:
            _same_batch(output, i, BATCHED, b, [e[i] for e in each])


def _same_batch(output: int, i: int, advice: str, got: Any, each: list[Any]) -> None:
    expected = apply(TABLE["stack"], tuple(each), 0)
    if not np.allclose(_array(got), _array(expected)):
        raise Mismatch(differs(output, i, advice, got, expected))


def check_batched_forward(func: Any, args: Any) -> None:
    """Whether tangents of several directions at once are those of one at a time."""
    from ..func import vmap
    from ..func._levels import RANDOM

    rng = np.random.default_rng(0)
    for i, x in enumerate(args):
        if not _needs(x):
            continue

        def push(along: Any, i: int = i, x: Any = x) -> tuple[Any, ...]:
            with forward_ad.dual_level():
                full = list(args)
                full[i] = forward_ad.make_dual(x.detach(), along)
                with allowed():  # Functions need no rule for this
                    pairs = [forward_ad.unpack_dual(o) for o in _outputs(func(*full))]
                return tuple(zeros(p._v) if t is None else t for p, t in pairs)

        tangents = [tensor(rng.normal(size=tuple(x.shape)), dtype=x.dtype) for _ in range(2)]
        each = [push(t) for t in tangents]
        try:
            both = vmap(push)(apply(TABLE["stack"], tuple(tangents), 0))
        except RuntimeError as e:
            text = RANDOM_INSIDE if str(e) == RANDOM else str(e)
            advice = f"While computing batched gradients, got: {text}\n\n{BATCHED_FORWARD}"
            raise Mismatch(advice) from e
        for o, b in enumerate(both):
            _same_batch(o, i, BATCHED_FORWARD, b, [e[o] for e in each])


def check_undefined_forward(func: Any, args: Any) -> None:
    """Whether an input without a tangent counts as one whose tangent is zero."""
    rng = np.random.default_rng(0)
    wanted = [i for i, x in enumerate(args) if _needs(x)]
    with forward_ad.dual_level():
        duals = list(args)
        for i in wanted:
            along = tensor(rng.normal(size=tuple(args[i].shape)), dtype=args[i].dtype)
            duals[i] = forward_ad.make_dual(args[i].detach(), along)
        for i in wanted:
            x = args[i].detach()
            found = []
            for given in (forward_ad.make_dual(x, zeros(x._v)), x):
                outs = _outputs(func(*duals[:i], given, *duals[i + 1 :]))
                floats = [
                    o for o in outs if isinstance(o, Handle) and is_differentiable(o._v.dtype)
                ]
                found.append([forward_ad.unpack_dual(o).tangent for o in floats])
            for k, (zero, none) in enumerate(zip(*found, strict=True)):
                if zero is None or none is None or np.allclose(_array(zero), _array(none)):
                    continue
                raise Mismatch(
                    f"Mismatch in tangent values for output with index: {k} when input: {args[i]} "
                    f"has an undefined tangent value.  Got: {zero} but expected: {none}"
                )


def check_multiplied(outs: list[Any], args: Any) -> None:
    """Whether zero gradients of the outputs give zeros."""
    wanted = [t for t in args if _needs(t)]
    if not outs:
        return
    grads = grad(outs, wanted, [zeros(o._v) for o in outs], retain_graph=True, allow_unused=True)
    for g, t in zip(grads, wanted, strict=True):
        if g is None:
            continue
        if not (_array(g) == 0).all():
            raise Mismatch("backward not multiplied by grad_output")
        if g.dtype != t.dtype:
            raise Mismatch("grad is incorrect type")
        if g.size() != t.size():
            raise Mismatch("grad is incorrect size")


class _Undefined(Function):
    """The identity without a gradient."""

    @staticmethod
    def forward(ctx: Any, *xs: Any) -> Any:
        return tuple(x.clone() for x in xs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None,) * len(grads)


def _warn_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, "
        'you can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=4,
    )


def check_undefined(outputs: Callable[[], list[Any]], args: Any) -> None:
    """Whether missing gradients of the outputs are taken for zeros."""
    wanted = [t for t in args if _needs(t)]
    first = outputs()
    if not first:
        return
    cases = [_Undefined.apply(*first)]
    if len(first) > 1:
        for k in range(len(first)):
            outs = outputs()
            outs[k] = _Undefined.apply(outs[k])[0]
            cases.append(outs)
    for case in cases:
        cts = [zeros(o._v) for o in case]
        try:
            grads = grad(list(case), wanted, cts, allow_unused=True)
        except RuntimeError as e:
            _warn_undefined()
            raise Mismatch(
                f"Expected backward function to handle undefined output grads. {UNDEFINED}"
            ) from e
        for g in grads:
            if g is not None and not (_array(g) == 0).all():
                _warn_undefined()
                raise Mismatch(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    f"undefined or zero. {UNDEFINED}"
                )
