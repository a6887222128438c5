"""Short-time Fourier transforms against torch: values, gradients and words."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import leafax

SIGNAL = np.random.default_rng(0).normal(size=(2, 24)).astype(np.float32)
WINDOW = np.hanning(9)[1:].astype(np.float32)


def both(name, array, *args, **kwargs):
    """Answers (arrays) or errors (class and text) of the two libraries."""
    made = []
    for lib in (torch, leafax):
        x = lib.from_numpy(np.array(array))
        given = {
            k: lib.from_numpy(np.array(v)) if isinstance(v, np.ndarray) else v
            for k, v in kwargs.items()
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                made.append(np.asarray(getattr(lib, name)(x, *args, **given)))
            except Exception as error:
                made.append(f"{type(error).__name__}: {error}")
    return made


def agree(name, array, *args, **kwargs):
    want, got = both(name, array, *args, **kwargs)
    if isinstance(want, str):
        assert got == want
    else:
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"return_complex": False},
        {"center": False, "win_length": 5, "align_to_window": True},
        {"center": False, "win_length": 5, "window": WINDOW[:5], "hop_length": 3},
        {"normalized": True, "onesided": False, "pad_mode": "constant"},
        {"window": WINDOW.astype(np.float64)},
    ],
)
def test_stft(kwargs):
    agree("stft", SIGNAL, 8, **{"return_complex": True, **kwargs})


@pytest.mark.parametrize(
    "n_fft, kwargs",
    [
        (8, {}), (8, {"return_complex": True, "win_length": 12}),
        (8, {"return_complex": True, "hop_length": 0}),
        (8, {"return_complex": True, "window": WINDOW[:3]}),
        (8, {"return_complex": True, "align_to_window": True}),
        (30, {"return_complex": True, "center": False}), (60, {"return_complex": True}),
    ],
)  # fmt: skip
def test_stft_refuses_in_pytorch_words(n_fft, kwargs):
    want, got = both("stft", SIGNAL, n_fft, **kwargs)
    assert isinstance(want, str) and got == want


@pytest.mark.parametrize(
    "kwargs",
    [
        {}, {"length": 15}, {"length": 40}, {"normalized": True}, {"center": False},
        {"return_complex": True}, {"onesided": False}, {"hop_length": 9}, {"win_length": 9},
        {"window": WINDOW[:3]},
    ],
)  # fmt: skip
def test_istft(kwargs):
    spectra = both("stft", SIGNAL, 8, window=WINDOW, return_complex=True)[0]
    agree("istft", spectra, 8, **{"window": WINDOW, **kwargs})


def test_istft_inverts_stft_and_so_do_its_gradients():
    x = leafax.from_numpy(SIGNAL).requires_grad_()
    w = leafax.from_numpy(WINDOW)
    back = leafax.istft(leafax.stft(x, 8, window=w, return_complex=True), 8, window=w)
    np.testing.assert_allclose(back.detach().numpy(), SIGNAL, atol=1e-5)
    back.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.ones_like(SIGNAL), atol=1e-5)


@pytest.mark.parametrize("name", ["hfftn", "irfftn", "hfft2", "irfft2"])
def test_minus_one_is_the_size_that_nothing_said(name: str) -> None:
    for s in ((4, -1), (-1, -1)):
        found = []
        for t in (torch, leafax):
            x = t.arange(12, dtype=t.float64).view(3, 4) * (1 + 2j)
            found.append(getattr(t.fft, name)(x, s).tolist())
        np.testing.assert_allclose(found[1], found[0], atol=1e-9)


@pytest.mark.parametrize("name", ["fftshift", "ifftshift"])
@pytest.mark.parametrize("array, dim", [(2.0, None), (2.0, ()), ([[1.0, 2.0]], ()), (2.0, 0)])
def test_shifts_along_no_dim_are_refused(name, array, dim):
    answers = []
    for lib in (torch, leafax):
        with pytest.raises((RuntimeError, IndexError)) as found:
            getattr(lib.fft, name)(lib.tensor(array), dim)
        answers.append((found.type.__name__, str(found.value)))
    assert answers[0] == answers[1]
