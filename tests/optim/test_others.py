"""RMSprop, Adagrad and their kin against torch.optim, by PyTorch's own samples and beyond them."""

from __future__ import annotations

import copy
import inspect
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.optimizers import OTHERS
from helpers.sameness import Log, same
from torch.testing._internal.common_optimizers import optim_db

import leafax

NAMES = ("Adadelta", "Adagrad", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop")
INFOS = {info.optim_cls.__name__: info for info in optim_db}
SAMPLES = {
    f"{name}: {sample.desc}": (name, sample.kwargs)
    for name in NAMES
    for sample in INFOS[name].optim_inputs_func("cpu")
}
DTYPES = ("float64", "float32", "complex128")


def converted(t: Any, x: Any, known: dict[int, Any] | None = None) -> Any:
    """Convert PyTorch's samples to the library's tensors; the same tensor stays the same."""
    known = {} if known is None else known
    if isinstance(x, torch.Tensor):
        if id(x) not in known:
            known[id(x)] = t.tensor(x.detach().numpy(), requires_grad=x.requires_grad)
        return known[id(x)]
    if isinstance(x, (list, tuple)):
        return type(x)(converted(t, y, known) for y in x)
    if isinstance(x, dict):
        return {k: converted(t, v, known) for k, v in x.items()}
    return x


def numbers(dtype: str, shape: tuple[int, ...], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if "complex" in dtype else x).astype(dtype)


def stepped(t: Any, name: str, kwargs: dict[str, Any]) -> list[list[Any]]:
    """Parameters of all kinds and their states, after each step."""
    params = [
        t.tensor(numbers(dtype, shape, k), requires_grad=True)
        for k, (dtype, shape) in enumerate([*((d, (3, 2)) for d in DTYPES), (DTYPES[0], (0, 2))])
    ]
    idle = t.ones(2, requires_grad=True)
    optimizer = getattr(t.optim, name)([*params, idle], **converted(t, kwargs))
    seen = []
    for step in range(8):
        for k, p in enumerate(params):
            p.grad = t.tensor(numbers(str(p.dtype).split(".")[1], tuple(p.shape), 9 * step + k))
        optimizer.step()
        states = [list(optimizer.state[p].values()) for p in params]
        seen.append([np.array(x.detach().numpy()) for x in [*params, *sum(states, [])]])
    assert idle.tolist() == [1.0, 1.0]
    return seen


@pytest.mark.quick(1, each="name")
@pytest.mark.parametrize(("name", "sample"), [(name, s) for s, (name, _) in SAMPLES.items()])
def test_every_step_of_pytorchs_samples_equals_torchs(name: str, sample: str) -> None:
    ours, theirs = (stepped(t, *SAMPLES[sample]) for t in (leafax, torch))
    for step, step_ in zip(ours, theirs, strict=True):
        for x, x_ in zip(step, step_, strict=True):
            assert (x.dtype, x.shape) == (x_.dtype, x_.shape)
            close = 1e-12 if x.dtype.itemsize > 4 else 2e-6
            np.testing.assert_allclose(x, x_, rtol=close, atol=close)


@pytest.mark.parametrize("name", NAMES)
def test_what_pytorchs_samples_refuse_is_refused_in_its_words(name: str) -> None:
    def said(t: Any, sample: Any) -> Any:
        given = sample.optimizer_error_input
        params = [t.ones(1)] if given.params is None else converted(t, given.params)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((ValueError, TypeError, UserWarning)) as caught:
                getattr(t.optim, name)(params, **converted(t, given.kwargs))
        return type(caught.value), str(caught.value).replace("leafax", "torch")

    samples = INFOS[name].optim_error_inputs_func("cpu", torch.float32)
    assert len(samples) > 6
    for sample in samples:
        assert said(leafax, sample) == said(torch, sample)


@pytest.mark.parametrize("name", NAMES)
def test_other_hyperparameters_are_checked_in_torchs_words(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        cls, p = getattr(t.optim, name), t.ones(1, requires_grad=True)
        known = inspect.signature(getattr(torch.optim, name)).parameters
        wrong: list[dict[str, Any]] = [{"lr": -t.ones(1)}, {"lr": float("nan")}, {"lr": "fast"}]
        wrong += [{"fused": True, "foreach": True}, {"fused": True, "differentiable": True}]
        wrong += [{"betas": (0.5, -1)}, {"betas": (float("nan"), 0)}, {"rho": -0.5}, {"no": 1}]
        wrong += [{"etas": (0.5, 1)}, {"etas": (0, 2)}]
        wrong += [{key: -1} for key, v in known.items() if type(v.default) in (int, float)]
        for kwargs in wrong:
            if kwargs.keys() <= known.keys():
                with log.catch():
                    cls([p], **kwargs)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_and_groups_are_torchs(name: str) -> None:
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(cls).parameters.values()]
        for cls in (getattr(leafax.optim, name), getattr(torch.optim, name))
    )
    assert ours == theirs

    def made(t: Any) -> Any:
        a, b = t.zeros(1, requires_grad=True), t.zeros(2, requires_grad=True)
        optimizer = getattr(t.optim, name)([{"params": [("a", a)]}])
        optimizer.add_param_group({"params": [("b", b)], "lr": 0.5})
        return repr(optimizer), [list(g) for g in optimizer.param_groups], optimizer.defaults

    assert made(leafax) == made(torch)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", OTHERS)
def test_a_rate_that_changes_compiles_nothing_and_all_other_numbers_once(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leafax.optim._base.hyperparameters, "_FIRST_NUMBERS", {})
    w = leafax.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    reference = torch.tensor(np.linspace(-1, 1, 7), requires_grad=True)
    ours, theirs = OTHERS[name](leafax, [w]), OTHERS[name](torch, [reference])
    leafax.explain(clear=True)
    for step in range(8):
        for optimizer, p in ((ours, w), (theirs, reference)):
            (group,) = optimizer.param_groups
            group["lr"] *= 0.9
            for key, x in group.items() if step > 4 else ():
                if key != "lr" and type(x) is float and x:
                    group[key] = x * 0.97
                elif isinstance(x, tuple):
                    group[key] = tuple(y * 0.99 for y in x)
            optimizer.zero_grad()
            (p**3).sum().backward()
            optimizer.step()
        assert leafax.explain()[-1].how != "compiled" or step in (0, 5)
    np.testing.assert_allclose(w.detach().numpy(), reference.detach().numpy(), rtol=1e-12)
    assert leafax.explain(clear=True).compiles <= 2


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", OTHERS)
def test_groups_frozen_and_thawed_parameters(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        a, b, c = (t.linspace(k, 2, 3, dtype=t.float64).requires_grad_() for k in range(3))
        opt = OTHERS[name](t, [{"params": [a, b]}, {"params": [c], "lr": 0.05}])
        for frozen in (b, a, None):
            for p in (a, b, c):
                p.requires_grad_(p is not frozen)
            opt.zero_grad()
            sum(((p - k) ** 2).sum() for k, p in enumerate((a, b, c)) if p is not frozen).backward()
            opt.step(), opt.step()
        log(a.detach(), b.detach(), c.detach(), a._version, c._version)
        log([len(opt.state[p]) for p in (a, b, c)], [opt.state[p]["step"] * 1 for p in (a, b, c)])


def moved_to(t: Any, x: Any) -> Any:
    """A state dict of one library for the other."""
    if isinstance(x, dict):
        return {k: moved_to(t, v) for k, v in x.items()}
    return t.tensor(x.numpy()) if hasattr(x, "numpy") else x


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", OTHERS)
def test_state_dicts_go_from_one_library_to_the_other(name: str) -> None:
    def trained(t: Any) -> Any:
        p = t.tensor([1.0, -2.0, 3.0], requires_grad=True)
        opt = OTHERS[name](t, [p])
        for k in range(3):
            p.grad = t.tensor([0.5, k - 1.0, 2.0])
            opt.step()
        return opt.state_dict()

    def goes_on(there: Any, t: Any) -> Any:
        p = t.tensor([1.0, 2.0, -1.0], requires_grad=True)
        opt = OTHERS[name](t, [p])
        opt.load_state_dict(moved_to(t, trained(there)))
        p.grad = t.tensor([0.5, 0.25, 2.0])
        opt.step()
        held = {"p": p.detach(), **opt.state[p]}
        return {k: (x.numpy().dtype, *x.reshape(-1).tolist()) for k, x in held.items()}

    expected = goes_on(torch, torch)
    for there, t in ((torch, leafax), (leafax, torch), (leafax, leafax)):
        found = goes_on(there, t)
        assert list(found) == list(expected)
        for key, (dtype, *numbers_) in found.items():
            assert dtype == expected[key][0]
            np.testing.assert_allclose(numbers_, expected[key][1:], rtol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_kernels_that_pytorch_lacks_are_refused_at_the_step(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for options in (
            {"capturable": True}, {"capturable": True, "foreach": True},
            {"differentiable": True, "foreach": True}, {"fused": True},
        ):  # fmt: skip
            z = t.tensor([1 + 2j], requires_grad=True)
            with log.catch():
                opt = getattr(t.optim, name)([z], lr=0.1, **options)
                opt.step()  # nothing to update
                z.grad = t.ones_like(z)
                with t.no_grad():
                    opt.step()
            log(z * 1)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", OTHERS)
def test_switches_of_groups_may_be_turned(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p = t.tensor([1.0, -2.0, 3.0], dtype=t.float64, requires_grad=True)
        opt = OTHERS[name](t, [p])
        for key, value in (
            ("maximize", True), ("weight_decay", 0.3), ("decoupled_weight_decay", False),
            ("weight_decay", 0), ("maximize", False), ("momentum", 0), ("centered", False),
        ):  # fmt: skip
            if key in opt.param_groups[0]:
                opt.param_groups[0][key] = value
            p.grad = t.tensor([0.5, 1.0, -1.5], dtype=t.float64)
            opt.step()
            log(p.detach())
        for key in ("momentum", "centered"):
            fresh = t.optim.RMSprop([p])
            fresh.step()
            fresh.param_groups[0][key] = 0.5
            log.attempt(fresh.step)


def test_adagrad_has_a_state_before_its_first_step() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        p, q = t.ones(2, requires_grad=True), t.tensor([1j], requires_grad=True)
        opt = t.optim.Adagrad(
            [{"params": [p], "initial_accumulator_value": 5.0}, {"params": [q]}],
            initial_accumulator_value=0.5,
        )
        opt.share_memory()
        log(len(opt.state))
        log({k: v * 1 for k, v in opt.state[p].items()}, opt.state[q]["sum"] * 1)
        late = t.ones(3, dtype=t.float64, requires_grad=True)
        opt.add_param_group({"params": [late], "initial_accumulator_value": 7.0})
        log(len(opt.state))
        late.grad = t.ones(3, dtype=t.float64)
        opt.step()
        log(late.detach(), opt.state[late]["sum"] * 1)
        other = copy.deepcopy(opt)
        other.step()
        log([s["step"] * 1 for s in other.state.values()])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["asgd", "nadam"])
def test_single_numbers_of_a_state_have_the_default_dtype_until_they_are_loaded(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for dtype in (t.float32, t.float64):
            t.set_default_dtype(dtype)
            try:
                p = t.tensor([1.0, -2.0], dtype=t.float64, requires_grad=True)
                opt = OTHERS[name](t, [p])
                for _ in range(2):
                    p.grad = t.tensor([0.3, 0.7], dtype=t.float64)
                    opt.step()
                    opt.step()
                    log(p.detach(), {k: v * 1 for k, v in opt.state[p].items()})
                    packed = opt.state_dict()
                    opt = OTHERS[name](t, [p])
                    opt.load_state_dict(packed)  # the parameter's dtype, but for the count
            finally:
                t.set_default_dtype(t.float32)


@pytest.mark.exhaustive
def test_adamax_and_rprop_where_nothing_or_nan_comes() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        for name in ("adamax", "rprop", "adagrad", "radam"):
            p = t.tensor([1.0, -2.0, 3.0], dtype=t.float64, requires_grad=True)
            opt = OTHERS[name](t, [p])
            for grad in ([0.0, 1.0, float("nan")], [1.0, -1.0, 2.0], [1.0, -1.0, float("inf")]):
                p.grad = t.tensor(grad, dtype=t.float64)
                opt.step()
                log(p.detach())
