"""Old functions of `torch.autograd.gradcheck` that compute Jacobians."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from ..._core.handle import Handle
from ..._ops.creation.from_data import tensor
from .jacobians import (
    as_outputs,
    compute_numerical,
    compute_vjp_rows,
    needs_gradient,
    stack_jacobians,
)


def _deprecated(name: str, grad_out: float) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are "
        "deprecating it and it will be removed in a future version of PyTorch. If you have a "
        "specific use for this or feature request for this to be a stable API, please file us an "
        "issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _tensors(x: Any) -> Iterator[Any]:
    if isinstance(x, Handle):
        yield x
    elif isinstance(x, (tuple, list)):
        for part in x:
            yield from _tensors(part)


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Any, ...]:  # fmt: skip
    """Compute Jacobians of the first output of `fn` by differences, a target each. Deprecated.

    Args:
      fn: a function of the tuple of inputs.
      inputs: a tensor or a tuple of tensors.
      target: what is moved, if that is not all inputs that require grad: a tensor or several.
      eps: the step of the differences.
      grad_out: 1.0.

    Returns:
      For each target a tensor with a row for each of its elements and a column for each element
      of the output.

    Raises:
      ValueError: for another `grad_out`, or complex outputs.

    >>> import leafax
    >>> from leafax.autograd.gradcheck import get_numerical_jacobian
    >>> x = leafax.tensor([1.0, 2.0], dtype=leafax.float64, requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"):  # PyTorch deprecates it
    ...     found = get_numerical_jacobian(lambda args: args[0] * 3, (x,))
    >>> found[0].round(decimals=3)
    tensor([[3., 0.],
            [0., 3.]], dtype=torch.float64)
    """
    _deprecated("get_numerical_jacobian", grad_out)
    args = tuple(as_outputs(inputs))
    if any(o.is_complex() for o in as_outputs(fn(args))):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    targets = list(_tensors(args if target is None else target))
    return tuple(tensor(found[0]) for found in compute_numerical(lambda: fn(args), targets, eps))


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any], input_idx: int, inputs: Any, outputs: Any, eps: float,
    input: Any = None, is_forward_ad: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Compute the Jacobians of all outputs of `fn` by differences for one input. Deprecated."""
    moved = inputs[input_idx] if input is None else input
    if not needs_gradient(moved):
        raise AssertionError("Expected input to have requires_grad=True")
    (found,) = compute_numerical(lambda: fn(*as_outputs(inputs)), [moved], eps)
    return tuple(tensor(n) for n in found)


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[Any, bool, bool, bool]:
    """Compute the Jacobian of a real output by backward mode for each input. Deprecated.

    Returns:
      The Jacobians; whether two backwards agree; whether the gradients have the inputs' sizes;
      whether they have their dtypes.

    Raises:
      ValueError: for a `grad_out` that is not 1.0, or a complex output.
    """
    _deprecated("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    args = list(_tensors(inputs))
    found, *flags = stack_jacobians(args, partial(compute_vjp_rows, args, output), nondet_tol)
    reentrant, sizes, types = flags
    return tuple(tensor(a) for a in found), reentrant, sizes, types
