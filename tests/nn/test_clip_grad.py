"""Clipping gradients, against torch.nn.utils."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log
from helpers.sameness import same as same_program

import leafax

SHAPES = [(3, 4), (), (5,), (2, 0)]


def parameters(t: Any, dtype: str = "float32", scale: float = 1.0) -> list[Any]:
    rng = np.random.default_rng(0)
    made = []
    for shape in SHAPES:
        p = t.zeros(shape, dtype=getattr(t, dtype), requires_grad=True)
        p.grad = t.tensor(np.asarray(rng.normal(size=shape) * scale)).to(getattr(t, dtype))
        made.append(p)
    return [*made, t.ones(2, requires_grad=True)]


def grads(params: list[Any]) -> list[Any]:
    return [None if p.grad is None else p.grad.double().numpy() for p in params]


def same(a: list[Any], b: list[Any], tolerance: float = 1e-6) -> None:
    for x, y in zip(a, b, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("order", [2.0, 1, 3.5, float("inf"), "inf", 0.0])
@pytest.mark.parametrize("scale", [0.01, 10.0])
def test_norms_of_any_order(order: Any, scale: float) -> None:

    def run(t: Any) -> Any:
        params = parameters(t, scale=scale)
        if float(order) == float("inf"):
            params.pop(3)  # which is empty
        total = t.nn.utils.clip_grad_norm_(params, 1.5, order)
        return [total.numpy(), *grads(params)], total

    ours, total = run(leafax)
    theirs, total_ = run(torch)
    same(ours, theirs, 1e-5)
    assert total.shape == total_.shape and str(total.dtype).split(".")[-1] == "float32"
    assert not total.requires_grad


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_other_dtypes(dtype: str) -> None:
    def run(t: Any) -> Any:
        params = parameters(t, dtype)
        total = t.nn.utils.clip_grad_norm_(params, 0.5)
        return (
            [total.double().numpy(), *grads(params)],
            str(total.dtype),
            [str(p.grad.dtype) for p in params[:-1]],
        )

    ours, theirs = run(leafax), run(torch)
    same(ours[0], theirs[0], 1e-12 if dtype == "float64" else 1e-2)
    assert ours[1:] == theirs[1:]


def test_mixed_dtypes_promote() -> None:
    def run(t: Any) -> Any:
        params = [*parameters(t, "float32"), *parameters(t, "float64")]
        total = t.nn.utils.clip_grad_norm_(params, 0.5)
        return [total.numpy(), *grads(params)], str(total.dtype)

    ours, theirs = run(leafax), run(torch)
    same(ours[0], theirs[0])
    assert ours[1] == theirs[1]


def test_one_tensor_a_generator_and_nothing() -> None:
    def run(t: Any) -> Any:
        utils = t.nn.utils
        params = parameters(t)
        totals = [
            utils.clip_grad_norm_(params[0], 1.0),
            utils.clip_grad_norm_((p for p in params), 0.5),
            utils.clip_grad_norm_([], 0.5),
            utils.clip_grad_norm_([params[-1]], 0.5),
            utils.get_total_norm([]),
            utils.get_total_norm(params[0].grad, 1.0),
        ]
        utils.clip_grads_with_norm_(params, 0.1, t.tensor(0.2))
        utils.clip_grads_with_norm_([], 0.1, t.tensor(0.2))
        return [x.numpy() for x in totals] + grads(params)

    same(run(leafax), run(torch))


def test_values_are_clamped() -> None:
    def run(t: Any) -> Any:
        params = parameters(t)
        t.nn.utils.clip_grad_value_(params, 0.3)
        t.nn.utils.clip_grad_value_(params[0], 0.2)
        return grads(params)

    same(run(leafax), run(torch), 0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_norm_that_is_not_finite(bad: float) -> None:
    def run(t: Any, raising: bool) -> Any:
        params = parameters(t)
        params[0].grad[0, 0] = bad
        total = t.nn.utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=raising)
        return [total.numpy(), *grads(params)]

    same(run(leafax, False), run(torch, False))
    with pytest.raises(RuntimeError) as theirs:
        run(torch, True)
    with pytest.raises(RuntimeError, match=re.escape(str(theirs.value)) + "$"):
        run(leafax, True)


def test_a_finite_norm_may_be_checked() -> None:
    def run(t: Any) -> Any:
        params = parameters(t)
        total = t.nn.utils.clip_grad_norm_(params, 1.0, 2.0, True)
        return [total.numpy(), *grads(params)]

    same(run(leafax), run(torch))


def test_an_empty_generator_and_the_old_name_warn() -> None:
    def run(t: Any) -> list[Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            t.nn.utils.clip_grad_norm_((p for p in []), 1.0)
            t.nn.utils.clip_grad_norm(parameters(t), 1.0)
        return [(str(w.message), w.category) for w in caught]

    assert run(leafax) == run(torch)


def test_frozen_parameters_are_outside() -> None:
    """A clip that counts frozen gradients over-clips the rest: torch's does if any are left."""
    head, backbone = leafax.ones(2, requires_grad=True), leafax.ones(2, requires_grad=True)
    (head + 1000 * backbone).sum().backward()
    backbone.requires_grad_(False)
    total = leafax.nn.utils.clip_grad_norm_([head, backbone], 1.0)
    assert total.item() == pytest.approx(2**0.5)
    assert head.grad.tolist() == pytest.approx([0.5**0.5] * 2, rel=1e-5)
    assert backbone.grad.tolist() == [1000.0, 1000.0]


def test_clipping_is_part_of_the_steps_program_and_compiles_once() -> None:
    w, b = leafax.ones(3, requires_grad=True), leafax.ones(2, requires_grad=True)
    optimizer = leafax.optim.SGD([w, b], lr=0.1)
    norms = []
    for i in range(6):
        optimizer.zero_grad()
        ((w * w).sum() + (b * b).sum()).backward()
        norms.append(leafax.nn.utils.clip_grad_norm_([w, b], 1.0 + i))
        optimizer.step()
    runs = list(leafax._runtime.cut.history)[-4:]
    assert [run.how for run in runs] == ["cached"] * 4
    assert {run.reason for run in runs} == {"optimizer.step()"}
    assert norms[-1].item() < norms[0].item()


def test_others_on_the_gradients_storage_see_the_write() -> None:
    def run(t: Any) -> Any:
        p = t.ones(4, requires_grad=True)
        (p * 3).sum().backward()
        view, alias = p.grad[:2], p.grad.detach()
        before = p.grad._version
        t.nn.utils.clip_grad_norm_(p, 3.0)
        return view.tolist(), alias.tolist(), p.grad._version > before

    assert run(leafax) == run(torch)


@pytest.mark.parametrize("foreach", [None, True, False])
def test_complex_gradients_are_not_clamped(foreach: bool | None) -> None:
    for t in (leafax, torch):
        x, z = (t.ones(2, dtype=d, requires_grad=True) for d in (t.float32, t.complex64))
        (x.sum() + z.abs().sum()).backward()
        with pytest.raises(NotImplementedError, match="^clamp is not supported for complex types"):
            t.nn.utils.clip_grad_value_([x, z], 0.5, foreach)
        assert x.grad.tolist() == [1, 1]


def test_gradients_that_cannot_be_clipped_are_refused() -> None:
    @same_program
    def program(t: Any, log: Log) -> None:
        p, utils = t.ones(3, requires_grad=True), t.nn.utils
        log.attempt(utils.clip_grad_value_, [p], 1.0)
        log.attempt(utils.clip_grad_norm_, [p], 1.0)
        p.grad = t.ones(1).expand(3)
        log.attempt(utils.clip_grad_value_, [p], 0.5)
        log.attempt(utils.clip_grad_norm_, [p], 1.0)
        log(p.grad)
