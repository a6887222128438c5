"""Tensors on NumPy data, which goes to the device with the first program that uses it."""

import numpy as np
import pytest

import leafax


@pytest.mark.parametrize("n", [3, 100_000])
def test_later_writes_to_the_array_are_not_seen(n: int) -> None:
    array = np.ones(n, np.float32)
    x = leafax.from_numpy(array)
    y = x * 2
    array[:] = 7
    assert x.sum().item() == n
    assert y.sum().item() == 2 * n


@pytest.mark.parametrize("n", [3, 100_000])
def test_a_tensor_is_used_by_several_programs(n: int) -> None:
    x = leafax.from_numpy(np.arange(n, dtype=np.float64))
    for _ in range(3):
        assert (x + 1).sum().item() == n * (n + 1) / 2
    assert isinstance(x.jax(), leafax._run.jax.Array)
    np.testing.assert_array_equal(x.numpy(), np.arange(n))


def test_what_numpy_returns_is_the_callers_own() -> None:
    x = leafax.from_numpy(np.zeros(5000))
    x.numpy()[:] = 1
    assert x.sum().item() == 0
    y = leafax.tensor(np.zeros(5000))
    (y + 1).sum().item()
    y.numpy()[:] = 1
    assert y.sum().item() == 0


@pytest.mark.parametrize("n", [3, 100_000])
def test_writes_and_views_of_a_tensor_on_numpy_data(n: int) -> None:
    array = np.zeros(n, np.float32)
    x = leafax.from_numpy(array)
    d, v = x.detach(), x[1:]
    x.add_(1)
    assert (d.sum().item(), v.sum().item()) == (n, n - 1)
    v.mul_(2)
    assert (x.sum().item(), d.sum().item()) == (2 * n - 1, 2 * n - 1)
    assert not array.any()


def test_a_parameter_on_numpy_data_compiles_once_and_is_updated() -> None:
    data = np.ones(2000, np.float32)
    w = leafax.from_numpy(data).requires_grad_()
    optimizer = leafax.optim.SGD([w], lr=0.5)
    leafax.explain(clear=True)
    for step in range(1, 4):
        optimizer.zero_grad()
        w.sum().backward()
        optimizer.step()
        assert w.sum().item() == 2000 * (1 - 0.5 * step)
    assert leafax.explain().compiles <= 2  # the step, and the sum
    assert data.all()


@pytest.mark.parametrize("dtype", ["float16", "int8", "uint8", "bool", "complex64", "int64"])
def test_dtypes_and_layouts_are_kept(dtype: str) -> None:
    array = (np.arange(24 * 400).reshape(24, 400) % 2).astype(dtype)[::2, ::-3].T
    x = leafax.from_numpy(array)
    assert x.numpy().dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(x.reshape(-1).numpy(), array.reshape(-1))
    assert leafax.from_numpy(np.empty((0, 3))).shape == (0, 3)
