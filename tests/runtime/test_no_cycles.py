"""Nothing that a program leaves behind waits for the garbage collector."""

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import leafax
import leafax.autograd.forward_ad as fwAD
from leafax.autograd.graph import (
    allow_mutation_on_saved_tensors,
    register_multi_grad_hook,
    save_on_cpu,
    saved_tensors_hooks,
)
from leafax.nn import functional as F
from leafax.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)

PROGRAMS: dict[str, Callable[[Any], None]] = {}


def program(fn: Callable[[Any], None]) -> Callable[[Any], None]:
    PROGRAMS[fn.__name__] = fn
    return fn


class Exp(leafax.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return y * g


def layer(w: Any) -> Callable[[Any], Any]:
    return lambda x: leafax.tanh(x @ w)


@program
def looked_at(w: Any) -> None:
    y = (w @ w).sin().sum()
    y.item()
    y.backward()


@program
def twice_differentiated(w: Any) -> None:
    (g,) = leafax.autograd.grad((w @ w).sin().sum(), w, create_graph=True)
    g.pow(2).sum().backward()


@program
def hooks(w: Any) -> None:
    y, z = w * 2, w * 3
    seen: list[Any] = []
    y.register_hook(seen.append)
    y.grad_fn.register_prehook(lambda grads: None)
    handle = register_multi_grad_hook([y, z], lambda grads: None)
    y.retain_grad()
    (y + z).sum().backward()
    handle.remove()


@program
def functions(w: Any) -> None:
    (g,) = leafax.autograd.grad(Exp.apply(w).sum(), w, create_graph=True)
    g.sum().backward()


@program
def checkpoints(w: Any) -> None:
    f = layer(w)
    checkpoint(f, leafax.ones(3, 8), use_reentrant=False).sum().backward()
    x = leafax.ones(3, 8, requires_grad=True)
    checkpoint(f, x, use_reentrant=True).sum().backward()
    checkpoint_sequential([f, leafax.sin, f], 2, x, use_reentrant=False).sum().backward()


@program
def checkpoint_in_a_checkpoint(w: Any) -> None:
    def outer(x: Any) -> Any:
        return checkpoint(layer(w), x, use_reentrant=False).sin()

    checkpoint(outer, leafax.ones(3, 8), use_reentrant=False).sum().backward()


@program
def selective_checkpoint(w: Any) -> None:
    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy["MUST_SAVE" if "mm" in str(op) else "PREFER_RECOMPUTE"]

    checkpoint(
        layer(w), leafax.ones(3, 8), use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    ).sum().backward()  # fmt: skip


@program
def saved_tensor_hooks(w: Any) -> None:
    with saved_tensors_hooks(lambda x: x.numpy(), leafax.as_tensor):
        y = (w @ w).sin().exp().sum()
    (g,) = leafax.autograd.grad(y, w, create_graph=True)
    g.sum().backward()
    with save_on_cpu():
        y = (w @ w).sin()
    y.sum().backward()


@program
def checkpointed_and_differentiated(w: Any) -> None:
    y = checkpoint(lambda x: x.exp().sin(), w, use_reentrant=False)
    leafax.autograd.grad(y.sum(), w, create_graph=True)


@program
def checkpointed_functions(w: Any) -> None:
    checkpoint(Exp.apply, w, use_reentrant=False).sum().backward()
    checkpoint(lambda x: Exp.apply(x).sin(), w, use_reentrant=False).sum().backward()


@program
def written_after_saved(w: Any) -> None:
    with allow_mutation_on_saved_tensors():
        a = w.clone()
        y = a.sin()
        a.mul_(2)
        y.sum().backward()


@program
def views_written_to(w: Any) -> None:
    y = w.clone()
    y.view(-1)[::2].zero_()
    y[0] = 1
    a, b = y.chunk(2)
    (a * b).sum().backward()


@program
def transforms(w: Any) -> None:
    func, x = leafax.func, leafax.ones(5, 8)
    func.vmap(func.grad(lambda x, w: (x @ w).sin().sum()), in_dims=(0, None))(x, w).sum().item()
    func.hessian(lambda x: x.sin().sum())(w[0].detach())
    leafax.autograd.functional.jacobian(lambda x: x.sin(), w[0].detach())
    with fwAD.dual_level():
        fwAD.unpack_dual(fwAD.make_dual(w.detach(), w.detach()).sin()).tangent.sum().item()


@program
def anomaly(w: Any) -> None:
    with pytest.warns(UserWarning), leafax.autograd.detect_anomaly():
        (w @ w).sin().sum().backward()


@program
def errors(w: Any) -> None:
    with pytest.raises(RuntimeError, match="must match|size mismatch|shapes cannot"):
        w @ leafax.ones(3)
    y = w.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@program
def training(w: Any) -> None:
    optimizer = leafax.optim.Adam([w], lr=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        F.mse_loss(leafax.ones(4, 8) @ w, leafax.ones(4, 8)).backward()
        leafax.nn.utils.clip_grad_norm_([w], 1.0)
        optimizer.step()


@pytest.fixture
def collector_off() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_cycle_holds_tensors_or_nodes(name: str, collector_off: None) -> None:
    w = (leafax.eye(8) / 2).requires_grad_()
    for _ in range(2):  # the first time classes and rules are made, which hold themselves
        gc.collect()
        w.grad = None
        PROGRAMS[name](w)
        leafax.synchronize()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    held = [type(x).__name__ for x in gc.garbage]
    ours = ("Tensor", "ArrayImpl", "Trace", "Frame", "Source")
    assert not [n for n in held if n in ours or "Backward" in n]
