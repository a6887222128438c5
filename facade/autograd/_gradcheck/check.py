"""`gradcheck` and `gradgradcheck`: gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from ..._autograd.backward import grad
from ..._ops.creation.from_data import tensor
from .fast import backward_fast, describe_mismatch, forward_fast
from .jacobians import (
    Mismatch,
    as_outputs,
    compute_analytical,
    compute_forward,
    compute_numerical,
    needs_gradient,
    split_inputs,
    split_outputs,
)
from .others import (
    check_batched,
    check_batched_forward,
    check_multiplied,
    check_undefined,
    check_undefined_forward,
)


class GradcheckError(RuntimeError):
    """Report gradients that are wrong."""


def gradcheck(
    func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5,
    rtol: float = 1e-3, raise_exception: bool = True, nondet_tol: float = 0.0,
    check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
    check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:  # fmt: skip
    """Compare the gradients of `func` with small finite differences.

    Args:
      func: a function of tensors that returns a tensor or several.
      inputs: a tensor or a tuple; those that require grad are checked, use double precision.
      eps: the step of the differences.
      atol, rtol: how far apart numbers may be.
      raise_exception: raise, instead of returning False.
      nondet_tol: how far apart two backward passes may be.
      check_undefined_grad: whether missing gradients of outputs give none, or zeros.
      check_grad_dtypes: whether gradients have the dtype of their inputs.
      check_batched_grad, check_batched_forward_grad: whether derivatives agree with their own
        under `vmap`.
      check_forward_ad: check forward mode too.
      check_backward_ad: check backward mode.
      fast_mode: compare products of the Jacobians with random vectors, not whole Jacobians.
      masked: accepted for PyTorch's sake, it is about sparse tensors.

    Returns:
      True if the gradients agree.

    Raises:
      GradcheckError: if they do not, with both Jacobians.

    >>> import leafax
    >>> x = leafax.tensor([1.0, 2.0], dtype=leafax.float64, requires_grad=True)
    >>> leafax.autograd.gradcheck(lambda x: x.sin(), x, check_forward_ad=True)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError(
            "Expected at least one of check_forward_ad or check_backward_ad to be True"
        )
    if check_batched_grad and not check_backward_ad:
        raise AssertionError(
            "Setting check_batched_grad=True requires check_backward_ad to be True"
        )
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError(
            "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
        )
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _check_inputs(args)
        outputs = func(*args)
        if check_backward_ad:
            how = (eps, atol, rtol, nondet_tol, check_grad_dtypes)
            _backward(func, args, outputs, fast_mode, *how)
        if check_forward_ad:
            _forward(func, args, fast_mode, eps, atol, rtol, check_grad_dtypes)
            if check_undefined_grad:
                check_undefined_forward(func, args)
        if check_batched_forward_grad:
            check_batched_forward(func, args)
        if check_backward_ad:
            outs = _differentiable(outputs)
            if check_batched_grad:
                for k, o in enumerate(outs):
                    check_batched(args, o, k)
            check_multiplied(outs, args)
            if check_undefined_grad:
                check_undefined(lambda: _differentiable(func(*args)), args)
    except Mismatch as e:
        if not raise_exception:
            return False
        wrong, cause = GradcheckError(str(e)), e.__cause__
    else:
        return True
    wrong.__context__ = cause  # the user's error, if one was raised
    raise wrong from cause


def _check_inputs(args: tuple[Any, ...]) -> None:
    checked: list[Any] = [t for t in args if needs_gradient(t)]
    for i, x in enumerate(args):
        if not needs_gradient(x):
            continue
        t: Any = x
        if t._v.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=3,
            )
        if any(s == 0 and n > 1 for s, n in zip(t.stride(), t.shape, strict=True)):
            raise RuntimeError(
                f"The {i}th input has a dimension with stride 0. gradcheck only supports inputs "
                "that are non-overlapping to be able to compute the numerical gradients "
                "correctly. You should call .contiguous on the input before passing it to "
                "gradcheck."
            )
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )


def _differentiable(out: Any) -> list[Any]:
    return [o for o in as_outputs(out) if needs_gradient(o)]


def _backward(
    func: Any, args: Any, outputs: Any, fast: bool, eps: float, atol: float, rtol: float,
    nondet_tol: float, dtypes: bool,
) -> None:  # fmt: skip
    for o in as_outputs(outputs):
        o.requires_grad  # noqa: B018 # or raise, of what is no tensor
    complex_outs = any(o._v.dtype.kind == "c" for o in as_outputs(outputs))
    which = [o._v.dtype.kind == "c" for o in _differentiable(outputs)]
    for part in ("imaginary", "real") if complex_outs else (None,):
        fn = func if part is None else split_outputs(func, part)
        got = outputs if part is None else fn(*args)
        prefix = _Prefix(part, "outputs", which)
        if fast:
            backward_fast(fn, args, got, prefix, eps, atol, rtol, nondet_tol, dtypes)
            continue
        found = compute_numerical(partial(fn, *args), args, eps)
        flags = [needs_gradient(o) for o in as_outputs(got)]
        if not any(flags):
            floats = [o._v.dtype.kind not in "biu" for o in as_outputs(got)]
            real = [list(compress(per_input, floats)) for per_input in found]
            if any((n != 0).any() for per_input in real for n in per_input):
                raise Mismatch("Numerical gradient for function expected to be zero")
            continue
        kept = [k for k, flag in enumerate(flags) if flag]
        for o, (out, k) in enumerate(zip(_differentiable(got), kept, strict=True)):
            rows = compute_analytical(args, out, nondet_tol, dtypes)
            for i, a in enumerate(rows):
                if not np.allclose(a, found[i][k], rtol, atol):
                    raise Mismatch(describe_mismatch(prefix(o), "", o, i, found[i][k], a))


def _forward(
    func: Any, args: Any, fast: bool, eps: float, atol: float, rtol: float, dtypes: bool
) -> None:
    which = [t._v.dtype.kind == "c" for t in args if needs_gradient(t)]
    for part in ("imaginary", "real") if any(which) else (None,):
        fn, given = (func, args) if part is None else split_inputs(func, args, part)
        got = fn(*given)
        prefix = _Prefix(part, "inputs", which)
        if fast:
            forward_fast(fn, given, got, prefix, eps, atol, rtol, dtypes)
            continue
        outs = as_outputs(got)
        if not any(needs_gradient(o) for o in outs):
            continue
        found = compute_numerical(partial(fn, *given), given, eps)
        made = compute_forward(fn, given, dtypes)
        kept = [k for k, o in enumerate(outs) if needs_gradient(o)]
        for o, k in enumerate(kept):
            for i, rows in enumerate(made):
                if not np.allclose(rows[k], found[i][k], rtol, atol):
                    mode = "computed with forward mode "
                    raise Mismatch(describe_mismatch(prefix(i), mode, o, i, found[i][k], rows[k]))


class _Prefix(NamedTuple):
    """Write the words that go before a mismatch, by the number of the output or the input."""

    part: str | None
    element: str
    which: list[bool]  # which of them are complex

    def __call__(self, k: int) -> str:
        if self.part is None or not self.which[k]:
            return ""
        return f"While considering the {self.part} part of complex {self.element} only, "


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Compare the gradients of `func`'s gradients with finite differences; see `gradcheck`.

    Args:
      grad_outputs: gradients of the outputs to start from; random ones by default.
      check_fwd_over_rev: check forward mode of the gradients.
      check_rev_over_rev: check backward mode of the gradients.
    """
    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError(
            "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
        )
    for name, asked in (
        ("check_undefined_grad", check_undefined_grad), ("check_batched_grad", check_batched_grad),
    ):  # fmt: skip
        if asked and not check_rev_over_rev:
            raise AssertionError(f"Setting {name}=True requires check_rev_over_rev to be True")
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        cts = []
        for o in _differentiable(func(*args)):
            drawn = rng.uniform(-1, 1, tuple(o.shape)) + 0j * rng.uniform(-1, 1, tuple(o.shape))
            if o._v.dtype.kind == "c":
                drawn = drawn + 1j * rng.uniform(-1, 1, tuple(o.shape))
            else:
                drawn = drawn.real
            cts.append(tensor(drawn, dtype=o.dtype).requires_grad_())
    else:
        cts = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    n = len(args)
    which = [needs_gradient(x) for x in args]
    which_cts = [needs_gradient(c) for c in cts]

    def gradients(*both: Any) -> tuple[Any, ...]:
        xs = [_again(x, w) for x, w in zip(both[:n], which, strict=True)]
        given = [_again(x, w) for x, w in zip(both[n:], which_cts, strict=True)]
        wanted = [x for x, w in zip(xs, which, strict=True) if w]
        found = grad(
            _differentiable(func(*xs)), wanted, given, create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients, (*args, *cts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
        check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev,
        fast_mode=fast_mode, masked=masked,
    )  # fmt: skip


def _again(x: Any, wanted: bool) -> Any:
    """Require a gradient again of a tensor that forward mode is given without."""
    return x.requires_grad_() if wanted and not x.requires_grad else x
