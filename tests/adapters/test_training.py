"""Fine-tuning as people do it: groups by path, thawing mid-run, accumulation, averages."""

from __future__ import annotations

import gc
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch as reference
from flax import linen as nn
from flax import nnx

import leafax as torch
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models
from leafax.optim import swa_utils

RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 5)).astype("float32")
Y = RNG.normal(size=(8, 2)).astype("float32")


class Net(nn.Module):
    """Two layers and a head; BatchNorm has statistics."""

    @nn.compact
    def __call__(self, x: Any, train: bool = False) -> Any:
        x = nn.tanh(nn.Dense(6, name="first")(x))
        x = nn.BatchNorm(not train, name="bn")(x)
        x = nn.tanh(nn.Dense(6, name="second")(x))
        return nn.Dense(2, name="head")(x)


def net() -> Any:
    return linen.Model(Net(), Net().init(jax.random.key(0), X)).eval()


def loss_of(model: Any, rows: Any = slice(None)) -> Any:
    out = model(torch.from_numpy(X[rows]))
    return ((out - torch.from_numpy(Y[rows])) ** 2).mean()


def run(model: Any, optimizer: Any, steps: int, **at: Any) -> list[float]:
    """Losses; `at` holds what to do before a step: `step_10=lambda: ...`."""
    losses = []
    for i in range(steps):
        at.get(f"step_{i}", lambda: None)()
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# ---------------------------------------------------------------- a reference by hand


def by_hand(tx: Any, steps: int, trains: Any, clip: float | None = None) -> list[float]:
    """Every parameter with an optax state of its own, carried while it is frozen."""
    variables = Net().init(jax.random.key(0), X)
    params = {f"{a}.{b}": x for a, part in variables["params"].items() for b, x in part.items()}
    states: dict[str, Any] = {}

    def loss(some: Any) -> Any:
        tree: Any = {}
        for name, x in (params | some).items():
            a, b = name.split(".")
            tree.setdefault(a, {})[b] = x
        out = Net().apply({**variables, "params": tree}, X)
        return ((out - Y) ** 2).mean()

    losses = []
    for i in range(steps):
        names = [n for n in params if trains(i, n)]
        value, gradients = jax.jit(jax.value_and_grad(loss))({n: params[n] for n in names})
        if clip is not None:
            norm = optax.tree.norm(gradients)
            gradients = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / norm), gradients)  # noqa: B023
        for n in names:
            state = states[n] if n in states else tx.init(params[n])
            updates, states[n] = tx.update(gradients[n], state, params[n])
            params[n] = params[n] + updates
        losses.append(float(value))
    return losses


def thawed_at_10(i: int, name: str) -> bool:
    return name.startswith("head") or (i >= 10 and name.startswith("second"))


OPTIMIZERS: dict[str, Any] = {
    "AdamW": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "Optax": lambda p: torch.optim.Optax(p, optax.adamw(1e-2, weight_decay=0.1)),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_thawing_at_10_of_20_equals_a_reference_that_carries_the_state(name: str) -> None:
    model = net().freeze().unfreeze("head")
    losses = run(
        model, OPTIMIZERS[name](model.parameters()), 20, step_10=lambda: model.unfreeze("second")
    )
    wanted = by_hand(optax.adamw(1e-2, weight_decay=0.1), 20, thawed_at_10)
    np.testing.assert_allclose(losses, wanted, rtol=2e-5)


@pytest.mark.exhaustive
def test_a_norm_inside_the_transformation_is_of_all_that_train() -> None:
    model = net().freeze().unfreeze("head")
    tx = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2))
    optimizer = torch.optim.Optax(model.parameters(), tx)
    losses = run(model, optimizer, 20, step_10=lambda: model.unfreeze("second"))
    wanted = by_hand(optax.adam(1e-2), 20, thawed_at_10, clip=0.1)
    np.testing.assert_allclose(losses, wanted, rtol=2e-5)


def refrozen(i: int, name: str) -> bool:
    return name.startswith("head") or (name.startswith("second") and not 4 <= i < 8)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_what_is_frozen_for_a_while_keeps_its_state(name: str) -> None:
    model = net().freeze("first", "bn")
    losses = run(
        model, OPTIMIZERS[name](model.parameters()), 12,
        step_4=lambda: model.freeze("second"), step_8=lambda: model.unfreeze("second"),
    )  # fmt: skip
    np.testing.assert_allclose(
        losses, by_hand(optax.adamw(1e-2, weight_decay=0.1), 12, refrozen), rtol=2e-5
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_dropped_state_starts_fresh(name: str) -> None:
    def steps(drop: bool) -> tuple[list[float], Any]:
        model = net().freeze("first", "bn")
        optimizer = OPTIMIZERS[name](model.parameters())
        held = {}

        def freeze() -> None:
            model.freeze("second")
            if drop:
                optimizer.drop_state()
            held["numbers"] = numbers(optimizer)

        return run(
            model, optimizer, 10, step_4=freeze, step_6=lambda: model.unfreeze("second")
        ), held["numbers"]

    kept, dropped = steps(False), steps(True)
    assert kept[0][:7] == dropped[0][:7] and kept[0][7:] != dropped[0][7:]
    assert dropped[1] < kept[1] / 2, "the state is gone while they are frozen"


def numbers(optimizer: Any) -> int:
    """Count the numbers in the optimizer's state."""
    state = optimizer.state_dict()["state"]
    tensors = [t for h in state.values() for t in (h.values() if isinstance(h, dict) else [h])]
    return sum(t.numel() for t in tensors)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_change_compiles_once_and_never_again(name: str) -> None:
    model = net().freeze().unfreeze("head")
    optimizer = OPTIMIZERS[name](model.parameters())
    run(model, optimizer, 3)

    def how() -> list[str]:
        run(model, optimizer, 2)
        steps = [r for r in torch.explain() if r.reason == "optimizer.step()"]
        return [r.how for r in steps[-2:]]

    assert how() == ["cached", "cached"]
    model.unfreeze("second")
    assert how()[1] == "cached", "the first step after a change compiles, unless it is known"
    model.freeze("second")
    optimizer.drop_state()
    assert how() == ["cached", "cached"]
    model.unfreeze("second")
    assert how() == ["cached", "cached"]


def test_states_of_thawed_parameters_resume() -> None:
    def begin() -> tuple[Any, Any]:
        model = net().freeze().unfreeze("head")
        optimizer = OPTIMIZERS["Optax"](model.parameters())
        return model, optimizer

    model, optimizer = begin()
    whole = run(model, optimizer, 12, step_4=lambda: model.unfreeze("second"))
    model, optimizer = begin()
    run(model, optimizer, 8, step_4=lambda: model.unfreeze("second"))
    again, other = begin()
    again.unfreeze("second").load_state_dict(model.state_dict())
    other.load_state_dict(optimizer.state_dict())
    assert run(again, other, 4) == whole[8:]
    state = optimizer.state_dict()
    state["state"].pop("[0].count")
    with pytest.raises(ValueError, match=re.escape("the state dict lacks '[0].count' of this tr")):
        other.load_state_dict(state)


# ---------------------------------------------------------------- groups


def test_groups_have_their_own_rate_decay_and_schedule() -> None:
    model = net()
    groups = model.groups(
        {
            ("**.bias", "bn"): {"weight_decay": 0.0},
            "head": {"lr": 1e-2},
            re.compile("^second"): {"lr": 1e-3, "weight_decay": 0.5},
        },
        lr=1e-4,
    )
    assert [sorted(n for n, _ in g["params"]) for g in groups] == [
        ["bn.bias", "bn.scale", "first.bias", "head.bias", "second.bias"],
        ["head.kernel"], ["second.kernel"], ["first.kernel"],
    ]  # fmt: skip
    optimizer = torch.optim.AdamW(groups, lr=1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, [lambda e: 1.0, lambda e: 0.1**e, lambda e: 1.0, lambda e: 1.0]
    )
    run(model, optimizer, 1)
    schedule.step()
    rates = [(g["lr"], g["weight_decay"]) for g in optimizer.param_groups]
    assert rates == [(1e-3, 0.0), (pytest.approx(1e-3), 0.1), (1e-3, 0.5), (1e-4, 0.1)]


def test_groups_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="pattern `haed` matches none .* the nearest are `head`"):
        net().groups({"haed": {}})
    message = "every parameter that `head, [.]bias` selects is in an earlier group already: put the"
    with pytest.raises(ValueError, match=re.escape(message)):
        net().groups({"**": {}, ("head", re.compile("[.]bias")): {}})


def test_groups_of_optax_have_rates_and_transformations() -> None:
    """Each group equals an optimizer of its own."""
    model = net().freeze("first", "bn")
    groups = model.groups(
        {"head": {"lr": 0.5}, "second": {"transform": optax.sgd(0.1, momentum=0.9)}}
    )
    optimizer = torch.optim.Optax(groups, optax.adam(1e-2))
    losses = run(model, optimizer, 6)
    model = net().freeze("first", "bn")
    head = torch.optim.Adam(model.head.parameters(), lr=0.5e-2)
    second = torch.optim.SGD(model.second.parameters(), lr=0.1, momentum=0.9)
    wanted = []
    for _ in range(6):
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        head.step()
        second.step()
        wanted.append(loss.item())
    np.testing.assert_allclose(losses, wanted, rtol=1e-5)
    with pytest.raises(TypeError, match="must be an optax GradientTransformation, got int"):
        optimizer.add_param_group({"params": [torch.ones(1)], "transform": 3})


# ---------------------------------------------------------------- accumulation


@pytest.mark.exhaustive
@pytest.mark.parametrize("observe", [False, True])
def test_accumulation_equals_the_whole_batch_and_holds_one_gradient(observe: bool) -> None:
    shape = (6, 6)

    def big() -> int:
        gc.collect()
        return sum(a.shape == shape for a in jax.live_arrays())

    def steps(parts: int) -> tuple[list[Any], int]:
        model = net().freeze("first", "bn", "head")
        before, most = big(), 0
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        seen = []
        for _ in range(3):
            optimizer.zero_grad()
            for rows in np.split(np.arange(8), parts):
                loss = loss_of(model, rows) / parts
                loss.backward()
                if observe:
                    loss.item()
                del loss
                most = max(most, big() - before)
            optimizer.step()
            seen.append(model.get_parameter("second.kernel").tolist())
        return seen, most

    whole, _ = steps(1)
    parts, most = steps(4)
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-7)
    # The gradient, the momentum, and a copy of what `variables` lent.
    assert most <= 3


# ---------------------------------------------------------------- averages


class TorchNet(reference.nn.Module):
    """The same network as `NnxNet`, in torch."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = reference.nn.Linear(5, 3), reference.nn.Linear(3, 2)
        self.register_buffer("count", reference.zeros(2))

    def forward(self, x: Any) -> Any:
        return self.b(reference.tanh(self.a(x)))


class NnxNet(nnx.Module):
    """Two layers and a buffer."""

    def __init__(self) -> None:
        self.a = nnx.Linear(5, 3, rngs=nnx.Rngs(0))
        self.b = nnx.Linear(3, 2, rngs=nnx.Rngs(1))
        self.count = nnx.Variable(jnp.zeros(2))

    def __call__(self, x: Any) -> Any:
        return self.b(nnx.tanh(self.a(x)))


AVERAGES: dict[str, Any] = {
    "swa": lambda s, m: s.AveragedModel(m),
    "ema": lambda s, m: s.AveragedModel(m, multi_avg_fn=s.get_ema_multi_avg_fn(0.8)),
    "ema by one": lambda s, m: s.AveragedModel(m, avg_fn=s.get_ema_avg_fn(0.8)),
    "swa by one": lambda s, m: s.AveragedModel(m, avg_fn=s.get_swa_avg_fn()),
    "swa with buffers": lambda s, m: s.AveragedModel(
        m, multi_avg_fn=s.get_swa_multi_avg_fn(), use_buffers=True
    ),
}


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_equal_torchs(name: str) -> None:
    theirs = TorchNet()
    ours = nnx_models.Model(NnxNet())
    for part in "ab":
        layer = getattr(theirs, part)
        ours.get_parameter(f"{part}.kernel").data = torch.from_numpy(
            layer.weight.detach().numpy().T.copy()
        )
        ours.get_parameter(f"{part}.bias").data = torch.from_numpy(layer.bias.detach().numpy())

    def outputs(t: Any, model: Any, s: Any) -> list[Any]:
        average = AVERAGES[name](s, model)
        optimizer = t.optim.SGD(model.parameters(), lr=0.3)
        found = []
        for i in range(4):
            optimizer.zero_grad()
            ((model(t.from_numpy(X)) - t.from_numpy(Y)) ** 2).mean().backward()
            optimizer.step()
            with t.no_grad():
                next(model.buffers()).fill_(float(i))
            average.update_parameters(model)
            with t.no_grad():
                found.append(average(t.from_numpy(X)).numpy())
        assert average.n_averaged.item() == 4
        return found

    ours_, theirs_ = outputs(torch, ours, swa_utils), outputs(
        reference, theirs, reference.optim.swa_utils
    )  # fmt: skip
    np.testing.assert_allclose(ours_, theirs_, rtol=1e-5, atol=1e-6)


def test_only_what_trains_is_averaged() -> None:
    model = net().freeze().unfreeze("head")
    ema = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    for i in range(3):
        run(model, optimizer, 1)
        if i == 1:
            model.unfreeze("second")
        ema.update_parameters(model)
    assert sorted(n for n, _ in ema.named_parameters()) == [
        "head.bias", "head.kernel", "second.bias", "second.kernel",
    ]  # fmt: skip
    again = swa_utils.AveragedModel(model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.5))
    again.load_state_dict(ema.state_dict())
    x = torch.from_numpy(X)
    assert again(x).tolist() == ema(x).tolist() != model(x).tolist()


@pytest.mark.parametrize("average", ["swa", "ema"])
def test_the_average_is_part_of_the_next_steps_program(average: str) -> None:
    """Of one program from the second step on: the first values are mixed in, with weight 1."""
    model = net()
    kind = swa_utils.get_ema_multi_avg_fn(0.5) if average == "ema" else None
    averaged = swa_utils.AveragedModel(model, multi_avg_fn=kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    torch.synchronize()
    torch.explain(clear=True)
    for _ in range(5):
        optimizer.zero_grad()
        loss_of(model).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        averaged.update_parameters(model)
    runs = list(torch.explain())
    assert {r.reason for r in runs} == {"optimizer.step()"}
    assert [r.how for r in runs][2:] == ["cached"] * 3


def test_the_first_values_are_averaged_to_the_last_bit() -> None:
    model = net()
    averaged = swa_utils.AveragedModel(model)
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.mul_(0.3).add_(1e7 if k else float("inf"))
    averaged.update_parameters(model)
    for mine, p in zip(averaged.parameters(), model.parameters(), strict=True):
        assert mine.tolist() == p.tolist()


def test_averages_refuse_what_torch_refuses() -> None:
    for s in (swa_utils, reference.optim.swa_utils):
        with pytest.raises(ValueError, match="Invalid decay value 1.5 provided. Please provide"):
            s.get_ema_multi_avg_fn(1.5)
        with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn should"):
            s.AveragedModel(TorchNet(), avg_fn=max, multi_avg_fn=max)


@pytest.mark.parametrize("options", [{}, {"anneal_epochs": 3, "anneal_strategy": "linear"},
                                     {"anneal_epochs": 0}])  # fmt: skip
def test_the_rate_of_averaging_equals_torchs(options: Any) -> None:
    def rates(t: Any) -> list[Any]:
        optimizer = t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.5)
        scheduler = t.optim.swa_utils.SWALR(optimizer, 0.05, **options)
        found = []
        for _ in range(12):
            optimizer.step()
            scheduler.step()
            found.append(scheduler.get_last_lr()[0])
        return found

    assert rates(torch) == pytest.approx(rates(reference), rel=1e-12)
    for t in (torch, reference):
        optimizer = t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.5)
        with pytest.raises(ValueError, match="anneal_strategy must be one of 'cos' or 'linear'"):
            t.optim.swa_utils.SWALR(optimizer, 0.1, anneal_strategy="up")
        with pytest.raises(ValueError, match="anneal_epochs must be equal or greater than 0, got"):
            t.optim.swa_utils.SWALR(optimizer, 0.1, anneal_epochs=-1)


def test_a_model_is_called_with_other_tensors() -> None:
    model = net()
    zeros = {name: torch.zeros_like(p) for name, p in model.named_parameters() if "head" in name}
    assert model.functional_call(zeros, torch.from_numpy(X)).tolist() == [[0.0, 0.0]] * 8
    with pytest.raises(AttributeError, match="no tensor `haed.bias`; the nearest are `head.bias`"):
        model.functional_call({"haed.bias": zeros["head.bias"]}, torch.from_numpy(X))
