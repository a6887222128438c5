"""Optimizers against torch.optim, step by step."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import optax
import pytest
import torch

import leafax

CASES: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda t, p: t.optim.SGD(p, lr=0.1),
    "momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=0.1),
    "dampening": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3),
    "nesterov": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "sgd maximize": lambda t, p: t.optim.SGD(p, lr=0.01, momentum=0.5, maximize=True),
    "adam": lambda t, p: t.optim.Adam(p, lr=0.1, weight_decay=0.1),
    "adam betas": lambda t, p: t.optim.Adam(p, lr=0.1, betas=(0.5, 0.9), eps=1e-4),
    "amsgrad": lambda t, p: t.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda t, p: t.optim.AdamW(p, lr=0.1, weight_decay=0.2),
    "adamw amsgrad": lambda t, p: t.optim.AdamW(p, lr=0.1, amsgrad=True),
}


def train(t: Any, make: Callable[[Any, Any], Any], steps: int = 6) -> tuple[list[Any], Any, Any]:
    rng = np.random.default_rng(0)
    w = t.tensor(rng.normal(size=(4, 3)), requires_grad=True)
    b = t.tensor(rng.normal(size=3), requires_grad=True)
    idle = t.tensor(np.ones(2), requires_grad=True)
    x = t.tensor(rng.normal(size=(5, 4)))
    optimizer = make(t, [w, b, idle])
    seen = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = ((x @ w + b) ** 2).mean()
        loss.backward()
        optimizer.step()
        seen.append((loss.item(), w.detach().numpy().copy(), b.detach().numpy().copy()))
    assert idle.tolist() == [1.0, 1.0]
    return seen, optimizer, (w, b, idle)


@pytest.mark.parametrize("name", CASES)
def test_every_step_equals_torch(name: str) -> None:
    ours, optimizer, params = train(leafax, CASES[name])
    theirs, reference, _ = train(torch, CASES[name])
    for (loss, w, b), (loss_, w_, b_) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(loss, loss_, rtol=1e-10)
        np.testing.assert_allclose(w, w_, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(b, b_, rtol=1e-9, atol=1e-12)
    packed, packed_ = optimizer.state_dict(), reference.state_dict()
    assert packed["param_groups"][0].keys() >= {"lr", "params"}
    assert packed["param_groups"][0]["params"] == packed_["param_groups"][0]["params"]
    assert 2 not in packed["state"], "a parameter without gradient holds no state"
    for number, state in packed_["state"].items():
        for key, value in state.items():
            if value is None:
                continue
            np.testing.assert_allclose(
                packed["state"][number][key].numpy(), value.numpy(), rtol=1e-9, atol=1e-12
            )


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_resuming_from_a_state_dict_goes_on_as_if_never_stopped(name: str) -> None:
    whole, _, _ = train(leafax, CASES[name], 6)
    half, optimizer, params = train(leafax, CASES[name], 3)
    rng = np.random.default_rng(0)
    rng.normal(size=(4, 3)), rng.normal(size=3)
    x = leafax.tensor(rng.normal(size=(5, 4)))
    again = CASES[name](leafax, list(params))
    again.load_state_dict(optimizer.state_dict())
    for step in range(3, 6):
        again.zero_grad()
        loss = ((x @ params[0] + params[1]) ** 2).mean()
        loss.backward()
        again.step()
        np.testing.assert_allclose(loss.item(), whole[step][0], rtol=1e-12)


def test_one_program_a_step_and_a_changing_rate_compiles_nothing() -> None:
    w = leafax.tensor([1.0, 2.0], requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1, momentum=0.9)
    leafax.explain(clear=True)
    for step in range(8):
        optimizer.param_groups[0]["lr"] = 0.1 / (step + 1)
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    report = leafax.explain()
    assert [run.reason for run in report] == ["optimizer.step()"] * 8
    assert report.compiles == 1


def test_another_number_compiles_once_more_when_it_begins_to_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leafax.optim._base.hyperparameters, "_FIRST_NUMBERS", {})
    w = leafax.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    reference = torch.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    options = {"lr": 0.1, "momentum": 0.85, "weight_decay": 0.01}
    ours, theirs = leafax.optim.SGD([w], **options), torch.optim.SGD([reference], **options)
    leafax.explain(clear=True)
    for step in range(10):
        for optimizer, p in ((ours, w), (theirs, reference)):
            optimizer.param_groups[0]["momentum"] = 0.85 + max(0, step - 3) / 100
            optimizer.zero_grad()
            (p**3).sum().backward()
            optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), reference.detach().numpy(), rtol=1e-13)
    assert leafax.explain(clear=True).compiles == 2
    for decay in (0.02, 0.03, 0.04):  # a search over it compiles once, not for each value
        other = leafax.optim.SGD([w], lr=0.1, momentum=0.85, weight_decay=decay)
        other.zero_grad()
        (w**3).sum().backward()
        other.step()
    assert leafax.explain(clear=True).compiles == 1


def test_old_buffers_are_donated_and_seen_ones_are_not() -> None:
    w = leafax.tensor(np.ones(10), requires_grad=True)
    eye = leafax.eye(10, dtype=leafax.float64)
    optimizer = leafax.optim.SGD([w], lr=0.25)

    def step() -> int:
        optimizer.zero_grad()
        eye.mv(w).square().sum().backward()
        optimizer.step()
        return leafax.explain()[-1].donated

    seen = w.jax()
    assert step() == 0
    assert not seen.is_deleted(), "an array that somebody holds is not given away"
    np.testing.assert_array_equal(np.asarray(seen), np.ones(10))
    assert step() == 1
    np.testing.assert_allclose(w.detach().numpy(), np.full(10, 0.25))


def test_frozen_parameters_are_left_alone() -> None:
    w = leafax.tensor([1.0], requires_grad=True)
    frozen = leafax.tensor([1.0], requires_grad=True)
    optimizer = leafax.optim.AdamW([w, frozen], lr=0.1, weight_decay=0.5)
    (w * frozen).sum().backward()
    frozen.requires_grad_(False)
    optimizer.step()
    assert frozen.tolist() == [1.0]
    assert frozen not in optimizer.state
    assert w.item() != 1.0


TRANSFORMS = {
    "clip": lambda: optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(0.1)),
    "noise": lambda: optax.noisy_sgd(0.1, key=3),  # its state has a random key
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_optax_equals_a_hand_written_loop(name: str) -> None:
    import jax

    transform = TRANSFORMS[name]()
    rng = np.random.default_rng(0)
    start = {"0": rng.normal(size=3).astype("f"), "1": rng.normal(size=2).astype("f")}
    tensors = [leafax.tensor(v, requires_grad=True) for v in start.values()]
    optimizer = leafax.optim.Optax(tensors, transform)
    params: Any = {k: jax.numpy.asarray(v) for k, v in start.items()}
    state = transform.init(params)
    for _ in range(5):
        optimizer.zero_grad()
        ((tensors[0] ** 2).sum() + (tensors[1] ** 4).sum()).backward()
        optimizer.step()
        grads = jax.grad(lambda p: (p["0"] ** 2).sum() + (p["1"] ** 4).sum())(params)
        updates, state = transform.update(grads, state, params)
        params = optax.apply_updates(params, updates)
    for t, p in zip(tensors, params.values(), strict=True):
        # Adam divides by the gradient's own size, so rounding of 1e-7 shows as 1e-5 of a step.
        np.testing.assert_allclose(t.detach().numpy(), p, atol=2e-5)
    again = leafax.optim.Optax(tensors, transform)
    again.load_state_dict(optimizer.state_dict())
    assert again.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()


def test_optax_keeps_the_state_of_those_that_stay() -> None:
    a = leafax.tensor([1.0], requires_grad=True)
    b = leafax.tensor([1.0], requires_grad=False)
    optimizer = leafax.optim.Optax([a, b], optax.trace(0.9))
    for _ in range(2):
        optimizer.zero_grad()
        (a * 1.0).sum().backward()
        optimizer.step()
    b.requires_grad_()
    optimizer.zero_grad()
    (a + b).sum().backward()
    optimizer.step()
    by_path = optimizer.state_dict()["state"]
    values = sorted(round(t.item(), 4) for t in by_path.values())
    assert values == [1.0, 2.71]  # b's trace is fresh, a's went on: 1 + .9 (1 + .9)


MESSAGES: dict[str, Callable[[Any], Any]] = {
    "empty": lambda t: t.optim.SGD([], lr=0.1),
    "tensor": lambda t: t.optim.SGD(t.zeros(1), lr=0.1),
    "rate": lambda t: t.optim.SGD([t.zeros(1)], lr=-1.0),
    "momentum": lambda t: t.optim.SGD([t.zeros(1)], momentum=-1.0),
    "decay": lambda t: t.optim.SGD([t.zeros(1)], weight_decay=-1.0),
    "nesterov": lambda t: t.optim.SGD([t.zeros(1)], nesterov=True),
    "adam rate": lambda t: t.optim.Adam([t.zeros(1)], lr=-1.0),
    "eps": lambda t: t.optim.Adam([t.zeros(1)], eps=-1.0),
    "beta": lambda t: t.optim.Adam([t.zeros(1)], betas=(1.0, 0.9)),
    "beta 1": lambda t: t.optim.AdamW([t.zeros(1)], betas=(0.1, -0.9)),
    "adam decay": lambda t: t.optim.Adam([t.zeros(1)], weight_decay=-1.0),
    "not a tensor": lambda t: t.optim.SGD([1.0], lr=0.1),
    "non-leaf": lambda t: t.optim.SGD([t.zeros(1, requires_grad=True) * 2], lr=0.1),
    "set": lambda t: t.optim.SGD([{"params": {t.zeros(1)}}], lr=0.1),
}


@pytest.mark.parametrize("case", MESSAGES)
def test_messages_are_torchs(case: str) -> None:
    with pytest.raises(Exception) as theirs:
        MESSAGES[case](torch)
    with pytest.raises(type(theirs.value), match="^" + re.escape(str(theirs.value)) + "$"):
        MESSAGES[case](leafax)


def test_groups_and_repr_are_torchs() -> None:
    def make(t: Any) -> Any:
        a, b = t.zeros(1, requires_grad=True), t.zeros(2, requires_grad=True)
        return t.optim.SGD([{"params": [a]}, {"params": b, "lr": 0.5}], lr=0.1, momentum=0.9)

    assert repr(make(leafax)) == repr(make(torch))
    with pytest.raises(ValueError, match="some parameters appear in more than one"):
        w = leafax.zeros(1, requires_grad=True)
        leafax.optim.SGD([{"params": [w]}, {"params": [w]}], lr=0.1)


def test_zero_grad_to_zero_keeps_the_object() -> None:
    w = leafax.tensor([1.0], requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    (w * 3).sum().backward()
    held = w.grad
    optimizer.zero_grad(set_to_none=False)
    assert w.grad is held and held.tolist() == [0.0]


def test_closure() -> None:
    w = leafax.tensor([1.0], requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with leafax.no_grad():
        assert optimizer.step(closure).item() == 1.0
    assert w.tolist() == [0.0]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("through", ["t", "detach", "select"])
def test_a_view_of_a_weight_saved_before_the_step_raises(through: str, again: bool) -> None:
    """The GAN loop that steps the discriminator before the generator's backward."""

    def backward(lib: Any) -> str:
        u, w = (lib.ones(3, 3, dtype=lib.float64, requires_grad=True) for _ in range(2))
        optimizer = lib.optim.SGD([w], lr=0.1)
        message = ""
        for _ in range(3 if again else 1):  # a step that was met before is replayed
            view = {"t": w.t, "detach": w.detach, "select": lambda w=w: w[0]}[through]
            losses = [(u @ view()).sum() for _ in range(2)]
            optimizer.zero_grad()
            losses[0].backward(retain_graph=True)
            if through == "detach":
                w.grad = lib.ones_like(w)
            optimizer.step()
            with pytest.raises(RuntimeError) as caught:
                losses[1].backward()
            message += str(caught.value)
        return message

    assert backward(leafax) == backward(torch)


@pytest.mark.parametrize("written", ["clip", "average"])
def test_a_view_that_was_saved_before_many_tensors_are_written_raises(written: str) -> None:
    def backward(lib: Any) -> str:
        u, w = (lib.ones(3, 3, dtype=lib.float64, requires_grad=True) for _ in range(2))
        w.grad = lib.ones(3, 3, dtype=lib.float64)
        loss = (u @ (w if written == "average" else w.grad).t()).sum()
        if written == "clip":
            lib.nn.utils.clip_grad_norm_([w], 0.1)
        else:
            lib.optim.swa_utils.get_ema_multi_avg_fn(0.5)([w], [lib.zeros_like(w)], 1)
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
        return str(caught.value)

    assert backward(leafax) == backward(torch)
