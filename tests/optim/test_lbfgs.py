"""L-BFGS against torch.optim: every loss that its closure computes, and its state."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

OPTIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "rate": {"lr": 0.01, "history_size": 3},
    "few": {"lr": 0.5, "max_iter": 4, "max_eval": 7},
    "wolfe": {"line_search_fn": "strong_wolfe"},
    "wolfe, large": {"line_search_fn": "strong_wolfe", "lr": 30.0, "history_size": 2},
    "wolfe, few": {"line_search_fn": "strong_wolfe", "max_iter": 9, "max_eval": 4},
    "tolerances": {"tolerance_grad": 0.5, "tolerance_change": 1e-3},
}


def rosenbrock(t: Any, optimizer: Any, w: Any, z: Any, seen: list[float]) -> Any:
    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((1 - w[:-1]) ** 2).sum() + 10 * ((w[1:] - w[:-1] ** 2) ** 2).sum()
        loss = loss + ((z - 1j).abs() ** 2).sum() if z is not None else loss
        seen.append(loss.item())
        loss.backward()
        return loss

    return closure


def minimized(t: Any, options: dict[str, Any], dtype: str, steps: int = 3) -> Any:
    w = t.tensor([-0.5, 0.8, 0.3, -0.2], dtype=getattr(t, dtype), requires_grad=True)
    z = t.tensor([1.0, 2 + 1j], dtype=t.complex128, requires_grad=True)
    z = z if dtype == "float64" else None
    idle = t.ones(2, dtype=getattr(t, dtype), requires_grad=True)
    optimizer = t.optim.LBFGS([w, idle, *([] if z is None else [z])], **options)
    seen: list[float] = []
    for _ in range(steps):
        seen.append(optimizer.step(rosenbrock(t, optimizer, w, z, seen)).item())
    return optimizer, [x for x in (w, idle, z) if x is not None], seen


def plain(x: Any) -> Any:
    """A state without tensors: their dtypes and numbers."""
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return (str(x.numpy().dtype), x.detach().numpy()) if hasattr(x, "detach") else x


def assert_close(ours: Any, theirs: Any, rtol: float) -> None:
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, dict):
        assert list(ours) == list(theirs)
        ours, theirs = list(ours.values()), list(theirs.values())
    if isinstance(ours, (list, tuple)):
        assert len(ours) == len(theirs)
        for x, y in zip(ours, theirs, strict=True):
            assert_close(x, y, rtol)
    elif isinstance(ours, (str, type(None))):
        assert ours == theirs
    else:
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("name", OPTIONS)
def test_every_loss_and_the_state_equal_torchs(name: str) -> None:
    ours, params, seen = minimized(leafax, OPTIONS[name], "float64")
    theirs, params_, seen_ = minimized(torch, OPTIONS[name], "float64")
    np.testing.assert_allclose(seen, seen_, rtol=1e-7, atol=1e-10)
    for p, p_ in zip(params, params_, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), p_.detach().numpy(), rtol=1e-7, atol=1e-9)
    state, state_ = ours.state_dict(), theirs.state_dict()
    counts = ("func_evals", "n_iter")
    assert [state["state"][0][k] for k in counts] == [state_["state"][0][k] for k in counts]
    assert state["param_groups"] == state_["param_groups"]


@pytest.mark.parametrize("options", [{}, {"line_search_fn": "strong_wolfe"}])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_first_steps_equal_torchs_closely(dtype: str, options: dict[str, Any]) -> None:
    options = {"max_iter": 4, **options}
    ours, params, seen = minimized(leafax, options, dtype, 2)
    theirs, params_, seen_ = minimized(torch, options, dtype, 2)
    close = 1e-11 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(seen, seen_, rtol=close)
    assert_close(plain(ours.state_dict()["state"]), plain(theirs.state_dict()["state"]), close)
    for p, p_ in zip(params, params_, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), p_.detach().numpy(), rtol=close)


def test_states_are_loaded_copied_and_pickled() -> None:
    options = {"max_iter": 3, "line_search_fn": "strong_wolfe"}
    whole = minimized(leafax, options, "float64", 4)[2]
    optimizer, params, seen = minimized(leafax, options, "float64", 2)
    first = [p.detach().clone() for p in params]
    fresh = [p.detach().clone().requires_grad_() for p in params]
    loaded = leafax.optim.LBFGS(fresh, **options)
    loaded.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    others = [loaded, copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    for other in others:
        w, _, z = other.param_groups[0]["params"]
        again: list[float] = []
        for _ in range(2):
            again.append(other.step(rosenbrock(leafax, other, w, z, again)).item())
        np.testing.assert_allclose(seen + again, whole, rtol=1e-9)
    assert all(a.equal(b.detach()) for a, b in zip(first, params, strict=True))


def test_errors_are_torchs() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        a, b = t.ones(2, requires_grad=True), t.ones(2, requires_grad=True)
        for kwargs in ({"lr": -1.0}, {"lr": t.ones(2)}, {"lr": float("nan")}):
            log.attempt(t.optim.LBFGS, [a], **kwargs)
        log.attempt(t.optim.LBFGS, [{"params": [a]}, {"params": [b]}])
        opt = t.optim.LBFGS([a], line_search_fn="weak")
        log(repr(opt))
        log.attempt(opt.step)

        def closure() -> Any:
            opt.zero_grad()
            loss = (a * a).sum()
            loss.backward()
            return loss

        log.attempt(opt.step, closure)
        opt.add_param_group({"params": [b]})
        log.attempt(opt.step, closure)


def test_a_rate_may_be_a_tensor_and_a_minimum_is_left_alone() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        w = t.tensor([1.0, -1.0], dtype=t.float64, requires_grad=True)
        opt = t.optim.LBFGS([w], lr=t.tensor([0.5], dtype=t.float64), max_iter=3)

        def closure() -> Any:
            opt.zero_grad()
            loss = (w * w).sum()
            loss.backward()
            return loss

        log(opt.step(closure).item(), w * 1, {k: v for k, v in opt.state[w].items() if k != "al"})
        with t.no_grad():
            w.zero_()
        before = opt.state[w]["n_iter"]
        log(opt.step(closure).item(), w * 1, opt.state[w]["n_iter"] - before)


def test_what_is_frozen_stays() -> None:
    w, frozen = (leafax.ones(2, requires_grad=True) for _ in range(2))
    optimizer = leafax.optim.LBFGS([w, frozen], lr=0.1)

    def closure() -> Any:
        w.grad = None
        loss = ((w + frozen) ** 2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    seen = frozen.tolist()
    assert seen != [1.0, 1.0]
    frozen.requires_grad_(False)
    optimizer.step(closure)
    assert frozen.tolist() == seen


def test_turns_of_the_history_are_one_program() -> None:
    w = leafax.tensor(np.linspace(-1, 1, 6), requires_grad=True)
    optimizer = leafax.optim.LBFGS([w], lr=0.01, max_iter=30)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = ((w - 3) ** 4).sum()
        loss.backward()
        return loss

    leafax.explain(clear=True)
    optimizer.step(closure)
    compiles = leafax.explain(clear=True).compiles
    optimizer.step(closure)
    assert leafax.explain(clear=True).compiles <= 2, compiles
