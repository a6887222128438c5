"""Bessel, Airy and error functions and orthogonal polynomials against torch, at the borders too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import leafax

POINTS = np.concatenate([
    np.linspace(-30, 30, 61), np.linspace(-1.2, 1.2, 25), [-2.09, 2.09, 5.0, 8.0, 8.5, 1e-7, 1e4],
    [np.inf, -np.inf, np.nan],
])  # fmt: skip
FUNCTIONS = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 bessel_y1 erfcx modified_bessel_i0 modified_bessel_i1 "
    "modified_bessel_k0 modified_bessel_k1 scaled_modified_bessel_k0 scaled_modified_bessel_k1 "
    "spherical_bessel_j0"
).split()
POLYNOMIALS = [n for n in dir(torch.special) if "polynomial" in n]


@pytest.mark.parametrize("dtype, rtol, atol", [("float64", 1e-9, 1e-12), ("float32", 3e-5, 3e-6)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name, dtype, rtol, atol):
    x = POINTS.astype(dtype)
    want = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    got = getattr(leafax.special, name)(leafax.from_numpy(x)).numpy()
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype, rtol", [("float64", 1e-9), ("float32", 1e-5)])
@pytest.mark.parametrize("n", range(6))
def test_polygamma_at_poles_and_infinities(n, dtype, rtol):
    x = np.array([-2, -1, -0.5, 0, 0.3, 1, 7, 1e5, -3.3, np.inf, -np.inf, np.nan], dtype)
    want = torch.polygamma(n, torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(leafax.polygamma(n, leafax.from_numpy(x)).numpy(), want, rtol=rtol)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_polynomial(name):
    # For NaN torch's loops end before they begin and return what was in memory.
    x = POINTS[~np.isnan(POINTS)]
    degrees = np.array([-1, 0, 1, 2, 5, 9, 30, 129, 600])[:, None]
    grid = np.broadcast_to(degrees, (9, x.size)).astype(np.float64)
    args = (np.broadcast_to(x, grid.shape).copy(), grid.copy())
    want = getattr(torch.special, name)(*map(torch.from_numpy, args)).numpy()
    got = getattr(leafax.special, name)(*map(leafax.from_numpy, args)).numpy()
    finite = np.isfinite(want) & np.isfinite(got)
    np.testing.assert_array_equal(np.isfinite(want), np.isfinite(got))
    np.testing.assert_allclose(got[finite], want[finite], rtol=1e-7, atol=1e-9)


def test_erfcx_has_a_second_derivative():
    results = []
    for lib in (torch, leafax):
        x = lib.tensor([-1.0, 0.0, 0.5, 9.0], dtype=lib.float64, requires_grad=True)
        (first,) = lib.autograd.grad(lib.special.erfcx(x).sum(), x, create_graph=True)
        (second,) = lib.autograd.grad(first.sum(), x)
        results.append((first.detach().numpy(), second.numpy()))
    np.testing.assert_allclose(results[1], results[0], rtol=1e-9)


@pytest.mark.parametrize("name", ["airy_ai", "erfcx", "bessel_y0", "chebyshev_polynomial_t"])
@pytest.mark.parametrize("dtype", ["complex64", "float16"])
def test_refused_dtypes(name, dtype):
    degree = (2,) if "polynomial" in name else ()
    texts = []
    for lib in (torch, leafax):
        x = lib.ones(2, dtype=getattr(lib, dtype))
        with pytest.raises(NotImplementedError) as error:
            getattr(lib.special, name)(x, *degree)
        texts.append(str(error.value))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["nextafter", "heaviside", "floor_divide"])
@pytest.mark.parametrize("cut", [False, True])
def test_gradients_that_pytorch_has_and_has_not(name, cut):
    results = []
    for lib in (torch, leafax):
        x = lib.tensor([1.0, 0.5, 2.0], requires_grad=True)
        y = getattr(lib, name)(x, lib.tensor([0.5, 0.5, 3.0]))
        if cut:
            y.detach().numpy()
        try:
            y.sum().backward()
            results.append(x.grad.tolist())
        except RuntimeError as error:
            results.append(str(error))
    assert results[0] == results[1]


def test_in_place_refusals():
    for lib in (torch, leafax):
        with pytest.raises(RuntimeError) as error:
            lib.ones(2, dtype=lib.complex64).abs_()
        assert str(error.value) == "In-place abs is not supported for complex tensors."
        with pytest.raises(RuntimeError) as error:
            lib.ones(2).float_power_(2)
        assert str(error.value) == (
            "the base given to float_power_ has dtype Float but the operation's result requires "
            "dtype Double"
        )
