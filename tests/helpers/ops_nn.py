"""Comparison of op bodies with live PyTorch, for the `nn_*` families."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import torch

TOLERANCE = {"float64": 1e-10, "float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}


def to_jax(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    x = x.detach()
    if x.dtype == torch.bfloat16:
        return jnp.asarray(x.float().numpy().astype(ml_dtypes.bfloat16))
    return jnp.asarray(x.numpy())


def to_numpy(x: Any) -> np.ndarray:
    if isinstance(x, torch.Tensor):
        x = x.detach()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    return np.asarray(x, np.float32) if str(x.dtype) == "bfloat16" else np.asarray(x)


def same(ours: Any, theirs: torch.Tensor, tolerance: float | None = None) -> None:
    """Equal shape, dtype and (nearly) values."""
    assert tuple(ours.shape) == tuple(theirs.shape)
    name = str(theirs.dtype).removeprefix("torch.")
    assert str(ours.dtype) == name
    assert not getattr(ours, "weak_type", False)
    limit = TOLERANCE.get(name, 0) if tolerance is None else tolerance
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=limit, atol=limit)


def compare(
    body: Callable[..., Any],
    reference: Callable[..., Any],
    tensors: Sequence[Any],
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    grad: bool = True,
    tolerance: float | None = None,
    grad_tolerance: float = 1e-8,
    **kwargs: Any,
) -> None:
    """Compare values in every dtype and gradients in float64."""
    with jax.enable_x64(True):
        for dtype in dtypes:
            made = [
                t.to(dtype) if isinstance(t, torch.Tensor) and t.is_floating_point() else t
                for t in tensors
            ]
            ours = jax.jit(lambda *a: body(*a, **kwargs), static_argnums=_static(made))(
                *map(to_jax, made)
            )
            theirs = reference(*made, **kwargs)
            for o, t in zip(_many(ours), _many(theirs), strict=True):
                same(o, t, tolerance)
        if grad:
            compare_gradients(body, reference, tensors, grad_tolerance, **kwargs)


def compare_gradients(
    body: Callable[..., Any],
    reference: Callable[..., Any],
    tensors: Sequence[Any],
    tolerance: float = 1e-8,
    **kwargs: Any,
) -> None:
    """Compare float64 gradients of the first result for a fixed cotangent."""
    places = [
        i for i, t in enumerate(tensors) if isinstance(t, torch.Tensor) and t.is_floating_point()
    ]
    made = [t.double() if i in places else t for i, t in enumerate(tensors)]
    leaves = [t.detach().clone().requires_grad_() if i in places else t for i, t in enumerate(made)]
    with jax.enable_x64(True):
        out = _many(reference(*leaves, **kwargs))[0]
        seed = np.linspace(0.5, 1.5, out.numel()).reshape(out.shape)
        theirs = torch.autograd.grad(
            out, [leaves[i] for i in places], torch.from_numpy(np.asarray(seed)),
            allow_unused=True,
        )  # fmt: skip

        def first(*values: Any) -> Any:
            full = [to_jax(t) for t in made]
            for i, v in zip(places, values, strict=True):
                full[i] = v
            return _many(body(*full, **kwargs))[0]

        def pulled(seed: Any, *values: Any) -> Any:
            value, pull = jax.vjp(first, *values)
            return value, pull(seed)

        # One compilation: op by op, each slice of its own start would be compiled by itself.
        values, ours = jax.jit(pulled)(jnp.asarray(seed), *(to_jax(made[i]) for i in places))
        np.testing.assert_allclose(values, to_numpy(out), rtol=1e-10, atol=1e-10)
        for place, o, t in zip(places, ours, theirs, strict=True):
            expected = np.zeros(made[place].shape) if t is None else t.numpy()
            np.testing.assert_allclose(o, expected, rtol=tolerance, atol=tolerance / 100)


def same_error(ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
    """Both raise the same class with the same text."""
    with pytest.raises(Exception) as expected:
        theirs()
    with jax.enable_x64(True), pytest.raises(Exception) as got:
        ours()
    assert str(got.value) == str(expected.value)
    assert type(got.value) is type(expected.value)


def faults(check: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[type, str]]:
    """The faults of a check that fire, as (class, message)."""
    found = []
    with jax.enable_x64(True):
        for fault in check(*map(to_jax, args), **{k: to_jax(v) for k, v in kwargs.items()}):
            bad = np.asarray(fault.bad)
            if bad.any():
                message = fault.message
                if fault.value is not None:
                    value = np.broadcast_to(np.asarray(fault.value), bad.shape)[bad].ravel()[0]
                    message = message.format(value=value)
                found.append((fault.error, message))
    return found


def _many(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _static(values: Sequence[Any]) -> tuple[int, ...]:
    return tuple(i for i, v in enumerate(values) if not isinstance(v, torch.Tensor))
