"""Ops by family, and their gradients, against NumPy in float64; a family is one program."""

from typing import Any

import numpy as np
import pytest
from helpers import numpy_references as ref
from helpers.device_ops import FAMILIES, Case
from helpers.on_device import FLOATS, PLATFORM, error, to_numpy, tolerance

import leafax
import leafax.nn.functional as F

pytestmark = pytest.mark.usefixtures("all_compiled")
STEP = 1e-6


def tensors(case: Case, dtype: str, grad: bool = False) -> list[Any]:
    """Return the inputs as tensors; floating point ones in a dtype."""
    made = []
    for x in case.inputs:
        if x.dtype.kind == "f":
            x = leafax.tensor(x.astype(dtype)).requires_grad_(grad)
        else:
            x = leafax.tensor(x)
        made.append(x)
    return made


def errors(cases: dict[str, Case], found: dict[str, Any], dtype: str) -> dict[str, float]:
    """Return those of the results that are too far from NumPy's."""
    wrong = {}
    for name, case in cases.items():
        expected = case.reference(*(x.astype(dtype).astype(x.dtype) if x.dtype.kind == "f" else x
                                    for x in case.inputs))  # fmt: skip
        if not (e := error(found[name], expected)) <= tolerance(dtype, case.convolution):
            wrong[name] = e
    return wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_values(family: str) -> None:
    cases = FAMILIES[family]
    found = {name: case.ours(*tensors(case, "float32")) for name, case in cases.items()}
    assert not errors(cases, found, "float32")


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients(family: str) -> None:
    """Along a random direction, the gradient is what NumPy finds in float64 by differences."""
    dtype, rng = FLOATS[-1], np.random.default_rng(0)
    cases = {name: case for name, case in FAMILIES[family].items() if case.smooth}
    given = {name: tensors(case, dtype, grad=True) for name, case in cases.items()}
    weights, found = {}, {}
    total: Any = 0.0
    for name, case in cases.items():
        y = found[name] = case.ours(*given[name])
        weights[name] = rng.standard_normal(tuple(y.shape))
        total = total + (y * leafax.tensor(weights[name].astype(dtype))).sum()
    total.backward()
    assert not errors(cases, found, dtype)
    wrong = {}
    for name, case in cases.items():
        slopes = [rng.standard_normal(x.shape) if x.dtype.kind == "f" else 0 for x in case.inputs]
        ahead, behind = (
            (case.reference(*(x + way * STEP * s if x.dtype.kind == "f" else x
                              for x, s in zip(case.inputs, slopes, strict=True)))
             * weights[name]).sum()
            for way in (1, -1)
        )  # fmt: skip
        expected = (ahead - behind) / (2 * STEP)
        pairs = zip(given[name], slopes, strict=True)
        slope = sum((to_numpy(x.grad) * s).sum() for x, s in pairs if x.requires_grad)
        most = 1e-6 if dtype == "float64" else max(1e-3, 10 * tolerance(dtype, case.convolution))
        if not abs(slope - expected) <= most * max(1, abs(expected)):
            wrong[name] = (slope, expected)
    assert not wrong


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype: str) -> None:
    rng, kind = np.random.default_rng(1), getattr(leafax, dtype)
    a, b = (leafax.tensor(rng.standard_normal((6, 20)).astype("float32")).to(kind) for _ in "ab")
    image, kernel = (
        leafax.tensor(rng.standard_normal(s).astype("float32")).to(kind)
        for s in ((2, 3, 6, 6), (4, 3, 3, 3))
    )
    found = [a + b, a * b, a.exp(), a @ b.T, a.softmax(1), a.sum(), F.layer_norm(a, (20,)),
             F.conv2d(image, kernel)]  # fmt: skip
    x, y, i, k = (to_numpy(v).astype("float64") for v in (a, b, image, kernel))
    expected = [x + y, x * y, np.exp(x), x @ y.T, ref.softmax(x), x.sum(),
                ref.normalize(x, (1,)), ref.conv(i, k)]  # fmt: skip
    errors = [error(*pair) for pair in zip(found, expected, strict=True)]
    assert all(e <= tolerance(dtype) for e in errors), errors
    assert all(v.dtype == kind for v in found)


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_integers(dtype: str) -> None:
    rng = np.random.default_rng(2)
    a, b = (rng.integers(1, 12, (4, 9)).astype(dtype) for _ in "ab")
    image = rng.integers(0, 3, (2, 4, 5, 5)).astype(dtype)
    kernel = rng.integers(0, 2, (6, 2, 2, 2)).astype(dtype)
    x, y, i, k = map(leafax.tensor, (a, b, image, kernel))
    found = [x + y, x - y, x * y, x // y, x % y, x & y, x ^ y, x << 1, x.sum(), x.cumsum(1),
             x.max(), x.sort(1).values, x == y, x / y, x @ y.T,
             F.conv2d(i, k, groups=2)]  # fmt: skip
    expected = [a + b, a - b, a * b, a // b, a % b, a & b, a ^ b, a << 1, a.sum(dtype="int64"),
                a.cumsum(1, dtype="int64"), a.max(), np.sort(a, 1), a == b, a / b, a @ b.T,
                ref.conv(image, kernel, groups=2)]  # fmt: skip
    for one, other in zip(found, expected, strict=True):
        assert error(one, other) <= tolerance("float32")
        assert one.is_floating_point() or to_numpy(one).dtype == other.dtype


@pytest.mark.skipif(PLATFORM == "tpu", reason="a TPU has no float64, nor complex numbers of it")
def test_complex_numbers_and_spectra() -> None:
    rng = np.random.default_rng(3)
    a = rng.standard_normal((4, 10)) + 1j * rng.standard_normal((4, 10))
    x = leafax.tensor(a)
    real = x.real
    found = [x * x.conj(), x.abs(), x.exp(), x @ x.mH, x.angle(), leafax.fft.fft(x),
             leafax.fft.ifft(x), leafax.fft.fft2(x), leafax.fft.rfft(real),
             leafax.fft.irfft(leafax.fft.rfft(real)), leafax.stft(real, 8, window=leafax.ones(
                 8, dtype=leafax.float64), return_complex=True).shape]  # fmt: skip
    expected = [a * a.conj(), abs(a), np.exp(a), a @ a.conj().T, np.angle(a), np.fft.fft(a),
                np.fft.ifft(a), np.fft.fft2(a), np.fft.rfft(a.real), a.real]  # fmt: skip
    errors = [error(*pair) for pair in zip(found[:-1], expected, strict=True)]
    assert max(errors) <= tolerance("float64"), errors
    assert found[-1] == (4, 5, 6)


def test_random_numbers() -> None:
    leafax.manual_seed(7)
    normal, uniform = leafax.randn(20_000), leafax.rand(20_000)
    whole, order = leafax.randint(3, 9, (5_000,)), leafax.randperm(500)
    coins = leafax.bernoulli(leafax.full((20_000,), 0.3))
    dropped = F.dropout(leafax.ones(20_000), 0.25)
    leafax.manual_seed(7)
    assert leafax.equal(normal, leafax.randn(20_000)) and leafax.equal(uniform, leafax.rand(20_000))
    assert abs(float(normal.mean())) < 0.03 and abs(float(normal.std()) - 1) < 0.03
    assert 0 <= float(uniform.min()) and float(uniform.max()) < 1
    assert sorted(set(whole.tolist())) == [3, 4, 5, 6, 7, 8]
    assert sorted(order.tolist()) == [*range(500)]
    assert abs(float(coins.mean()) - 0.3) < 0.02
    assert abs(float((dropped > 0).float().mean()) - 0.75) < 0.02
    own = leafax.Generator().manual_seed(5)
    again = leafax.Generator().manual_seed(5)
    assert leafax.equal(leafax.randn(9, generator=own), leafax.randn(9, generator=again))


def test_lstm() -> None:
    rng, layer = np.random.default_rng(4), leafax.nn.LSTM(3, 5)
    x = rng.standard_normal((6, 2, 3)).astype("float32")
    w_ih, w_hh, b_ih, b_hh = (to_numpy(p).astype("float64") for p in layer.parameters())
    expected = ref.lstm(x.astype("float64"), w_ih, w_hh, b_ih + b_hh)
    most = tolerance("float32", convolution=True)  # recurrent layers have TF32, too
    assert error(layer(leafax.tensor(x))[0], expected) <= most


def test_errors_that_the_data_tell() -> None:
    x = leafax.randn(5, requires_grad=True)
    with pytest.raises(IndexError, match="index 7 is out of bounds for dimension 0 with size 5"):
        x[leafax.tensor([7])].item()
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        float(F.cross_entropy(leafax.randn(4, 3), leafax.tensor([0, 1, 2, 5])))
    assert float(x.detach().sum()) == pytest.approx(sum(x.tolist()), abs=1e-5)
