"""Moves between the default device and the CPU, and where results of ops on either lie."""

import io
from typing import Any

import jax
import numpy as np
import pytest
from helpers import numpy_references as ref
from helpers.on_device import FLOATS, PLATFORM, error, tolerance

import leafax
import leafax.nn.functional as F
from leafax import nn

CPU = jax.local_devices(backend="cpu")[0]
R = np.random.default_rng(0)


def default_device() -> Any:
    """Return the JAX device on which new data are made."""
    return jax.config.jax_default_device or jax.local_devices()[0]


def place(x: Any) -> Any:
    """Return the JAX device of a tensor."""
    (device,) = x.jax().devices()
    return device


def test_there_and_back() -> None:
    x = leafax.randn(4, 5)
    there = x.to("cpu")
    assert place(there) == CPU and place(x) == default_device()
    back = there.to(x.device)
    assert place(back) == default_device() and leafax.equal(back, x)
    assert leafax.equal(x.cpu().to(leafax.zeros(1).device, leafax.int64), x.long())


def test_what_moves_away_was_computed_where_data_are_made() -> None:
    w = leafax.randn(30, 30, requires_grad=True)
    leafax.synchronize()
    y = w @ w
    moved = y.to("cpu")
    assert place(moved.detach()) == CPU and place(y.detach()) == default_device()


def test_a_move_is_differentiated() -> None:
    x = leafax.randn(4, 5, requires_grad=True)
    y = x.to("cpu") * 2
    (y * y).sum().backward()
    assert place(y.detach()) == CPU and place(x.grad) == default_device()
    assert error(x.grad, 8 * x.detach().cpu().numpy()) < tolerance("float32")


@pytest.mark.parametrize("dtype", FLOATS)
def test_programs_run_where_their_data_are(dtype: str) -> None:
    """Also those of a CPU in a process whose default is another device."""
    image = R.standard_normal((2, 3, 20, 20)).astype(dtype)
    kernel = R.standard_normal((4, 3, 3, 3)).astype(dtype)
    x = leafax.tensor(image, device="cpu", requires_grad=True)
    y = F.conv2d(x, leafax.tensor(kernel, device="cpu"), padding=1)
    y.sum().backward()
    assert place(y.detach()) == place(x.grad) == CPU
    assert error(y, ref.conv(image, kernel, padding=1)) < max(1e-5, tolerance(dtype))
    a = leafax.tensor(R.standard_normal((30, 30)).astype(dtype), device="cpu")
    solved = leafax.linalg.solve(a, a @ a)
    assert place(solved) == CPU and error(solved, a.numpy()) < 1e-2


def test_results_of_many_ops_lie_where_their_data_do() -> None:
    for device in ("cpu", leafax.zeros(1).device):
        where = place(leafax.zeros(1, device=device))
        x = leafax.randn(6, 6, device=device)
        labels = leafax.arange(6, device=device)
        results = [
            x + 1, x @ x, x.sum(), x.sort(1).values, x.argmax(1), x[labels], x[x > 0], x > 0,
            leafax.cat([x, x]), x.softmax(0), leafax.zeros_like(x), leafax.randn_like(x), x.bool(),
            x.new_ones(3), F.dropout(x), F.cross_entropy(x, labels), leafax.linalg.inv(x),
            x.cumsum(0), leafax.where(x > 0, x, 0.0), x.nonzero(), leafax.stack([x, x]).mean(0),
            x.clone().mul_(2), leafax.multinomial(x.abs(), 2), leafax.fft.fft(x).real,
            x.half().float(), x.masked_select(x > 0), x.unique(), labels.bincount(), x.histc(4),
            *x.nonzero(as_tuple=True), leafax.unique_consecutive(labels), F.one_hot(labels),
            x.new_tensor([1.0]), leafax.bernoulli(x.sigmoid()), leafax.normal(x, 1.0),
            leafax.searchsorted(x[0].sort().values, x[1]), leafax.rand_like(x).uniform_(),
            x.clone().normal_(), leafax.empty_like(x), leafax.tril_indices(3, 3, device=device),
            leafax.repeat_interleave(labels, labels), labels.repeat_interleave(),
            leafax.combinations(labels), x.tril(),
            leafax.cdist(x, x), F.interpolate(x[None, None], scale_factor=2),
        ]  # fmt: skip
        wrong = {i: place(y) for i, y in enumerate(results) if place(y) != where}
        assert not wrong, where


def test_factories_make_data_where_they_are_told() -> None:
    makers = [
        lambda **k: leafax.zeros(3, **k), lambda **k: leafax.tensor([1.0], **k),
        lambda **k: leafax.arange(4, **k), lambda **k: leafax.randn(2, 2, **k),
        lambda **k: leafax.eye(3, **k), lambda **k: leafax.full((2,), 7, **k),
        lambda **k: leafax.linspace(0, 1, 5, **k), lambda **k: leafax.empty(2, **k),
        lambda **k: leafax.randint(0, 5, (3,), **k), lambda **k: leafax.randperm(6, **k),
        lambda **k: leafax.as_tensor(np.ones(2), **k),
    ]  # fmt: skip
    for make in makers:
        assert place(make(device="cpu")) == CPU
        assert place(make()) == default_device()
        with leafax.device("cpu"):
            assert place(make()) == CPU


def test_modules_move_with_their_optimizers_state() -> None:
    model = nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    optimizer = leafax.optim.Adam(model.parameters(), 1e-2)
    x = leafax.randn(8, 5)
    where = x.device
    for device in (where, "cpu", where):
        model.to(device)
        optimizer.load_state_dict(optimizer.state_dict())  # state goes where parameters are
        for _ in range(2):
            loss = model(x.to(device)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        expected = CPU if device == "cpu" else default_device()
        held = [*model.parameters(), *model.buffers()]
        held += [s["exp_avg"] for s in optimizer.state.values()]
        assert {place(v.detach()) for v in held} == {expected}
        assert place(loss.detach()) == expected


def test_a_file_is_loaded_where_it_is_told() -> None:
    file = io.BytesIO()
    leafax.save({"w": leafax.arange(6.0), "n": 3}, file)
    for given, expected in (("cpu", CPU), (None, default_device())):
        file.seek(0)
        loaded = leafax.load(file, map_location=given)
        assert place(loaded["w"]) == expected and loaded["w"].tolist() == [*range(6)]


def test_data_that_nobody_placed_mix_with_those_that_somebody_did() -> None:
    placed = leafax.ones(3, device="cpu")
    others = leafax.tensor([1.0, 2.0, 3.0]), leafax.from_numpy(np.ones(3)), leafax.tensor(2.0)
    for other in others:
        assert place(placed + other) == CPU


def test_data_on_two_devices_raise_pytorchs_words() -> None:
    other = next((d for d in jax.devices() if d != CPU), None)
    if other is None:
        pytest.skip("there is one device")
    name = "cuda" if PLATFORM == "cuda" else f"{other.platform}:{other.id}"
    a, b = leafax.ones(3, device="cpu:0"), leafax.ones(3, device=name)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device, but"):
        a + b
    scalar = leafax.tensor(2.0, device="cpu:0")
    assert place(b * scalar) == other, "a number on a CPU may mix"
