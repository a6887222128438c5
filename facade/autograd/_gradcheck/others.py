"""Checks of `gradcheck` beside Jacobians: batches, missing gradients, zero gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import is_differentiable
from leafax.functional.program.op import TABLE

from ..._autograd.backward import grad
from ..._autograd.graph.fit_gradient import zeros
from ..._core.handle import Handle
from ..._core.transforms_running import allowing_all
from ..._dispatch.record import apply
from ..._ops.creation.from_data import tensor
from ...func._vmap import map_examples
from .. import forward_ad
from .._function import Function
from .jacobians import Mismatch, as_outputs, needs_gradient, to_numpy
from .messages import BATCHED, BATCHED_FORWARD, describe_batch_mismatch

UNDEFINED = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)


def check_batched(args: Any, out: Any, output: int) -> None:
    """Check that gradients of several output gradients at once are those of one at a time."""
    wanted = [t for t in args if needs_gradient(t)]
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
    if not np.allclose(to_numpy(got), to_numpy(expected)):
        raise Mismatch(describe_batch_mismatch(output, i, advice, got, expected))


def check_batched_forward(func: Any, args: Any) -> None:
    """Check that tangents of several directions at once are those of one at a time."""
    rng = np.random.default_rng(0)
    for i, x in enumerate(args):
        if not needs_gradient(x):
            continue

        def push(along: Any, i: int = i, x: Any = x) -> tuple[Any, ...]:
            with forward_ad.dual_level():
                full = [t.detach() if isinstance(t, Handle) else t for t in args]
                full[i] = forward_ad.make_dual(x.detach(), along)
                with allowing_all():  # Functions need no rule for this
                    pairs = [forward_ad.unpack_dual(o) for o in as_outputs(func(*full))]
                return tuple(zeros(p._v) if t is None else t for p, t in pairs)

        tangents = [tensor(rng.normal(size=tuple(x.shape)), dtype=x.dtype) for _ in range(2)]
        each = [push(t) for t in tangents]
        try:
            both = map_examples(push, 0, older=True)(apply(TABLE["stack"], tuple(tangents), 0))
        except RuntimeError as e:
            advice = f"While computing batched gradients, got: {e}\n\n{BATCHED_FORWARD}"
            raise Mismatch(advice) from e
        for o, b in enumerate(both):
            _same_batch(o, i, BATCHED_FORWARD, b, [e[o] for e in each])


def check_undefined_forward(func: Any, args: Any) -> None:
    """Check that an input without a tangent counts as one whose tangent is zero."""
    rng = np.random.default_rng(0)
    wanted = [i for i, x in enumerate(args) if needs_gradient(x)]
    with forward_ad.dual_level():
        duals = list(args)
        for i in wanted:
            along = tensor(rng.normal(size=tuple(args[i].shape)), dtype=args[i].dtype)
            duals[i] = forward_ad.make_dual(args[i].detach(), along)
        for i in wanted:
            x = args[i].detach()
            found = []
            for given in (forward_ad.make_dual(x, zeros(x._v)), x):
                outs = as_outputs(func(*duals[:i], given, *duals[i + 1 :]))
                floats = [
                    o for o in outs if isinstance(o, Handle) and is_differentiable(o._v.dtype)
                ]
                found.append([forward_ad.unpack_dual(o).tangent for o in floats])
            for k, (zero, none) in enumerate(zip(*found, strict=True)):
                if zero is None or none is None or np.allclose(to_numpy(zero), to_numpy(none)):
                    continue
                raise Mismatch(
                    f"Mismatch in tangent values for output with index: {k} when input: {args[i]} "
                    f"has an undefined tangent value.  Got: {zero} but expected: {none}"
                )


def check_multiplied(outs: list[Any], args: Any) -> None:
    """Check that zero gradients of the outputs give zeros."""
    wanted = [t for t in args if needs_gradient(t)]
    if not outs:
        return
    grads = grad(outs, wanted, [zeros(o._v) for o in outs], retain_graph=True, allow_unused=True)
    for g, t in zip(grads, wanted, strict=True):
        if g is None:
            continue
        if not (to_numpy(g) == 0).all():
            raise Mismatch("backward not multiplied by grad_output")
        if g.dtype != t.dtype:
            raise Mismatch("grad is incorrect type")
        if g.size() != t.size():
            raise Mismatch("grad is incorrect size")


class _Undefined(Function):
    """Return copies that pass no gradient on."""

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
    """Check that missing gradients of the outputs are taken for zeros."""
    wanted = [t for t in args if needs_gradient(t)]
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
            if g is not None and not (to_numpy(g) == 0).all():
                _warn_undefined()
                raise Mismatch(
                    "Expected all input grads to be undefined or zero when all output grads are "
                    f"undefined or zero. {UNDEFINED}"
                )
