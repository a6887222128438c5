"""`amp.GradScaler` against torch.amp: scales, skipped steps, states and errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import optax
import pytest
import torch
from helpers.optimizers import OTHERS

import leafax
from leafax.functional.execution import policy

OPTIMIZERS: dict[str, Callable[[Any, Any], Any]] = {
    "sgd": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9),
    "adam": lambda t, p: t.optim.Adam(p, lr=0.1),
    **OTHERS,
}
# What the loss is multiplied by, step by step: some overflow once scaled.
LOADS = [1.0, 1e38, 2.0, 1.0, float("nan"), 1.0, 1.0, 1.0]


def scaler(t: Any, **options: Any) -> Any:
    return t.amp.GradScaler("cpu", **{"init_scale": 1024.0, "growth_interval": 2, **options})


def run(t: Any, make: Any, unscale: bool = False) -> list[Any]:
    w = t.tensor([1.0, -2.0], requires_grad=True)
    optimizer, s = make(t, [w]), scaler(t)
    seen = []
    for load in LOADS:
        optimizer.zero_grad()
        s.scale((w * w).sum() * load).backward()
        if unscale:
            s.unscale_(optimizer)
            t.nn.utils.clip_grad_norm_([w], 1.0)
        s.step(optimizer)
        s.update()
        seen.append((pytest.approx(w.tolist(), rel=1e-5), s.get_scale(), s._get_growth_tracker()))
    seen.append((pytest.approx(held(optimizer, w), rel=1e-5), 0, 0))
    return seen


def held(optimizer: Any, w: Any) -> list[float]:
    """The numbers of a parameter's state: a step that is skipped does not count."""
    return [x for t in optimizer.state[w].values() for x in t.reshape(-1).tolist()]


def plain(seen: list[Any]) -> list[Any]:
    return [(a.expected, b, c) for a, b, c in seen]


@pytest.mark.quick(4)
@pytest.mark.parametrize("unscale", [False, True])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_step_equals_torchs(name: str, unscale: bool) -> None:
    assert plain(run(leafax, OPTIMIZERS[name], unscale)) == run(torch, OPTIMIZERS[name], unscale)


def test_a_skipped_step_leaves_an_optax_state_alone() -> None:
    w = leafax.ones(2, requires_grad=True)
    optimizer, s = leafax.optim.Optax([w], optax.adam(0.1)), scaler(leafax)
    counts = []
    for load in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        s.scale((w * w).sum() * load).backward()
        s.step(optimizer)
        s.update()
        held = optimizer.state_dict()["state"]
        counts += [x.item() for path, x in held.items() if "count" in path]
    assert counts == [1, 1, 2]
    assert w.isfinite().all()


def test_the_step_stays_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    # Of many optimizers' steps the next runs op by op.
    monkeypatch.setattr(policy, "_compiled_plans", {})
    w = leafax.ones(2, requires_grad=True)
    optimizer, s = OPTIMIZERS["adam"](leafax, [w]), scaler(leafax)
    for _ in range(6):
        optimizer.zero_grad()
        s.scale((w * w).sum()).backward()
        s.step(optimizer)
        s.update()
    runs = list(leafax._runtime.cut.history)[-3:]
    assert {(r.reason, r.how) for r in runs} == {("optimizer.step()", "cached")}


def test_states_resume_and_nested_outputs_are_scaled() -> None:
    def case(t: Any) -> Any:
        s = scaler(t)
        out = s.scale([t.ones(1), (t.ones(1) * 2,)])
        packed = s.state_dict()
        again = scaler(t, init_scale=1.0)
        again.load_state_dict({**packed, "_growth_tracker": 1})
        first = again.get_scale()
        again.scale(t.ones(1))
        again.load_state_dict({**packed, "scale": 4.0})
        s.update(8.0)
        a = s.get_scale()
        s.update(t.tensor(16.0))
        off = t.amp.GradScaler("cpu", enabled=False)
        lazily = s.scale(x for x in [t.ones(1)])
        return [
            type(out), type(out[1]), out[0].item(), out[1][0].item(), packed, first,
            again.state_dict(), a, s.get_scale(), next(lazily).item(), off.scale(3),
            off.state_dict(), off.get_scale(), off.is_enabled(), off._get_growth_tracker(),
        ]  # fmt: skip

    assert case(leafax) == case(torch)


def stepped(t: Any) -> tuple[Any, Any, Any]:
    w = t.ones(1, requires_grad=True)
    optimizer, s = t.optim.SGD([w], lr=0.1), scaler(t)
    s.scale((w * w).sum()).backward()
    return w, optimizer, s


def twice(t: Any) -> None:
    _, optimizer, s = stepped(t)
    s.unscale_(optimizer)
    s.unscale_(optimizer)


def after_step(t: Any) -> None:
    _, optimizer, s = stepped(t)
    s.step(optimizer)
    s.unscale_(optimizer)


def step_twice(t: Any) -> None:
    _, optimizer, s = stepped(t)
    s.step(optimizer)
    s.step(optimizer)


def half(t: Any) -> None:
    w = t.ones(1, requires_grad=True, dtype=t.float16)
    optimizer, s = t.optim.SGD([w], lr=0.1), scaler(t)
    s.scale(w.sum()).backward()
    s.step(optimizer)


def without_gradients(t: Any) -> None:
    w, optimizer, s = stepped(t)
    w.grad = None
    s.step(optimizer)


ERRORS: list[Callable[[Any], Any]] = [
    twice, after_step, step_twice, half, without_gradients,
    lambda t: scaler(t, growth_factor=1.0),
    lambda t: scaler(t, backoff_factor=1.0),
    lambda t: scaler(t).unscale_(stepped(t)[1]),
    lambda t: scaler(t).step(stepped(t)[1]),
    lambda t: scaler(t).update(),
    lambda t: stepped(t)[2].update(),
    lambda t: stepped(t)[2].update(t.ones(2)),
    lambda t: scaler(t).scale(3.0),
    lambda t: scaler(t).load_state_dict({}),
    lambda t: stepped(t)[2].step(stepped(t)[1], closure=None),
]  # fmt: skip


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_torchs(case: Callable[[Any], Any]) -> None:
    with pytest.raises(Exception) as theirs:  # noqa: B017, PT011
        case(torch)
    with pytest.raises(theirs.type, match=re.escape(str(theirs.value)) + "$"):
        case(leafax)


def test_without_a_gpu_the_default_is_disabled_as_in_torch() -> None:
    for t in (torch, leafax):
        with pytest.warns(UserWarning, match="CUDA is not available.  Disabling."):
            s = t.amp.GradScaler()
        assert not s.is_enabled()
        w = t.ones(1, requires_grad=True)
        w.sum().backward()
        s.step(t.optim.SGD([w], lr=0.5))
        s.update()
        assert w.item() == 0.5


def test_a_step_counts_one_write() -> None:
    def versions(lib: Any) -> list[int]:
        w = lib.ones(3, requires_grad=True)
        optimizer, scaler = lib.optim.SGD([w], lr=0.1), lib.amp.GradScaler("cpu", init_scale=4.0)
        seen = []
        for foreach in (None, False):
            optimizer.zero_grad()
            scaler.scale((w * w).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            w.grad = lib.ones(3)
            lib.nn.utils.clip_grad_value_([w], 0.5, foreach=foreach)
            seen += [w._version, w.grad._version]
        return seen

    assert versions(leafax) == versions(torch)
