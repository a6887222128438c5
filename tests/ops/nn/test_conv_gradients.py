"""`nn.grad` and `aten.convolution_backward` against the live torch."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)]
)
def test_gradients_by_shape(
    dims: int, stride: int, padding: int, dilation: int, groups: int
) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        F, nn_grad = torch.nn.functional, torch.nn.grad
        settings = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        numbers = torch.linspace(-1, 1, 4 * (4 // groups) * 2**dims, dtype=torch.float64)
        w = numbers.reshape(4, 4 // groups, *(2,) * dims).requires_grad_()
        x = torch.linspace(-2, 1, 2 * 4 * 5**dims, dtype=torch.float64)
        x = x.reshape(2, 4, *(5,) * dims).requires_grad_()
        out = getattr(F, f"conv{dims}d")(x, w, **settings)
        g = torch.linspace(0, 1, out.numel(), dtype=torch.float64).reshape(out.shape)
        g.requires_grad_()
        by_input = getattr(nn_grad, f"conv{dims}d_input")(x.shape, w, g, **settings)
        by_weight = getattr(nn_grad, f"conv{dims}d_weight")(x, w.shape, g, **settings)
        log([by_input.detach(), by_weight.detach()])
        log([by_input.grad_fn.name(), by_weight.grad_fn.name()])
        for made, of in ((by_input, (w, g)), (by_weight, (x, g))):
            found = torch.autograd.grad((made * made).sum(), of, retain_graph=True)
            log([t.clone() for t in found])
        with torch.no_grad():
            plain = getattr(nn_grad, f"conv{dims}d_input")(x.shape, w, g, **settings)
        log([plain.requires_grad, plain])


@pytest.mark.parametrize("mask", [(True, True, True), (True, False, False), (False, True, True)])
@pytest.mark.parametrize("transposed", [False, True])
def test_convolution_backward(transposed: bool, mask: tuple[bool, ...]) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.linspace(-1, 1, 2 * 2 * 4 * 4, dtype=torch.float64).reshape(2, 2, 4, 4)
        w = torch.linspace(-1, 2, 2 * 2 * 3 * 3, dtype=torch.float64).reshape(2, 2, 3, 3)
        size = 9 if transposed else 2
        g = torch.linspace(0, 1, 2 * 2 * size * size, dtype=torch.float64)
        g = g.reshape(2, 2, size, size).requires_grad_(mask[0])
        made = torch.ops.aten.convolution_backward(
            g, x, w, [2], [2, 2], [1, 1] if not transposed else [0, 0], [1, 1], transposed,
            [0, 0], 1, mask,
        )  # fmt: skip
        log([None if t is None else t.detach() for t in made])
        log([t is not None and t.requires_grad for t in made])


def test_a_gradient_of_another_shape() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        w, g = torch.ones(1, 1, 2, 2), torch.ones(1, 1, 3, 3)
        log.attempt(torch.nn.grad.conv2d_input, (1, 1, 3, 3), w, g)
        log.attempt(torch.nn.grad.conv2d_input, (1, 2, 3, 3), w, g)


def test_the_edge_of_a_function_has_an_owner() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        w = torch.ones(2, requires_grad=True)
        for made in (w, w * 2, Double.apply(w)):
            with torch.no_grad():
                edge = torch.autograd.graph.get_gradient_edge(made)
            token = edge.ownership_token
            log([None if token is None else token.name(), made._version])
            log(torch.autograd.grad(made.sum(), edge))
