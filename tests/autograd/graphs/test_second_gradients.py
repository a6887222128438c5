"""Second gradients by an op's own result, where PyTorch's formula of the first one reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

PRODUCTS: list[Callable[[Any], Any]] = [
    lambda x: x.cumprod(0), lambda x: x.cumprod(1), lambda x: x.prod(),
    lambda x: x.prod(1), lambda x: x.prod(0, keepdim=True),
    lambda x: (x * (1 + 0.5j)).prod(), lambda x: (x * (1 - 0.3j)).cumprod(1),
]  # fmt: skip
MATRICES: dict[str, Callable[[Any, Any], Any]] = {
    "cholesky": lambda lib, a: lib.cholesky(a @ a.mT + lib.eye(3).double()),
    "upper": lambda lib, a: lib.linalg.cholesky(a @ a.mT + lib.eye(3).double(), upper=True),
    "solve": lambda lib, a: lib.linalg.solve(a, a[:, :2] + 1),
    "solve of a vector": lambda lib, a: lib.linalg.solve(a, a[0]),
    "solve from the right": lambda lib, a: lib.linalg.solve(a, a[:2], left=False),
    "solve_ex": lambda lib, a: lib.linalg.solve_ex(a, a.sin())[0],
    "solve of many": lambda lib, a: lib.linalg.solve(lib.stack([a, a * 2]), a),
    "triangular": lambda lib, a: lib.linalg.solve_triangular(a, a.cos(), upper=True),
    "unitriangular": lambda lib, a: lib.linalg.solve_triangular(
        a, a.cos(), upper=False, left=False, unitriangular=True
    ),
    "inv_ex": lambda lib, a: lib.linalg.inv_ex(a)[0],
    "pinv": lambda lib, a: lib.linalg.pinv(a),
    "pinv of a high one": lambda lib, a: lib.linalg.pinv(a[:, :2]),
    "pinverse of a wide one": lambda lib, a: lib.pinverse(a[:2]),
}
SPECIAL = "erfcx i0e i1 i1e ndtri log_ndtr".split()


@pytest.mark.quick(1)
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products(zeros: int) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        data = [[1.0, 2.0, -0.5], [0.75, -1.5, 0.125], [0.25, 0.5, 0.75]]
        for row in range(zeros):
            data[row][1] = 0.0
        x = torch.tensor(data, dtype=torch.float64, requires_grad=True)
        for call in PRODUCTS:
            y = call(x)
            (g,) = torch.autograd.grad((y * y).sum().real, x, create_graph=True)
            of_x, of_y = torch.autograd.grad((g * g).sum(), [x, y], allow_unused=True)
            log(g.detach() + 0, of_x + 0, of_y is None)  # whatever their versions
            if of_y is not None:
                log(torch.view_as_real(of_y.to(torch.complex128)).abs())  # whatever zeros' signs


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        data = [[2.0, 0.5, -0.25], [-0.5, 1.0, 0.75], [1.5, -1.0, 3.0]]
        a = torch.tensor(data, dtype=torch.float64, requires_grad=True)
        y = MATRICES[name](torch, a)
        (g,) = torch.autograd.grad((y * y * y).sum(), a, create_graph=True)
        log([x + 0 for x in (g.detach(), *torch.autograd.grad((g * g).sum(), [a, y]))])


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([0.125, 0.5, 0.875], dtype=torch.float64, requires_grad=True)
        y = getattr(torch.special, name)(x)
        (g,) = torch.autograd.grad((y * y * y).sum(), x, create_graph=True)
        log([x + 0 for x in (g.detach(), *torch.autograd.grad((g * g).sum(), [x, y]))])
