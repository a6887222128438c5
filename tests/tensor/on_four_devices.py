"""Tests of several devices; `test_several_devices.py` runs them in a process of their own."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np
import pytest

import leafax as torch
import leafax.nn.functional as F
from leafax import nn
from leafax._ops.autocast import casts
from leafax.adapters import shard_batch
from leafax.functional import lowerings
from leafax.functional.ops.nn import convolve
from leafax.functional.program import platform

GENERATOR = np.random.default_rng(0)
X, LABELS = GENERATOR.normal(size=(5, 6)), np.array([0, 1, 2, 0, 1])
WEIGHTS = [GENERATOR.normal(size=s) * 0.3 for s in ((8, 6), (8,), (8, 8), (8,), (3, 8), (3,))]


def index(t: Any) -> Any:
    return t.device.index


def at(n: int | None, *shape: int, **kwargs: Any) -> Any:
    return torch.ones(*(shape or (3,)), device=None if n is None else f"cpu:{n}", **kwargs)


def test_where_data_are() -> None:
    x = at(1)
    assert str(x.device) == "cpu:1" and repr(x) == "tensor([1., 1., 1.], device='cpu:1')"
    assert x.jax().devices() == {jax.devices()[1]} and x.jax().committed
    made = at(None), torch.from_numpy(X), torch.tensor([1.0]), torch.zeros(2) + 1
    assert {str(t.device) for t in made} == {"cpu"}
    assert not any(t.jax().committed for t in made)
    assert torch.tensor(jax.device_put(X, jax.devices()[2])).device == torch.device("cpu")
    assert index(torch.as_tensor(jax.device_put(X, jax.devices()[2]))) == 2
    kept = x + 1, x.clone(), x.view(3, 1), x.detach(), copy.deepcopy(x), x[1:], x.to(torch.float64)
    like = torch.zeros_like(x), x.new_ones(2), torch.randn_like(x), F.dropout(x), x.new_tensor([1])
    assert {index(t) for t in (*kept, *like)} == {1}
    assert index(torch.randn(2, device="cpu:3")) == index(torch.tensor([1], device="cpu:3")) == 3
    by_column = torch.tensor(X.T, device="cpu:1"), torch.from_numpy(X.T).to("cpu:1")
    assert {t.stride() for t in by_column} == {(1, 6)}
    placed = made[0].to("cpu")  # the device where it is: committed to it from now on
    assert placed is not made[0] and placed.to("cpu") is placed and placed.jax().committed
    made[0][0] = 5.0
    assert placed.tolist() != made[0].tolist()
    assert x.to("cpu:1") is x and x.to(x) is x and x.cpu().device == torch.device("cpu")
    with pytest.raises(RuntimeError, match="^no device of type cpu:9 is available to JAX"):
        at(9)


def test_the_uncommitted_follow() -> None:
    x, free = at(1), at(None)
    assert index(x * free) == index(free * x) == 1
    assert index(x * at(2)[0].cpu()) == 1  # a number on the CPU
    assert index(free.add_(at(2))) == 2
    assert index(x[torch.tensor([0, 1], device="cpu")]) == 1
    y = x.clone()
    y[1:] = at(2, 2) * 5  # is copied
    y[torch.tensor([0], device="cpu")] = 7.0
    assert y.tolist() == [7, 5, 5] and index(y) == 1 and index(y.copy_(at(3))) == 1


BOTH = "Expected all tensors to be on the same device, but "
MIXED: dict[str, tuple[Callable[[], Any], str]] = {
    "add": (lambda: at(1) + at(2), "found at least two devices, cpu:1 and cpu:2!"),
    "sub": (lambda: at(None).to("cpu") - at(1), "found at least two devices, cpu and cpu:1!"),
    "add_": (lambda: at(2).add_(at(1)), "found at least two devices, cpu:2 and cpu:1!"),
    "where": (
        lambda: torch.where(at(1) > 0, 1.0, at(0)), "found at least two devices, cpu:1 and cpu!"
    ),
    "mm": (
        lambda: at(1, 2, 2) @ at(2, 2, 2),
        "got mat2 is on cpu:2, different from other tensors on cpu:1 (when checking argument in "
        "method wrapper_CUDA_mm)",
    ),
    "cat": (
        lambda: torch.cat([at(1), at(2)]),
        "got tensors is on cpu:2, different from other tensors on cpu:1 (when checking argument in "
        "method wrapper_CUDA_cat)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MIXED)
def test_mixing(name: str) -> None:
    call, words = MIXED[name]
    with pytest.raises(RuntimeError) as error:
        call()
    assert str(error.value) == BOTH + words


def test_gradients_go_back() -> None:
    x = at(1, requires_grad=True)
    y = (x * 2).to("cpu:2")
    assert type(y.grad_fn).__name__ == "ToCopyBackward0" and index(y) == 2
    (y * at(2)).sum().backward()
    assert x.grad.tolist() == [2, 2, 2] and index(x.grad) == 1
    with pytest.raises(RuntimeError, match="located on device with index '2' to a tensor located "):
        x.grad = at(2)
    half = x.to("cpu:3", torch.float64)
    assert type(half.grad_fn).__name__ == "ToCopyBackward0" and half.dtype == torch.float64
    assert torch.autograd.gradcheck(
        lambda a: (a * a).to("cpu:2").exp().to("cpu:1"), (half.detach().requires_grad_(),)
    )
    along = torch.func.jvp(lambda a: (a * 2).to("cpu:2"), (at(1),), (at(1),))
    assert [index(t) for t in along] == [2, 2]


def test_moves_of_examples() -> None:
    x, free, second = at(1, 3, 2), at(None, 3, 2), at(2, 2)
    vmap, func = torch.func.vmap, torch.func

    def moved(a: Any) -> Any:
        there = a.to("cpu:2")
        assert index(there) == 2
        return (there + second).add_(1), a * 5

    for t, home in ((x, 1), (free, None)):
        found = vmap(moved)(t)
        assert [index(y) for y in found] == [2, home]
        assert [next(iter(y.jax().devices())).id for y in found] == [2, home or 0]
        assert [y.tolist() for y in found] == [[[3, 3]] * 3, [[5, 5]] * 3]
    inner = vmap(lambda a, k: vmap(lambda p: (p * k).to("cpu:3", torch.float64))(a), (1, None), 1)
    y = inner(x, at(1)[0] * 3)
    assert (index(y), y.dtype, y.tolist()) == (3, torch.float64, [[3, 3]] * 3)

    def cube(a: Any) -> Any:
        return (a.to("cpu:2") ** 3).to("cpu:1")

    for take in (func.jacrev, func.jacfwd):
        assert (index(take(cube)(x[0])), take(cube)(x[0]).tolist()) == (1, [[3, 0], [0, 3]])
    y = func.hessian(lambda a: cube(a).sum())(x[0])
    assert (index(y), y.tolist()) == (1, [[6, 0], [0, 6]])
    x.requires_grad_()
    y = vmap(lambda a: a.to("cpu:2").pow(2).sum())(x)
    y.sum().backward()
    assert (index(y), index(x.grad), x.grad.tolist()) == (2, 1, [[2, 2]] * 3)


def derivatives(here: str, there: str) -> list[Any]:
    x = torch.tensor([0.3, 0.5], dtype=torch.float64, device=here, requires_grad=True)
    y = (x.sin().to(there) * 2).exp().to(here).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    first.pow(2).sum().backward()
    h = F.layer_norm(F.softmax(x, -1).to(there), (2,))
    h.tolist()  # a cut, with arrays that backward needs on both
    (last,) = torch.autograd.grad(h.pow(3).sum(), x)
    return [*first.tolist(), *x.grad.tolist(), *last.tolist()]


def test_second_derivatives_and_cuts() -> None:
    np.testing.assert_allclose(derivatives("cpu:1", "cpu:2"), derivatives("cpu", "cpu"), rtol=1e-9)


def train(here: str, there: str, name: str, compiled: bool) -> tuple[list[float], list[Any]]:
    weights = [
        torch.tensor(w, device=there if k in (2, 3) else here).requires_grad_()
        for k, w in enumerate(WEIGHTS)
    ]
    optimizer = getattr(torch.optim, name)(weights, lr=0.05)
    x, labels = torch.tensor(X, device=here), torch.tensor(LABELS, device=here)

    def step() -> Any:
        h = torch.tanh(F.linear(x, weights[0], weights[1])).to(there)
        h = torch.tanh(F.linear(h, weights[2], weights[3])).to(here)
        loss = F.cross_entropy(F.linear(h, weights[4], weights[5]), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        return loss.detach()

    if compiled:
        step = torch.compile(step)
    return [step().item() for _ in range(6)], weights


@pytest.mark.parametrize(("name", "compiled"), [("SGD", False), ("AdamW", False), ("Adam", True)])
def test_training_on_two(name: str, compiled: bool) -> None:
    losses, weights = train("cpu", "cpu", name, compiled)
    torch.explain(clear=True)
    found, parts = train("cpu:1", "cpu:2", name, compiled)
    np.testing.assert_allclose(found, losses, rtol=1e-9)
    for a, b in zip(parts, weights, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9)
    assert [index(w) for w in parts] == [1, 1, 2, 2, 1, 1] == [index(w.grad) for w in parts]
    if not compiled:
        steps = [run for run in torch.explain() if run.reason == "optimizer.step()"]
        assert len(steps) == 6 and [run.how for run in steps[3:]] == ["cached"] * 3


def test_modules_and_optimizers_move() -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)).to("cpu:3")
    kept = [*model.parameters()]
    assert {index(t) for t in model.state_dict().values()} == {3}
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        model(torch.tensor(X, dtype=torch.float32)).sum().backward()  # follows the weights
        optimizer.step()
    state = optimizer.state_dict()
    assert {index(t) for held in state["state"].values() for t in held.values()} == {3}
    model.to("cpu:2").load_state_dict({k: v.to("cpu:1") for k, v in model.state_dict().items()})
    assert {index(t) for t in model.state_dict().values()} == {2}
    assert all(a is b for a, b in zip(model.parameters(), kept, strict=True))
    assert {index(p.grad) for p in kept} == {2}
    again = torch.optim.Adam(model.parameters())
    again.load_state_dict(state)
    again.step()
    assert {index(held["exp_avg"]) for held in again.state.values()} == {2}


def test_blocks() -> None:
    with torch.device("cpu:3"):
        made = torch.randn(3), nn.Linear(2, 2).weight, torch.tensor(1.0), torch.zeros_like(at(1))
        with torch.device("cpu:2"):
            inner = torch.zeros(2)
        drawn = F.dropout(torch.ones(4), 0.5)
    later = made[0] + 1  # runs outside
    assert [index(t) for t in (*made, inner, drawn, later)] == [3, 3, 3, 1, 2, 3, 3]
    assert later.jax().devices() == {jax.devices()[3]} and index(torch.zeros(1)) is None


@pytest.fixture
def second_by_default() -> Iterator[None]:
    torch.set_default_device("cpu:1")
    yield
    torch.set_default_device(None)


def test_another_default(second_by_default: None) -> None:
    assert index(torch.zeros(2)) == index(torch.from_numpy(X)) == index(torch.randn(2).exp()) == 1
    assert torch.get_default_device() == torch.device("cpu:1")
    image, kernel = GENERATOR.normal(size=(2, 3, 8, 8)), GENERATOR.normal(size=(4, 3, 3, 3))
    on_cpu = [torch.tensor(a, device="cpu", requires_grad=True) for a in (image, kernel)]
    here = [torch.tensor(a, requires_grad=True) for a in (image, kernel)]
    found = []
    for tensors, where in ((on_cpu, None), (here, 1)):
        y = F.conv2d(*tensors, padding=1)
        y.tolist()
        y.pow(2).sum().backward()
        assert [index(t) for t in (y, *[t.grad for t in tensors])] == [where] * 3
        found.append([y, *[t.grad for t in tensors]])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9)


@pytest.mark.parametrize("compiled", [False, True])
def test_convolutions_are_those_of_the_device(monkeypatch: Any, compiled: bool) -> None:
    """A program on the CPU is lowered as suits it, also where JAX's default is another platform."""
    by_products = []
    products = convolve._by_columns
    monkeypatch.setattr(
        convolve, "_by_columns", lambda *args: (by_products.append(1), products(*args))[1]
    )
    shape = 3 + compiled, 3, 4, 4
    lowerings(op_by_op="exact" if compiled else "auto")
    found = []
    for name, where in (("gpu", 1), ("gpu", None), ("cpu", None)):
        default = SimpleNamespace(platform=name)
        monkeypatch.setattr(platform, "where_data_are_made", lambda default=default: default)
        x, kernel = at(where, *shape, requires_grad=True), at(where, 2, 3, 3, 3)
        y = F.conv2d(x, kernel)
        y.pow(2).sum().backward()
        by_products.clear()  # of what shapes were inferred by
        sums = y.sum().item(), x.grad.sum().item()
        found.append((bool(by_products), *sums))
    lowerings(op_by_op="auto")
    assert [products for products, *_ in found] == [True, False, True]
    assert found[0][1:] == found[1][1:] == found[2][1:]


def test_autocast_is_of_a_type_of_devices(monkeypatch: Any) -> None:
    """Autocast for GPUs leaves what is on the CPU as it is."""
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(casts, "here", lambda: "cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        found = [(at(n, 2, 2) @ at(n, 2, 2)).dtype for n in (1, None)]
    assert found == [torch.float32, torch.bfloat16]


def test_copies_of_what_a_step_computes(second_by_default: None) -> None:
    """To copy a loss to the CPU neither cuts the step nor brings it there."""
    weights = [torch.tensor(w).requires_grad_() for w in WEIGHTS[:2]]
    optimizer, copies = torch.optim.SGD(weights, lr=0.1), []
    torch.explain(clear=True)
    for _ in range(5):
        loss = F.cross_entropy(F.linear(torch.tensor(X), *weights), torch.tensor(LABELS))
        copies.append(loss.detach().cpu())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert copies[-1].item() == loss.item() and (index(copies[-1]), index(loss)) == (None, 1)
    bad = torch.tensor([0, 1, 2, 0, 9])
    F.cross_entropy(F.linear(torch.tensor(X), *weights), bad).backward()
    before = weights[0].tolist()
    steps = list(torch.explain())
    optimizer.step()
    with pytest.raises(IndexError, match="Target 9 is out of bounds"):
        torch.synchronize()
    assert weights[0].tolist() == before
    assert [run.reason for run in steps] == ["optimizer.step()"] * 5
    assert steps[-1].how == "cached" and steps[-1].donated >= 2
    assert weights[0].jax().devices() == {jax.devices()[1]}


def test_files_and_uncommitted_results_of_a_device() -> None:
    file = io.BytesIO()
    torch.save({"x": at(1)}, file)
    file.seek(0)
    assert index(torch.load(file, map_location="cpu:2")["x"]) == 2
    x, free = at(1), at(None)
    double = free * 2
    (x + 1).tolist()  # computes `double` as well, where `x` is
    assert (double + at(2)).tolist() == [3, 3, 3]
    assert (double * 2).tolist() == [4, 4, 4]


@pytest.mark.parametrize("first", [0, 1])
def test_what_one_mesh_computed_goes_to_another(first: int) -> None:
    """Data on no device lie where an earlier program ran, and follow to the next."""
    meshes = [jax.make_mesh((2,), ("d",), devices=jax.devices()[k : k + 2]) for k in (0, 2)]
    ones = np.ones((2, 2), "float32")
    here, there = [
        shard_batch(meshes[k], jax.sharding.PartitionSpec("d"), ones) for k in (first, 1 - first)
    ]
    free = at(None, 2, 2)
    double = free * 2
    assert (here + double).tolist() == [[3, 3]] * 2  # computes `double`, and `free`, there
    assert (there + double).tolist() == [[3, 3]] * 2
    triple = double * 1.5
    assert (triple + at(3, 2, 2)).tolist() == [[4, 4]] * 2
    double = free * 2  # on the default device
    assert (there + double).tolist() == (here + double).tolist() == [[3, 3]] * 2
    assert (there * free).sum().item() == (here * free).sum().item() == 4
    with pytest.raises(RuntimeError, match="^Expected all tensors to be on the same device"):
        here + there
