"""The nodes of gradients that are differentiated again: their names, and which comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

LINEAR: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda t, x: x[:3],
    "narrow": lambda t, x: x.narrow(0, 0, 3),
    "select": lambda t, x: x[1],
    "unfold": lambda t, x: x.unfold(0, 2, 1)[:, 0],
    "index": lambda t, x: x[t.tensor([0, 1, 2])],
    "view": lambda t, x: x.view(2, 2),
    "diagonal": lambda t, x: x.view(2, 2).diagonal(),
    "cat": lambda t, x: t.cat([x, x]),
    "expand": lambda t, x: x.expand(2, 4),
    "unsqueeze": lambda t, x: x.unsqueeze(0),
    "permute": lambda t, x: x.view(2, 2).permute(1, 0),
    "split": lambda t, x: x.split(2)[0],
    "unbind": lambda t, x: x.view(2, 2).unbind(0)[1],
    "chunk": lambda t, x: x.chunk(2)[1],
    "squeeze": lambda t, x: x.view(1, 4).squeeze(0),
    "flip": lambda t, x: x.flip(0),
    "sum": lambda t, x: x.sum(),
    "gather": lambda t, x: x.gather(0, t.tensor([0, 2])),
    "take": lambda t, x: x.take(t.tensor([0, 2])),
}


@pytest.mark.parametrize("name", LINEAR)
def test_the_gradient_of_a_linear_ops_gradient_is_the_op(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        grad = torch.autograd.grad
        x = torch.arange(1.0, 5.0, dtype=torch.float64).requires_grad_()
        y = LINEAR[name](torch, x)
        w = torch.ones_like(y).requires_grad_()
        u = torch.ones(4, dtype=torch.float64).requires_grad_() * 1.0
        (g,) = grad(y, x, w, create_graph=True)
        (h,) = grad(g, w, u, create_graph=True)
        (k,) = grad(h, u, w, create_graph=True)
        log([t.grad_fn.name() for t in (g, h, k)], h.tolist(), k.tolist())


def test_the_name_of_a_gradients_gradient() -> None:
    """Here it is one node, named after the op."""
    # PyTorch's are those of its formula. The node of a write through a view (`CopySlices`) and of
    # `prod`, whose formula asks where there are zeros, is one here, too.
    import leafax as torch

    grad = torch.autograd.grad
    x = torch.arange(4.0).requires_grad_()
    w = torch.ones(4, requires_grad=True)
    (g,) = grad(torch.nn.functional.celu(x), x, w, create_graph=True)
    (h,) = grad(g, x, w, create_graph=True)
    assert g.grad_fn.name() == "EluBackwardBackward0"
    assert h.grad_fn.name().startswith("EluBackwardBackwardBackward")


PAIRS: dict[str, Callable[[Any, Any, Any], Any]] = {
    **{
        name: lambda t, a, b, name=name: getattr(t, name)(a, b)
        for name in (
            "mul", "mm", "div", "pow", "hypot", "maximum", "xlogy", "logaddexp", "atan2", "fmax",
            "copysign",
        )
    },
    "where": lambda t, a, b: t.where(a > 0, a, b),
    "mv": lambda t, a, b: t.mv(a, b[0]),
    "dot": lambda t, a, b: t.dot(a[0], b[0]),
    "lerp": lambda t, a, b: t.lerp(a, b, 0.3),
    "bmm": lambda t, a, b: t.bmm(a[None], b[None]),
    "linear": lambda t, a, b: t.nn.functional.linear(a, b),
    "addcmul": lambda t, a, b: t.addcmul(a * 2, a, b),
    "baddbmm": lambda t, a, b: t.baddbmm(a[None], a[None], b[None]),
    "addr": lambda t, a, b: t.addr(a, a[0], b[0]),
    "addmm": lambda t, a, b: t.addmm(a, b, a),
    "einsum": lambda t, a, b: t.einsum("ij,jk->ik", a, b),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_which_gradient_is_taken_first(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = (torch.arange(4.0, dtype=torch.float64).reshape(2, 2) + 0.5).requires_grad_()
        b = (a.detach().cos() + 1.5).requires_grad_()
        y = PAIRS[name](torch, a, b)
        w = torch.ones_like(y).requires_grad_()
        both = torch.autograd.grad(y, (a, b), w, create_graph=True)
        seen: list[int] = []
        for k, g in enumerate(both):
            if g.grad_fn is not None:
                g.grad_fn.register_prehook(lambda _, k=k: seen.append(k))
        torch.autograd.grad([g.sum() for g in both if g.requires_grad], w, allow_unused=True)
        log(seen, [g.grad_fn and g.grad_fn.name() for g in both])
        if all(g.grad_fn is not None for g in both):
            log(both[0].grad_fn._sequence_nr() > both[1].grad_fn._sequence_nr())
