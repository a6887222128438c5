"""Cases found once in training scripts written as in tutorials."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax


@pytest.mark.quick(2)
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("inside", [False, True])
def test_checkpoints_autocast_again_with_the_weights_of_today(
    reentrant: bool, inside: bool
) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        from importlib import import_module

        checkpoint = import_module(f"{lib.__name__}.utils.checkpoint").checkpoint
        w = lib.linspace(0.5, 1.5, 4).reshape(2, 2).requires_grad_()
        v = lib.ones(2, 2, requires_grad=True)
        x = lib.ones(1, 2, requires_grad=True)
        optimizer = lib.optim.SGD([w, v], 0.125)

        def block(x: Any, w: Any) -> Any:
            log(lib.is_autocast_enabled("cpu"), lib.get_autocast_dtype("cpu"))
            y = lib.nn.functional.linear(x, w) @ v
            log(y.dtype)
            return lib.sin(y)

        for _ in range(3):
            optimizer.zero_grad()
            with lib.autocast("cpu", dtype=lib.float16):
                out = checkpoint(block, x, w, use_reentrant=reentrant)
                log(out.dtype)
                if inside:
                    out.sum().backward()
            if not inside:
                out.sum().backward()
            optimizer.step()
            log(out.detach().float(), lib.is_autocast_enabled("cpu"))
        log.gradients(w.grad, v.grad)
        log(w, v)


def _unobserved(lib: Any, turns: int) -> Any:
    """A loss and weights after a loop that nobody looks into, with an optimizer by hand."""
    data = lib.linspace(-1, 1, 120, dtype=lib.float64).reshape(40, 3)
    w = lib.ones(3, 2, dtype=lib.float64, requires_grad=True)
    velocity, lr = lib.zeros_like(w), 0.1
    for i in range(turns):
        batch = data[i % 5 * 8 : i % 5 * 8 + 8]
        loss = ((batch @ w).tanh() - batch[:, :2]).square().mean() * (1 + i / turns)
        w.grad = None
        loss.backward()
        with lib.no_grad():
            velocity.mul_(0.9).add_(w.grad)
            w.sub_(velocity, alpha=lr)
        lr *= 0.999
    return loss, w


@pytest.mark.exhaustive
def test_numbers_that_change_in_a_loop_that_nobody_looks_into() -> None:
    leafax.explain(clear=True)
    turns = 2000
    found = _unobserved(leafax, turns)
    leafax.synchronize()
    late = list(leafax.explain())[-8:-1]
    for ours, theirs in zip(found, _unobserved(torch, turns), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-9)
    assert {run.how for run in late} == {"cached"}
    assert len({run.nodes for run in late}) == 1, "each holds as many turns"


def _predicted_variance(lib: Any, log: Any) -> None:
    gaussian_nll_loss = lib.nn.functional.gaussian_nll_loss
    w = lib.ones(3, 2, dtype=lib.float64, requires_grad=True)
    optimizer, x = lib.optim.SGD([w], 0.1), lib.linspace(0, 1, 12, dtype=lib.float64).view(4, 3)
    for full in (False, True, False, False, False):
        mean, spread = (x @ w).unbind(1)
        optimizer.zero_grad()
        loss = gaussian_nll_loss(mean, x[:, 0], lib.exp(spread), full=full)
        loss.backward()
        optimizer.step()
        log(loss, w)


@pytest.mark.exhaustive
def test_a_predicted_variance_is_no_reason_to_run() -> None:
    same(_predicted_variance)
    leafax.explain(clear=True)
    _predicted_variance(leafax, lambda *things: None)
    made, *steps = [run.reason for run in leafax.explain()]
    assert (made, steps) == ("an optimizer was made", ["optimizer.step()"] * 5)


def test_negative_variances_are_refused() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        loss = lib.nn.functional.gaussian_nll_loss
        x, v = lib.ones(2), lib.tensor([1.0, -1.0])
        for var in (v, v * 2, -1.0, (v * 2).requires_grad_()):
            log.attempt(lambda var=var: loss(x, x, var).sum().item())
        log.attempt(lib.func.vmap(loss), lib.ones(2, 2), lib.ones(2, 2), lib.ones(2, 2))


def test_anomalies_are_told_at_the_users_line() -> None:
    for backward in (
        lambda y, z: y.backward(),
        lambda y, z: leafax.autograd.grad(y, z),
        lambda y, z: leafax.autograd.backward(y, inputs=[z]),
    ):
        z = leafax.tensor([-1.0, 2.0], requires_grad=True)
        with leafax.autograd.set_detect_anomaly(True):
            y = z.sqrt().sum()
            with pytest.warns(UserWarning, match="SqrtBackward0") as seen:
                with pytest.raises(RuntimeError, match="returned nan values"):
                    backward(y, z)
        assert [w.filename for w in seen if "SqrtBackward0" in str(w.message)] == [__file__]


@pytest.mark.parametrize("name", ["xlogy", "special.xlog1py"])
def test_xlogy_tells_which_of_its_operands_is_a_number(name: str) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        fn = getattr(lib.special, name.rpartition(".")[2])
        t = lib.tensor([0.5, 2.0], requires_grad=True)
        for number in (2.0, 3, 0.5, 1.5):
            for out in (fn(t, number), fn(number, t), fn(t, t), fn(t, lib.tensor(number))):
                node = out.grad_fn
                log(node.name(), len(node.next_functions), node._saved_self, node._saved_other)
                log.gradients(*lib.autograd.grad(out.sum(), t))
            if name == "xlogy":
                log((t * 1).xlogy_(number))


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64", "bool"])
def test_integers_are_close_as_numbers_not_as_bytes(dtype: str) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        made = lib.tensor([0, 1, 2, 100, 255, 2**24 + 1, -(2**63), 2**63 - 1, 2**62])
        x = made.to(getattr(lib, dtype))
        for y in (x.flip(0), x + x.new_ones(()), x.roll(1)):
            for rtol, atol in ((0.0, 1.0), (0.5, 0.0), (0.0, 60.5), (1e-5, 1e-8)):
                log(lib.isclose(x, y, rtol, atol), lib.allclose(x, y, rtol, atol))


@pytest.mark.quick(2)
@pytest.mark.parametrize("p", [float("inf"), 1.0, 2.5])
def test_each_of_the_largest_differences_has_the_whole_gradient(p: float) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.tensor([[0.0, 0.0, 1.0], [3.0, -3.0, 1.0], [0.0, 1.0, 2.0]], requires_grad=True)
        for out in (lib.cdist(x, x + 1, p), lib.cdist(x, x.flip(0), p), lib.pdist(x, p)):
            log.gradients(out, *lib.autograd.grad(out.sum(), x))
        nan = float("nan")
        log.attempt(lib.cdist, x, x, nan)
        log.attempt(lib.pdist, x, nan)
        log.attempt(lib.nn.functional.interpolate, x[None], scale_factor=0.25)
        log.attempt(lib.nn.functional.interpolate, x[None, None], scale_factor=0.25)


@pytest.mark.parametrize("bound", [float("inf"), 0.5, 3.0])
def test_infinite_slopes_and_limits_stay_where_they_belong(bound: float) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        F = lib.nn.functional
        for dtype in (lib.float64, lib.float32, lib.bfloat16):
            x = lib.tensor([-1.0, 0.0, 0.5, 3.0], dtype=dtype, requires_grad=True)
            for out in (F.huber_loss(x, x.detach() * 0, delta=bound), F.leaky_relu(x, bound)):
                log(out.detach().float(), lib.autograd.grad(out.sum(), x)[0].float())


def test_numbers_of_numpy_are_read_as_numbers() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        numbers = (np.float32(0.5), np.float64(1.5), np.float16(2), np.int64(3), np.bool_(True))
        whole = lib.tensor([1, 2])
        for n in numbers:
            log.attempt(whole.new_tensor, n)
            for dtype in (None, lib.int64, lib.uint8, lib.bool, lib.float32, lib.complex64):
                log.attempt(lambda n=n, dtype=dtype: lib.tensor(n, dtype=dtype))
                log.attempt(lambda n=n, dtype=dtype: lib.as_tensor(n, dtype=dtype))
                log.attempt(lambda n=n, dtype=dtype: lib.tensor([n, n], dtype=dtype))
                log.attempt(lambda n=n, dtype=dtype: lib.full((2,), n, dtype=dtype))
