"""`gradcheck` and `gradgradcheck`: gradients against finite differences."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .._creation import tensor
from .._handle import Handle
from .._modes import no_grad
from ._backward import grad
from ._context import zeros


class GradcheckError(RuntimeError):
    """What `gradcheck` raises when gradients are wrong."""


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
      check_backward_ad: False to check nothing. The other arguments are accepted for PyTorch's
        sake: backward mode is checked in full.

    Returns:
      True if the gradients agree.

    Raises:
      GradcheckError: if they do not, with both Jacobians.

    >>> import leafax
    >>> x = leafax.tensor([1.0, 2.0], dtype=leafax.float64, requires_grad=True)
    >>> leafax.autograd.gradcheck(lambda x: x.sin(), x)
    True
    """
    try:
        _check(func, inputs, eps, atol, rtol, check_backward_ad)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _check(func: Any, inputs: Any, eps: float, atol: float, rtol: float, backward: bool) -> None:
    args = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    checked = [(i, t) for i, t in enumerate(args) if _needs(t)]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of them "
            "have requires_grad=True."
        )
    for i, x in checked:
        t: Any = x
        if t._v.dtype.name not in ("float64", "complex128"):
            warnings.warn(
                f"Input #{i} requires gradient and is not a double precision floating point or "
                "complex. This check will likely fail if all the inputs are not of double "
                "precision floating point or complex. ",
                stacklevel=4,
            )
        if t._v.dtype.kind == "c":
            raise NotImplementedError(
                "gradcheck of complex inputs is not implemented in leafax: check the real and "
                "imaginary parts (torch.view_as_real) as inputs"
            )
    if not backward:
        return
    outputs = _outputs(func(*args))
    for o, out in enumerate(outputs):
        for k, (i, t) in enumerate(checked):
            numerical = _numerical(func, args, i, o, eps)
            analytical = _analytical(out, t)
            if not np.allclose(analytical, numerical, rtol, atol, equal_nan=True):
                raise GradcheckError(
                    f"Jacobian mismatch for output {o} with respect to input {k},\n"
                    f"numerical:{tensor(numerical)}\nanalytical:{tensor(analytical)}\n"
                )


def _needs(x: Any) -> bool:
    return isinstance(x, Handle) and bool(x.requires_grad)  # type: ignore[attr-defined]


def _outputs(out: Any) -> list[Any]:
    outs = out if isinstance(out, (tuple, list)) else (out,)
    kept = [o for o in outs if _needs(o)]
    if any(o._v.dtype.kind == "c" for o in kept):
        raise NotImplementedError("gradcheck of complex outputs is not implemented in leafax")
    return kept


def _numerical(func: Any, args: Any, i: int, o: int, eps: float) -> Any:
    """One row an element of input `i`, one column an element of output `o`."""
    base = args[i].detach().numpy().copy()
    rows = []
    for place in np.ndindex(base.shape):
        ends = []
        for sign in (1, -1):
            moved = base.copy()
            moved[place] += sign * eps
            full = list(args)
            full[i] = tensor(moved).requires_grad_()
            found = _outputs(func(*full))[o]
            with no_grad():
                ends.append(found.detach().numpy().reshape(-1).astype("float64"))
        rows.append((ends[0] - ends[1]) / (2 * eps))
    return np.stack(rows) if rows else np.zeros((0, 0))


def _analytical(out: Any, t: Any) -> Any:
    columns = []
    for element in out.reshape(-1).unbind(0) if out.numel() else ():
        (g,) = grad(element, t, retain_graph=True, allow_unused=True)
        columns.append(zeros(t._v) if g is None else g.detach())
    arrays = [c.numpy().reshape(-1) for c in columns]
    return np.stack(arrays, axis=1) if arrays else np.zeros((t.numel(), 0))


def gradgradcheck(
    func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6,
    atol: float = 1e-5, rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False, check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
    fast_mode: bool = False, masked: bool = False,
) -> bool:  # fmt: skip
    """Compare the gradients of `func`'s gradients with finite differences; see `gradcheck`."""
    args = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    outs = _outputs(func(*args))
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        drawn = [tensor(rng.normal(size=tuple(o.shape)), dtype=o.dtype) for o in outs]
        cts = [ct.requires_grad_() for ct in drawn]
    else:
        cts = list(grad_outputs) if isinstance(grad_outputs, (tuple, list)) else [grad_outputs]
    n = len(args)

    def gradients(*both: Any) -> tuple[Any, ...]:
        xs = both[:n]
        wanted = [x for x in xs if _needs(x)]
        found = grad(
            _outputs(func(*xs)), wanted, list(both[n:]), create_graph=True, allow_unused=True
        )
        return tuple(g for g in found if g is not None)

    return gradcheck(
        gradients, (*args, *cts), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception
    )
