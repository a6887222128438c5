"""Adafactor and Muon against torch.optim, by PyTorch's own samples and beyond them."""

from __future__ import annotations

import inspect
import io
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same
from torch.testing._internal.common_optimizers import optim_db

import leafax

NAMES = ("Adafactor", "Muon")
INFOS = {info.optim_cls.__name__: info for info in optim_db}
SAMPLES = {
    f"{name}: {sample.desc}": (name, sample.kwargs)
    for name in NAMES
    for sample in INFOS[name].optim_inputs_func("cpu")
}
MORE: dict[str, tuple[str, dict[str, Any]]] = {
    "Adafactor: bounds": ("Adafactor", {"eps": (1e-2, 0.5), "d": 1.5, "beta2_decay": -0.3}),
    "Muon: plain": ("Muon", {"nesterov": False, "ns_steps": 3, "momentum": 0.5}),
    "Muon: no decay": ("Muon", {"weight_decay": 0, "adjust_lr_fn": "match_rms_adamw"}),
}
SHAPES = {"Adafactor": [(3, 2), (4,), (), (2, 3, 2)], "Muon": [(3, 2), (2, 5), (4, 4)]}


def converted(t: Any, x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    return t.tensor(x.detach().numpy(), requires_grad=x.requires_grad)


def stepped(t: Any, name: str, kwargs: dict[str, Any], dtype: str) -> list[list[Any]]:
    """Parameters and their states, after each step."""
    # Versions of states are not compared: they count from when somebody first looked, one a step.
    rng = np.random.default_rng(0)
    params = [
        t.tensor(rng.normal(size=shape).astype(dtype), requires_grad=True) for shape in SHAPES[name]
    ]
    idle = t.ones(2, 2, requires_grad=True)
    given = {k: converted(t, v) for k, v in kwargs.items()}
    optimizer = getattr(t.optim, name)([*params, idle], **given)
    seen = []
    for _ in range(4):
        for p in params:
            p.grad = t.tensor(rng.normal(size=tuple(p.shape)).astype(dtype))
        optimizer.step()
        states = [(k, x) for p in params for k, x in optimizer.state[p].items()]
        names = [k for k, _ in states] + [p._version for p in params]
        seen.append([names, *[np.array(x.detach().numpy()) for x in params]])
        seen[-1] += [np.array(x.detach().numpy()) for _, x in states]
    assert idle.tolist() == [[1.0, 1.0]] * 2
    return seen


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("sample", "dtype"),
    [(s, d) for s in [*SAMPLES, *MORE] for d in ("float64", "float32")[: 1 + ("default" in s)]],
)
def test_every_step_of_pytorchs_samples_equals_torchs(sample: str, dtype: str) -> None:
    name, kwargs = {**SAMPLES, **MORE}[sample]
    ours, theirs = (stepped(t, name, kwargs, dtype) for t in (leafax, torch))
    # Muon computes in bfloat16, where products are rounded in another order.
    close = 0.01 * float(kwargs.get("lr", 1e-3)) * 6 if name == "Muon" else 1e-12
    close = max(close, 2e-6 if dtype == "float32" else 0)
    for step, step_ in zip(ours, theirs, strict=True):
        assert step[0] == step_[0]
        for x, x_ in zip(step[1:], step_[1:], strict=True):
            assert (x.dtype, x.shape) == (x_.dtype, x_.shape)
            np.testing.assert_allclose(x, x_, rtol=close, atol=close)


@pytest.mark.parametrize("name", NAMES)
def test_what_pytorchs_samples_refuse_is_refused_in_its_words(name: str) -> None:
    def said(t: Any, sample: Any) -> Any:
        given, known = sample.optimizer_error_input, {}

        def there(x: Any) -> Any:  # what is the same tensor stays the same
            if isinstance(x, (list, tuple)):
                return type(x)(map(there, x))
            if isinstance(x, dict):
                return {k: there(v) for k, v in x.items()}
            return known.setdefault(id(x), converted(t, x))

        params = [t.ones(1, 1)] if given.params is None else there(given.params)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises((ValueError, TypeError, UserWarning)) as caught:
                getattr(t.optim, name)(params, **there(given.kwargs))
        return type(caught.value), str(caught.value).replace("leafax", "torch")

    for sample in INFOS[name].optim_error_inputs_func("cpu", torch.float32):
        if sample.error_type is RuntimeError:  # of the first step
            continue
        assert said(leafax, sample) == said(torch, sample)


@pytest.mark.parametrize("name", NAMES)
def test_hyperparameters_are_checked_in_torchs_words(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        cls, p = getattr(t.optim, name), t.ones(1, 1, requires_grad=True)
        known = inspect.signature(getattr(torch.optim, name)).parameters
        wrong: list[dict[str, Any]] = [{"lr": -t.ones(1)}, {"lr": float("nan")}, {"no": 1}]
        wrong += [{"beta2_decay": 0.5}, {"eps": (-1, 0)}, {"eps": (None, -1)}, {"d": 0.5}]
        wrong += [{"adjust_lr_fn": "slow"}, {"momentum": -1}, {"lr": t.ones(2)}]
        wrong += [{key: -1} for key, v in known.items() if type(v.default) is float]
        for kwargs in wrong:
            if kwargs.keys() <= known.keys() | {"no"}:
                with log.catch():
                    cls([p], **kwargs)
        z = t.ones(2, 2, dtype=t.complex64, requires_grad=True)
        optimizer = cls([z])
        z.grad = z.detach()
        log.attempt(optimizer.step)
        if name == "Muon":
            log.attempt(cls, [t.ones(3, requires_grad=True)])
            for kwargs in ({"ns_steps": 100}, {"ns_coefficients": (1.0, 2.0)}):
                optimizer = cls([p], **kwargs)
                p.grad = p.detach()
                log.attempt(optimizer.step)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_groups_and_states_are_torchs(name: str) -> None:
    ours, theirs = (
        [(p.name, p.kind, p.default) for p in inspect.signature(cls).parameters.values()]
        for cls in (getattr(leafax.optim, name), getattr(torch.optim, name))
    )
    assert ours == theirs
    w = torch.ones(3, 2, requires_grad=True)
    there = getattr(torch.optim, name)([w])
    w.grad = torch.ones(3, 2)
    there.step()
    file = io.BytesIO()
    torch.save(there.state_dict(), file)
    file.seek(0)
    mine = leafax.ones(3, 2, requires_grad=True)
    here = getattr(leafax.optim, name)([mine])
    here.load_state_dict(leafax.load(file))
    for optimizer, p in ((here, mine), (there, w)):
        p.data.fill_(0.5)
        p.grad = p.detach() * 2
        optimizer.step()
    np.testing.assert_allclose(mine.detach().numpy(), w.detach().numpy(), rtol=1e-4)
    assert repr(here) == repr(there)
    assert here.state_dict()["state"][0].keys() == there.state_dict()["state"][0].keys()


@pytest.mark.parametrize("name", NAMES)
def test_a_rate_that_changes_compiles_nothing(name: str) -> None:
    w = leafax.tensor(np.ones((4, 2)), requires_grad=True)
    v = leafax.tensor(np.ones((2, 2) if name == "Muon" else 2), requires_grad=True)
    optimizer = getattr(leafax.optim, name)([w, v], lr=0.1)
    leafax.explain(clear=True)
    for step in range(4):
        optimizer.param_groups[0]["lr"] *= 0.9
        optimizer.zero_grad()
        ((w @ v) ** 2).sum().backward()
        optimizer.step()
        assert leafax.explain()[-1].how != "compiled" or step == 0
