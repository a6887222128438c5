"""State dicts, copies, groups and hyperparameters of optimizers against torch's."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.optimizers import OTHERS
from helpers.sameness import Log, same

import leafax

MAKE: dict[str, Callable[[Any, Any], Any]] = {
    "momentum": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9),
    "dampening": lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.5),
    "adam": lambda t, p: t.optim.Adam(p, lr=0.1, amsgrad=True),
    "adamw": lambda t, p: t.optim.AdamW(p, lr=0.1),
    **OTHERS,
}


def leaf(t: Any, dtype: str = "float64", seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    p = t.tensor(rng.normal(size=3), dtype=getattr(t, dtype), requires_grad=True)
    p.grad = t.tensor(rng.normal(size=3), dtype=getattr(t, dtype))
    return p


def seen(x: Any) -> Any:
    """Copy the contents of a state dict without its tensors' versions, which count kernels."""
    if isinstance(x, dict):
        return {k: seen(v) for k, v in x.items()}
    return x.detach().clone() if hasattr(x, "detach") else x


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", MAKE)
def test_state_dicts_are_torchs(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p, q = leaf(t), leaf(t, seed=1)
        opt = MAKE[name](t, [p, q])
        opt.step(), opt.step()
        packed = opt.state_dict()
        log(seen(packed), p._version)
        log([packed["state"][0][k] is v for k, v in opt.state[p].items()])
        for group in packed["param_groups"]:  # as an older version wrote it
            for key in ("maximize", "foreach", "fused", "differentiable", "capturable", "nesterov"):
                group.pop(key, None)
        for state in packed["state"].values():
            for key in state.keys() & {"step", "mu_product", "eta", "mu"}:
                state[key] = state[key].item()
        other = MAKE[name](t, [q, p])
        other.load_state_dict(packed)
        log(seen(other.state_dict()))
        other.step()
        log(p, q, seen(other.state_dict()))
        small = leaf(t, "float32")
        third = MAKE[name](t, [small, leaf(t, "float32", 1)])
        third.load_state_dict(other.state_dict())
        log(seen(third.state_dict()))
        third.step()
        log(small)


@pytest.mark.parametrize("name", MAKE)
def test_copies_and_pickles_go_on(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p = leaf(t)
        opt = MAKE[name](t, [p])
        opt.step()
        for other in (copy.deepcopy(opt), pickle.loads(pickle.dumps(opt))):
            (mine,) = other.param_groups[0]["params"]
            mine.grad = p.grad.clone()
            other.step()
            log(mine, repr(other), seen(other.state_dict()))
        log(p)


def test_loading_takes_what_belongs_to_no_parameter_and_leaves_names() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p = leaf(t)
        opt = t.optim.SGD([("weight", p)], lr=0.1)
        packed = opt.state_dict()
        packed["state"] = {"mine": 3, 0: {"pair": (1, t.ones(2)), "more": {"x": t.ones(1)}}}
        del packed["param_groups"][0]["param_names"]
        opt.load_state_dict(packed)
        log(seen(opt.state_dict()), opt.state["mine"])
        for broken in ({}, {"param_groups": [{"params": [0]}]}):
            log.attempt(opt.load_state_dict, broken)


def test_an_old_state_dict_may_hold_no_buffer() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p = leaf(t)
        opt = MAKE["dampening"](t, [p])
        opt.step()
        packed = opt.state_dict()
        packed["state"][0]["momentum_buffer"] = None
        opt.load_state_dict(packed)
        opt.step(), opt.step()
        opt.state[p]["mine"] = t.ones(2)
        opt.step()
        opt.param_groups[0].update(momentum=0, lr=0.2)
        opt.step()
        opt.param_groups[0].update(momentum=0.5, nesterov=True)
        opt.step()
        log(p, seen(opt.state_dict()))


def test_all_parameters_have_names_or_none() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p, q = leaf(t), leaf(t)
        for wrong in (
            [("a", p), q],
            [p, ("a", q)],
            [{"params": [("a", p)]}, {"params": [q]}],
            [{"params": [p]}, {"params": [("a", q)]}],
        ):
            log.attempt(t.optim.SGD, wrong, 0.1)


def test_hyperparameters_are_checked_in_torchs_words() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        two, one = t.tensor([0.1, 0.2]), t.tensor([0.1])
        nan = float("nan")
        for cls in (t.optim.SGD, t.optim.Adam, t.optim.AdamW):
            for wrong in (
                {"lr": two}, {"lr": "fast"}, {"fused": True, "foreach": True},
                {"fused": True, "differentiable": True}, {"lr": -one}, {"weight_decay": -1},
            ):  # fmt: skip
                log.attempt(cls, [leaf(t)], **wrong)
        for wrong in (
            {"lr": one, "foreach": True}, {"betas": (0, 0)}, {"betas": (one, 0.9)}, {"lr": nan},
            {"betas": (one, one), "foreach": True}, {"betas": (two[:1], two)}, {"betas": (0.1,)},
        ):  # fmt: skip
            log.attempt(t.optim.Adam, [leaf(t)], **wrong)
        log(t.optim.SGD([leaf(t)], lr=nan).param_groups[0]["lr"] > 0)
        log(t.optim.Adam([leaf(t)], betas=(one, one)).defaults["betas"][0].shape)


def test_kernels_that_pytorch_lacks_are_refused_at_the_step() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for cls in (t.optim.SGD, t.optim.Adam, t.optim.AdamW):
            z = t.tensor([1 + 2j], requires_grad=True)
            opt = cls([z], lr=0.1, fused=True)
            log.attempt(opt.step)  # nothing to update
            z.grad = t.ones_like(z)
            log.attempt(opt.step)
        for options in ({}, {"foreach": True}, {"fused": True}, {"differentiable": True}):
            p = t.ones(2, requires_grad=True)
            opt = t.optim.Adam([p], capturable=True, **options)
            log.attempt(opt.step)
            p.grad = t.ones(2)
            with log.catch(), t.no_grad():
                opt.step()


def test_schedulers_say_where_they_are_found() -> None:
    for lib in (torch, leafax):
        module = lib.optim.lr_scheduler
        assert {getattr(module, n).__module__ for n in module.__all__} == {module.__name__}
    assert leafax.optim.lr_scheduler.__all__ == torch.optim.lr_scheduler.__all__


@pytest.mark.exhaustive
def test_complex_parameters_move_by_their_parts() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for name in MAKE:
            z = t.tensor([1 + 2j, -1j, 3.0], dtype=t.complex128, requires_grad=True)
            opt = MAKE[name](t, [z])
            for k in range(3):
                z.grad = t.tensor([1j * k, 2 - 1j, 0.5], dtype=t.complex128)
                opt.step()
            log(z, seen(opt.state_dict()["state"]))


def test_step_counts_have_the_default_dtype() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        t.set_default_dtype(t.float64)
        try:
            p = leaf(t, "float32")
            opt = t.optim.Adam([p])
            opt.step()
            log(opt.state[p]["step"].dtype, opt.state[p]["exp_avg"].dtype)
        finally:
            t.set_default_dtype(t.float32)


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "options",
    [
        ("SGD", {"weight_decay": 0.1}),
        ("SGD", {"momentum": 0.9, "nesterov": True}),
        ("SGD", {"momentum": 0.9, "dampening": 0.2, "maximize": True}),
        ("Adam", {"weight_decay": 0.1, "amsgrad": True, "maximize": True}),
        ("AdamW", {"weight_decay": 0.1}),
        ("RMSprop", {"weight_decay": 0.1, "centered": True}),
        ("RMSprop", {"momentum": 0.9, "maximize": True}),
        ("Adagrad", {"lr_decay": 0.5}),
        ("Adadelta", {}),
        ("Adamax", {"weight_decay": 0.1}),
        ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True}),
        ("RAdam", {"betas": (0.8, 0.9), "weight_decay": 0.1}),
        ("ASGD", {"t0": 0}),
        ("Rprop", {}),
    ],
)
def test_steps_are_differentiated(options: tuple[str, dict[str, Any]]) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        w, g = leaf(t), leaf(t, seed=1)
        for steps in (2, 1):  # what Adamax writes at the second step is saved from the first
            p = w.clone()
            p.grad = g.clone()
            opt = getattr(t.optim, options[0])([p], lr=0.1, differentiable=True, **options[1])
            opt.step()
            if steps == 2:
                p.grad = g * g
                opt.step()
            log(p, p.grad_fn)
            with log.catch():
                log.gradients(*t.autograd.grad(p.pow(3).sum(), [w, g]))


@pytest.mark.exhaustive
def test_hyperparameters_have_gradients_too() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for name, more in (("SGD", ()), ("Adam", (0.9, 0.99)), ("AdamW", (0.9, 0.99))):
            make = lambda x: t.tensor(x, dtype=t.float64, requires_grad=True)  # noqa: E731
            lr, decay, betas = make(0.1), make(0.2), [make(x) for x in more]
            w = leaf(t)
            p = w.clone()
            p.grad = w.grad.clone().requires_grad_()
            kwargs = {"betas": tuple(betas)} if betas else {}
            opt = getattr(t.optim, name)(
                [p], lr=lr, weight_decay=decay, differentiable=True, **kwargs
            )
            with log.catch():
                opt.step()
                grads = t.autograd.grad(p.pow(3).sum(), [w, lr, decay, *betas], allow_unused=True)
                log.gradients(*grads)


def reordered(t: Any, name: str) -> list[list[float]]:
    """Sums of the parameters while the group's list of them is changed by hand."""
    a, c = (t.ones(3, 2, dtype=t.float64, requires_grad=True) for _ in range(2))
    b = t.ones(3, dtype=t.float64, requires_grad=True)
    optimizer = getattr(t.optim, name)([a, b], lr=0.01)
    (group,), seen = optimizer.param_groups, []
    for params in ([a, b], [a, b], [b, a], [b, a], [b, c], [a]):
        group["params"] = params
        optimizer.zero_grad()
        ((a * a).sum() + (b**3).sum() + (c * b.sum()).sum()).backward()
        optimizer.step()
        seen.append([x.sum().item() for x in (a, b, c)])
    return seen


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_the_parameters_of_a_group_may_come_in_another_order_or_be_others(name: str) -> None:
    import torch

    import leafax

    np.testing.assert_allclose(reordered(leafax, name), reordered(torch, name), rtol=1e-9)
