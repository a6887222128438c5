"""`utils.checkpoint` against torch, and that the program's memory really falls."""

from __future__ import annotations

from typing import Any

import pytest
import torch.utils.checkpoint  # noqa: F401  # `same` programs read it off `torch`
from sameness import Log, same

import leafax
import leafax.utils.checkpoint
from leafax import _run


@pytest.mark.parametrize("reentrant", [True, False])
def test_values_and_gradients(reentrant: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        w = torch.tensor([2.0, 3.0], requires_grad=True)
        x = torch.tensor([0.5, 1.0], requires_grad=True)

        def block(x: Any, k: Any) -> Any:
            h = (x * w).sin()
            return (h * k).exp(), h.detach() * x

        y, z = checkpoint(block, x * 1, 3, use_reentrant=reentrant)
        log.gradients(y.detach(), z.detach())
        log(y.requires_grad, z.requires_grad)
        (y.sum() + z.sum()).backward()
        log.gradients(x.grad, w.grad)


def test_nested_and_second_derivatives() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        x = torch.tensor([0.5, 1.0], requires_grad=True)

        def inner(x: Any) -> Any:
            return x.sin() * x

        def outer(x: Any) -> Any:
            return checkpoint(inner, x, use_reentrant=False).exp()

        y = checkpoint(outer, x, use_reentrant=False)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        log.gradients(g.detach(), x.grad)


def test_without_inputs_that_require_grad() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        checkpoint = torch.utils.checkpoint.checkpoint
        w = torch.ones(2, requires_grad=True)
        x = torch.ones(2)
        y = checkpoint(lambda x: x * w, x, use_reentrant=True)
        log(y.requires_grad)
        y = checkpoint(lambda x: x * w, x, use_reentrant=False)
        y.sum().backward()
        log.gradients(w.grad)


def test_errors_and_warnings() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        module = torch.utils.checkpoint
        x = torch.ones(2, requires_grad=True)
        log(module.checkpoint(lambda x: x * 2, x).requires_grad)
        log.attempt(module.checkpoint, lambda x: x, x, use_reentrant=True, foo=3)
        log.attempt(module.checkpoint, lambda x: x, x, use_reentrant=True, debug=True)
        fs = [lambda x: x * 2, lambda x: x.sin(), lambda x: x.exp(), lambda x: x + 1]
        y = module.checkpoint_sequential(fs, 2, x)
        y.sum().backward()
        log.gradients(x.grad)
        log.attempt(module.checkpoint_sequential, fs, 2, x, use_reentrant=False, foo=2)


def test_a_function_that_looks_at_values() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def block(x: Any) -> Any:
            h = x.sin()
            return h * 2 if h.sum().item() > 0 else h

        x = torch.ones(2, requires_grad=True)
        torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False).sum().backward()
        log.gradients(x.grad)


def test_random_numbers_are_the_same_twice() -> None:
    x = leafax.ones(1000, requires_grad=True)
    drop = leafax.nn.functional.dropout
    y = leafax.utils.checkpoint.checkpoint(lambda x: drop(x, 0.5), x, use_reentrant=False)
    (y * 3).sum().backward()
    assert (x.grad == y.detach() * 3).all()


def test_context_fn_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="selective checkpointing"):
        leafax.utils.checkpoint.checkpoint(
            lambda x: x, leafax.ones(1), use_reentrant=False, context_fn=lambda: (None, None)
        )


def _temporaries(checkpointed: bool) -> int:
    def block(x: Any) -> Any:
        for _ in range(8):
            x = (x * 1.5).sin().exp().cos()
        return x

    x = leafax.ones(1 << 18, requires_grad=True)
    leafax.synchronize()
    h = x
    for _ in range(6):
        if checkpointed:
            h = leafax.utils.checkpoint.checkpoint(block, h, use_reentrant=False)
        else:
            h = block(h)
    h.sum().backward()
    arrays = list(leafax._trace.local.trace.arrays)
    leafax.synchronize()
    plan = _run._plans[-1][1]
    shapes = [leafax.ones(1 << 18).jax() if hasattr(a, "shape") and a.shape else a for a in arrays]
    return int(plan.lowered(shapes).compile().memory_analysis().temp_size_in_bytes)


def test_memory_falls() -> None:
    plain, less = _temporaries(False), _temporaries(True)
    assert less < 0.5 * plain, (less, plain)


def test_a_loop_compiles_once() -> None:
    w = leafax.ones(4, requires_grad=True)
    opt = leafax.optim.SGD([w], lr=0.1)
    for _ in range(4):
        leafax.explain(clear=True)
        opt.zero_grad()
        leafax.utils.checkpoint.checkpoint(
            lambda x: (x * w).sin(), w * 2, use_reentrant=False
        ).sum().backward()
        opt.step()
        leafax.synchronize()
    report = leafax.explain()
    assert len(report) == 1 and report[0].how == "cached"
