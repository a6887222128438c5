"""Clipping gradients, all parameters by one op.

A parameter that is frozen or has no gradient is outside: it adds nothing to the norm.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.dtypes import cast
from leafax.functional.program.op import TABLE, Op

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle, is_trained
from ..._dispatch.record import apply
from ..._ops.composites.multi_tensor_writes import update_many
from ..._ops.creation.from_data import tensor
from ..._ops.creation.to import by_device, put_beside

_norm = TABLE["linalg.vector_norm"].fn

NONFINITE = (
    "The total norm of order {} for gradients from `parameters` is non-finite, so it cannot be "
    "clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
    "`error_if_nonfinite=False`"
)


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Scale the gradients so that their norm, taken together, is at most `max_norm`.

    Args:
      parameters: tensors or one tensor. Those that are frozen (do not require grad) or have no
        gradient are left out.
      max_norm: an input of the step's program: another value compiles nothing.
      norm_type: the order of the norm; may be `inf`.
      error_if_nonfinite: raise if the norm is NaN or infinite. That observes it: the program is
        cut here.
      foreach: ignored.

    Returns:
      The norm before clipping, a tensor of no dimension.

    Raises:
      RuntimeError: see `error_if_nonfinite`.

    >>> import leafax
    >>> w = leafax.ones(4, requires_grad=True)
    >>> (3 * w).sum().backward()
    >>> clip_grad_norm_([w], max_norm=1.0)
    tensor(6.)
    >>> w.grad
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if not isinstance(parameters, Handle):
        generated = isinstance(parameters, types.GeneratorType)
        parameters = list(parameters)
        if generated and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.",
                stacklevel=2,
            )
    grads, order, most = _gradients(parameters), float(norm_type), float(max_norm)
    if not grads:
        return tensor(0.0)
    if error_if_nonfinite or len(by_device(grads)) > 1:
        total = get_total_norm(grads, order, error_if_nonfinite)
        _scale(grads, total, most)
        return total
    return update_many(_clip_op(order), grads, numbers=(most,))[0]


def clip_grad_norm(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Return the old name of `clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of "
        "`torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Any, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each gradient to `[-clip_value, clip_value]`.

    Args:
      parameters: tensors or one tensor; frozen ones and those without gradient are left out.
      clip_value: an input of the step's program.
      foreach: False is one write, as version counters tell; else there are two.

    Raises:
      RuntimeError: if there is no gradient.
      NotImplementedError: if one of them is complex.
    """
    most = float(clip_value)
    grads = _gradients(parameters)
    if not grads:
        raise RuntimeError(_NONE)
    if any(g.is_complex() for g in grads):
        raise NotImplementedError("clamp is not supported for complex types")
    for group in by_device(grads):
        update_many(_CLAMP, group, numbers=(most,), counts=1 if foreach is False else 2)


_NONE = (
    "Expected !nested_tensorlist[0].empty() to be true, but got false.  (Could this error message "
    "be improved?  If so, please report an enhancement request to PyTorch.)"
)


def get_total_norm(
    tensors: Any, norm_type: float = 2.0, error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Any:  # fmt: skip
    """Return the norm of all tensors taken together, a tensor of no dimension.

    Raises:
      RuntimeError: with `error_if_nonfinite`, if it is NaN or infinite; the program is cut.
    """
    tensors = [tensors] if isinstance(tensors, Handle) else list(tensors)
    order = float(norm_type)
    if not tensors:
        return tensor(0.0)
    with no_grad():
        norms = [apply(_norm_op(order), group) for group in by_device(tensors)]
        total = norms[0]
        if len(norms) > 1:
            total = apply(_norm_op(order), [put_beside(total, n) for n in norms])
    if error_if_nonfinite and not total.isfinite():
        raise RuntimeError(NONFINITE.format(order))
    return total


def clip_grads_with_norm_(
    parameters: Any, max_norm: float, total_norm: Any, foreach: bool | None = None
) -> None:
    """Scale the gradients by `max_norm / (total_norm + 1e-6)`, where that is less than 1."""
    grads, most = _gradients(parameters), float(max_norm)
    if grads:
        _scale(grads, total_norm, most)


def _scale(grads: Any, total: Any, most: float) -> None:
    for group in by_device(grads):
        update_many(_SCALE, group, put_beside(group[0], total), numbers=(most,))


def _gradients(parameters: Any) -> list[Any]:
    tensors: Iterable[Any] = [parameters] if isinstance(parameters, Handle) else parameters
    return [t._grad for t in tensors if is_trained(t)]


def _total(tensors: Any, order: float) -> Any:
    norms = [_norm(t, order) for t in tensors]
    dtype = functools.reduce(jnp.promote_types, [n.dtype for n in norms])
    return _norm(jnp.stack([n.astype(dtype) for n in norms]), order)


def _scaled(grads: Any, total: Any, most: Any) -> list[Any]:
    factor = jnp.minimum(most.astype(total.dtype) / (total + 1e-6), 1.0)
    factor = jnp.where(jnp.isnan(total), total, factor)
    return [cast(g * factor.astype(_within(g, factor)), g.dtype) for g in grads]


def _within(g: Any, factor: Any) -> Any:
    """Return a number's dtype beside a tensor's: the tensor's own, in PyTorch's promotion."""
    return g.dtype if jnp.issubdtype(g.dtype, jnp.inexact) else factor.dtype


@functools.cache
def _norm_op(order: float) -> Op:
    def total_norm(tensors: Any) -> Any:
        return _total(tensors, order)

    return Op(total_norm, namespace="nn.utils", differentiable=False)


@functools.cache
def _clip_op(order: float) -> Op:
    def clip_grad_norm_(grads: Any, numbers: Any) -> Any:
        total = _total(grads, order)
        return (*_scaled(grads, total, numbers[0]), total)

    return Op(clip_grad_norm_, namespace="nn.utils", differentiable=False)


def _scale_body(grads: Any, total: Any, numbers: Any) -> Any:
    return tuple(_scaled(grads, total, numbers[0]))


def _clamp_body(grads: Any, numbers: Any) -> Any:
    most = [numbers[0].astype(g.dtype) for g in grads]
    return tuple(jnp.clip(g, -m, m) for g, m in zip(grads, most, strict=True))


_SCALE = Op(_scale_body, name="clip_grads_with_norm_", namespace="nn.utils", differentiable=False)
_CLAMP = Op(_clamp_body, name="clip_grad_value_", namespace="nn.utils", differentiable=False)
