"""Complex functions at zeros of either sign: on a branch cut the sign tells the side."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

import leafax
from leafax.functional import lower

FUNCTIONS = (
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "sin", "cos", "tan",
    "sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
)  # fmt: skip
NUMBERS = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -2.0)
PLANE = np.array([complex(a, b) for a in NUMBERS for b in NUMBERS])


def parts(z: np.ndarray) -> np.ndarray:
    return np.stack([z.real, z.imag])


@pytest.mark.quick(13)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_the_signs_of_their_zeros(name: str, dtype: str, compiled: bool) -> None:
    given = PLANE.astype(dtype)
    theirs = parts(getattr(torch, name)(torch.from_numpy(given)).numpy())
    x = leafax.from_numpy(given)
    y = getattr(leafax, name)(x)
    if compiled:
        with jax.enable_x64(True):
            ours = parts(np.asarray(jax.jit(lower(y, x).fn)(given)))
    else:
        ours = parts(y.numpy())
    np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == "complex64" else 1e-13)
    other = (np.signbit(ours) != np.signbit(theirs)) & ~np.isnan(theirs)
    assert not other.any(), PLANE[other.any(0)]


@pytest.mark.quick(5)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_off_the_axes(name: str) -> None:
    """The derivatives are written out for complex numbers."""
    given = np.array([0.3 + 0.4j, -0.7 + 0.2j, 1.5 - 0.6j, -2.1 - 1.3j])
    weights = np.array([1 + 2j, -0.5j, 0.3 - 1j, 2 + 0j])
    found = []
    for lib in (leafax, torch):
        x = lib.from_numpy(given).requires_grad_()
        first = lib.autograd.grad(
            getattr(lib, name)(x), x, lib.from_numpy(weights), create_graph=True
        )[0]
        second = lib.autograd.grad(first, x, lib.from_numpy(weights[::-1].copy()))[0]
        found.append([g.detach().resolve_conj().numpy() for g in (first, second)])
    np.testing.assert_allclose(*found, rtol=1e-11)
