"""Equal layers of a program are traced as one, and give what each by itself gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import pytest
from helpers.sameness import same

import leafax
from leafax.functional.lowering.lower import Side, lower
from leafax.functional.lowering.shared_traces import SharedTraces


def _train(lib: Any, see: Any) -> None:
    """Layers that are equal, and among them one that is not, with outputs without a gradient."""
    lib.manual_seed(0)
    weights = [
        (lib.arange(9.0).double().reshape(3, 3) / (9 + i)).requires_grad_() for i in range(5)
    ]
    optimizer = lib.optim.AdamW(weights, lr=0.1, amsgrad=True)
    x = lib.linspace(-1, 1, 6).double().reshape(2, 3)
    for _ in range(3):
        h = x
        for i, w in enumerate(weights):
            top, where = (h @ w).max(dim=1, keepdim=True)
            h = lib.nn.functional.layer_norm(h @ w, (3,)).tanh() + top
            h = h.cumsum(1 if i == 3 else 0) / (1 + where)
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        see.gradients(loss.detach(), *[w.grad for w in weights], *weights)


def test_training_equal_layers_is_as_in_pytorch() -> None:
    same(_train)


def test_a_function_is_run_twice_for_any_number_of_equal_calls() -> None:
    runs: list[Any] = []
    traces = SharedTraces()

    def double(x: Any) -> list[Any]:
        runs.append(x.shape)
        return [x * 2]

    def many(x: Any, y: Any) -> Any:
        for _ in range(6):
            (x,) = traces.call("double", double, [x])
        (y,) = traces.call("double", double, [y])
        return x, y

    x, y = jax.jit(many)(jax.numpy.ones(3), jax.numpy.ones(4))
    assert (x.tolist(), y.tolist()) == ([64.0] * 3, [2.0] * 4)
    assert runs == [(3,), (3,), (4,)]


@pytest.mark.parametrize("op", ["sin", "sort", "cumprod"])
def test_equal_layers_lower_to_the_equations_of_each(
    op: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is wrapped: XLA sees the program that it saw before."""
    programs = _lowered(op)
    monkeypatch.setattr(
        SharedTraces, "_call", lambda self, key, fn, args, facts=None: (fn(*args), facts)
    )
    assert programs == _lowered(op)


def _lowered(op: str) -> list[str]:
    from leafax._core.run_log import plans

    leafax.explain(clear=True)
    x = leafax.ones(3, 2, requires_grad=True)
    y = x
    of: Callable[..., Any] = getattr(leafax, op)
    for _ in range(4):
        y = y * of(y, 0)[0] if op == "sort" else y * of(y, *((0,) if op == "cumprod" else ()))
    y.sum().backward()
    x.grad.sum().item()  # type: ignore[union-attr]
    plan = plans[-1][1]
    with jax.enable_x64(True):
        avals = [e.aval.struct() for e in plan.program.entries if hasattr(e, "aval")]
        return [str(jax.make_jaxpr(lower(plan.program, Side(), plan.guards))(*avals))]
