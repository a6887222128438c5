"""Tensors on NumPy data, which goes to the device with the first program that uses it."""

import jax
import numpy as np
import pytest
from jax import monitoring

import leafax
from leafax._core.host_transfer import TEMPORARY, snapshot


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
    assert isinstance(x.jax(), jax.Array)
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
    # Gaps are left out: PyTorch's tensor has the strides of the array, and so has what `numpy()`
    # gives.
    array = (np.arange(24 * 400).reshape(24, 400) % 2).astype(dtype)[::2, ::3].T
    x = leafax.from_numpy(array)
    assert x.numpy().dtype == array.dtype
    np.testing.assert_array_equal(x.numpy(), array)
    np.testing.assert_array_equal(x.reshape(-1).numpy(), array.reshape(-1))
    assert leafax.from_numpy(np.empty((0, 3))).shape == (0, 3)


def test_what_was_computed_in_the_call_is_taken_without_a_copy() -> None:
    assert TEMPORARY, "this Python cannot tell who holds an argument"
    made = []

    def compute() -> np.ndarray:
        array = np.ones(5000)
        made.append(array.__array_interface__["data"][0])
        return array

    x = leafax.from_numpy(compute())
    assert x._array.__array_interface__["data"][0] == made[0]
    assert (x + 1).sum().item() == 10000


def test_what_somebody_else_holds_is_copied() -> None:
    array = np.ones(5000)
    holders = [array, array[:], array.reshape(50, 100), [array][0], np.frombuffer(bytearray(40000))]
    tensors = [leafax.from_numpy(holder) for holder in holders]
    tensors += [leafax.from_numpy(array[:]), leafax.from_numpy(np.asarray(array)[::1])]
    tensors += list(map(leafax.from_numpy, holders[:2]))
    before = [x.sum().item() for x in [t * 1 for t in tensors]]
    array[:] = 7
    holders[-1][:] = 7
    assert [t.sum().item() for t in tensors] == before

    class Loader:
        buffer = np.ones(5000)

        def batch(self) -> leafax.Tensor:
            return leafax.from_numpy(self.buffer)

    first = Loader().batch()
    Loader.buffer[:] = 7
    assert first.sum().item() == 5000


def test_snapshots_of_one_size_are_each_their_own() -> None:
    a, b = np.arange(2000.0), np.arange(2000.0) + 1
    x, y = leafax.from_numpy(a), leafax.from_numpy(b)
    z = (x + y).sum()
    del x
    again = leafax.from_numpy(b * 2)
    assert z.item() == (a + b).sum()
    assert y.tolist() == b.tolist() and again.tolist() == (b * 2).tolist()


HOLDERS = {
    "array": lambda x: x,
    "slice": lambda x: x[5:],
    "view of a slice": lambda x: x[5:].view(np.int32)[1::2],
    "memoryview": lambda x: memoryview(x),
    "array of a memoryview": lambda x: np.asarray(memoryview(x))[3:],
    "iterator": lambda x: np.nditer(x),
    "dlpack": lambda x: np.from_dlpack(x),
    "jax": lambda x: jax.device_put(x),
    "view of a jax array": lambda x: np.asarray(jax.device_put(x))[5:],
    "argument of a program": lambda x: jax.jit(lambda x: x)(x),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_memory_of_a_snapshot_is_taken_again_only_once_nobody_sees_it(holder: str) -> None:
    def content(held: object) -> list[float]:
        array = held.operands[0] if isinstance(held, np.nditer) else np.asarray(held)
        return list(array.reshape(-1).tolist())

    held = HOLDERS[holder](snapshot(np.arange(2000.0)))
    before = content(held)
    for k in range(8):
        assert snapshot(np.full(2000, float(k)))[0] == k
    assert content(held) == before


def test_memory_of_snapshots_is_used_again() -> None:
    def step(k: int) -> int:
        x = leafax.from_numpy(np.full(2000, float(k))[:])
        place = x._array.__array_interface__["data"][0]
        assert x.sum().item() == 2000.0 * k
        return int(place)

    # Three are kept; one more where the runtime lets go of one a moment late.
    assert len({step(k) for k in range(20)}) <= 6


def test_data_of_a_new_shape_compiles_nothing() -> None:
    """To bring it to the device `jnp.array` compiled a program of its own, 7 to 20 ms."""
    events: list[str] = []
    monitoring.register_event_duration_secs_listener(lambda name, _, **__: events.append(name))
    for size in (1237, 1238):
        assert leafax.from_numpy(np.zeros(size)).jax().shape == (size,)
    assert not [name for name in events if "backend_compile" in name]
