"""Transforms within transforms whose functions write, or choose their own modes."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

WRITING = {
    "copied": "o = p.new_zeros(4); o.copy_(p); o[1] = p[0] * p[1]",
    "part": "o = p.clone(); o[1:] *= p[0]",
    "whole": "o = p.clone(); o.add_(w * p[0]); o[0] = w.sum() * p[1]",
    "indexed": "o = p.clone(); o[[0, 2]] += p[[1, 3]]; o.view(2, 2).t().sin_()",
}
NESTED = (
    "F.vmap(F.jacfwd(f))(x)", "F.vmap(F.hessian(lambda p: f(p).sum()))(x)",
    "F.vmap(F.jacfwd(F.jacfwd(f)))(x)", "F.jacfwd(F.vmap(f))(x)", "F.vmap(F.jacrev(f))(x)",
    "F.vmap(F.jacrev(F.jacfwd(f)))(x)",
    "F.vmap(lambda p, t: F.jvp(f, (p,), (t,)), in_dims=(None, 0))(x[0], x)",
)  # fmt: skip


def _values(x: Any) -> Any:
    if isinstance(x, tuple):
        return [_values(y) for y in x]
    return x.requires_grad, x.is_leaf, np.round(np.array(x.tolist()), 5).tolist()


def _given(torch: Any) -> Any:
    return torch.tensor([[1.5, -0.5, 2.0, 0.25], [0.75, 3.0, -1.0, 0.5]])


@pytest.mark.quick(4)
@pytest.mark.parametrize("call", NESTED)
@pytest.mark.parametrize("body", WRITING)
def test_jacobians_of_functions_that_write(body: str, call: str) -> None:
    """Examples that a map gives its function may be written to in forward mode, too."""

    @same
    def program(torch: Any, log: Log) -> Any:
        space = {"torch": torch, "F": torch.func, "x": _given(torch)}
        space["w"] = torch.tensor([1.0, -1.0, 0.5, 2.0])
        exec(f"def f(p):\n    {WRITING[body]}\n    return o", space)
        log(_values(eval(call, space)))


ENABLED = (
    "(p * p).sum()", "torch.vmap(torch.sin)(p)", "p.clone().mul_(w)", "(p * 2, p.detach() * w)",
    "w.sin()",
)  # fmt: skip


@pytest.mark.parametrize("result", ENABLED)
@pytest.mark.parametrize("of_leaf", [True, False])
def test_a_mapped_function_records_gradients_though_its_caller_does_not(
    result: str, of_leaf: bool
) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = _given(torch).requires_grad_(of_leaf)
        w = torch.tensor([1.0, -1.0, 0.5, 2.0], requires_grad=True)
        f = torch.enable_grad()(eval(f"lambda p: {result}", {"torch": torch, "w": w}))
        with torch.no_grad():
            found = torch.vmap(f)(x)
            log(_values(found), _values(torch.vmap(torch.vmap(f))(x[None])))
        outs = [t for t in (found if isinstance(found, tuple) else [found]) if t.requires_grad]
        if outs:
            sum(t.sum() for t in outs).backward()
        log(x.grad is None or _values(x.grad), w.grad is None or _values(w.grad))


LOOKS = ("p.item() * p", "p if p > 0 else -p", "float(p) * p", "p if (p > 0).any() else p")
LOOKED = (
    "F.vmap(f)(x)", "F.vmap(F.grad(f))(x)", "F.grad(lambda q: F.vmap(f)(q).sum())(x)",
    "F.vmap(lambda p: F.jvp(f, (p,), (p,)))(x)", "F.jvp(F.vmap(f), (x,), (x,))",
    "F.vmap(F.grad(lambda p: F.vmap(f)(p).sum()))(x[None])", "F.vmap(F.vmap(f))(x[None])",
    "F.vmap(F.functionalize(f))(x)",
)  # fmt: skip


@pytest.mark.parametrize("call", LOOKED)
@pytest.mark.parametrize("body", LOOKS)
def test_who_looks_at_an_example(body: str, call: str) -> None:
    """Under a transform that takes derivatives, PyTorch no longer knows what it was called for."""

    @same
    def program(torch: Any, log: Log) -> Any:
        f = eval(f"lambda p: {body}")
        with log.catch():
            eval(call, {"F": torch.func, "f": f, "x": _given(torch)[0]})


def test_layers_of_cells_have_no_batching_rule() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x, h = torch.ones(2, 1, 1, 3), torch.zeros(1, 1, 3)
        w = [torch.ones(9, 3), torch.ones(9, 3)]
        rest = (False, 1, 0.0, False, False, False)
        with log.catch():
            torch.vmap(lambda p: torch.gru(p, h, w, *rest))(x)
        with log.catch():
            torch.vmap(lambda p: torch.rnn_tanh(x[0], p, [v[:3] for v in w], *rest))(
                h.repeat(2, 1, 1, 1)
            )


def test_derivatives_of_what_vmap_loops_over() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        warnings.filterwarnings("ignore", "There is a performance drop")
        with log.catch():
            f = torch.func.grad(lambda p: torch.histogram(p, 3)[0].sum())
            torch.vmap(f)(_given(torch))
        fw = torch.autograd.forward_ad
        with fw.dual_level(), log.catch():
            fw.unpack_dual(fw.make_dual(torch.ones(2), torch.ones(2)), level=3)


@pytest.mark.parametrize(
    "call",
    [
        "F.vmap(F.hessian(f))(x)", "F.vmap(F.jacfwd(F.grad(f)))(x)", "F.vmap(F.jacfwd(f))(x)",
        "F.vmap(lambda p: F.jvp(F.grad(f), (p,), (p,)))(x)", "F.vmap(F.jacrev(F.jacrev(f)))(x)",
    ],
)  # fmt: skip
def test_second_derivatives_of_a_mapped_function(call: str) -> None:
    """A Function's result inside `vmap` keeps its tangent, whichever map that differs in."""

    @same
    def program(torch: Any, log: Log) -> Any:
        class Cube(torch.autograd.Function):  # type: ignore[misc,name-defined]
            generate_vmap_rule = True

            @staticmethod
            def forward(x: Any) -> Any:
                return x**3, 3 * x**2

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs, output[1])
                ctx.save_for_forward(*inputs, output[1])

            @staticmethod
            def backward(ctx: Any, g: Any, more: Any) -> Any:
                x, slope = ctx.saved_tensors
                return g * slope + more * 6 * x

            @staticmethod
            def jvp(ctx: Any, t: Any) -> Any:
                x, slope = ctx.saved_tensors
                return t * slope, 6 * t * x

        f = lambda x: Cube.apply(x)[0].sum()  # noqa: E731
        log(_values(eval(call, {"F": torch.func, "f": f, "x": _given(torch)})))
