"""Matrix products against live PyTorch: values, gradients, dtypes and errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.ops_agree import agree

from leafax.functional.ops.linalg import einsum, matmul

assert einsum and matmul  # imported to enter their ops into the table

pytestmark = pytest.mark.filterwarnings("ignore:Using torch.cross without")


def t(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


A, AT, V3, V2, S = t(2, 3), t(3, 2), t(3), t(2), t()
B, BT = t(4, 2, 3), t(4, 3, 5)
INT, BOOL = torch.arange(6).reshape(2, 3), torch.ones(2, 2, dtype=torch.bool)


def z(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


CALLS: list[tuple[Any, ...]] = [
    ("matmul", A, AT), ("matmul", A, V3), ("matmul", V2, A), ("matmul", V3, V3),
    ("matmul", B, BT), ("matmul", B, t(3, 5)), ("matmul", B, V3), ("matmul", V3, BT),
    ("matmul", A, BT), ("matmul", t(5, 1, 2, 3), BT), ("matmul", INT, INT.t().contiguous()),
    ("matmul", A.float(), AT.float()), ("matmul", A.half(), AT.half()), ("matmul", A, A),
    ("matmul", A, V2), ("matmul", V3, A), ("matmul", V3, V2), ("matmul", S, A), ("matmul", A, S),
    ("matmul", S, S), ("matmul", B, t(3, 3, 5)), ("matmul", B, t(4, 5, 3)), ("matmul", B, t(5, 4)),
    ("matmul", B, V2), ("matmul", t(2, 3, 2, 3), t(3, 4, 5)), ("matmul", A, AT.float()),
    ("matmul", z(2, 2).half(), z(2, 2)), ("matmul", INT, AT),
    ("matmul", INT.int(), INT.short().t()),
    ("matmul", A.float(), V3), ("matmul", V3, V3.float()), ("matmul", B, BT.float()),
    ("matmul", B, t(3, 5).float()), ("matmul", BOOL, BOOL), ("matmul", BOOL, BOOL[0]),
    ("matmul", BOOL[0], BOOL[0]), ("matmul", BOOL[None], BOOL[None]),
    ("mm", A, AT), ("mm", A, A), ("mm", A, V3), ("mm", V3, A), ("mm", A, AT.float()),
    ("bmm", B, BT), ("bmm", B, B), ("bmm", A, A), ("bmm", B, A), ("bmm", t(3, 2, 3), BT),
    ("bmm", B, BT.float()), ("mv", A, V3), ("mv", A, V2), ("mv", A, AT), ("mv", A, V3.float()),
    ("mv", B, V3), ("dot", V3, V3), ("dot", V3, V2), ("dot", A, V3), ("dot", V3, V3.float()),
    ("vdot", V3, t(3)), ("vdot", V3, V2), ("inner", V3, t(3)), ("inner", A, A), ("inner", B, A),
    ("inner", A, V2), ("inner", S, A), ("inner", A, A.float()), ("outer", V2, V3), ("outer", A, V2),
    ("outer", V2, A), ("outer", V2, V3.float()), ("ger", V2, V3), ("addmm", t(2, 2), A, AT),
    ("addmm", V2, A, AT), ("addmm", S, A, AT), ("addmm", A, A, A), ("addmm", A, A, AT),
    ("addmm", z(2, 2), A, AT), ("addmm", t(2, 2), A, AT.float()), ("addmm", t(2, 2), A.float(), AT),
    ("addmm", t(2, 2), B, AT), ("addmm", t(2, 2), A, V3), ("addmm", t(3, 2, 2), A, AT),
    ("addmv", V2, A, V3), ("addmv", V3, A, V3), ("addmv", V2, A, V2), ("addmv", V2, V2, V2),
    ("addmv", S, A, V3), ("addmv", V2.float(), A, V3), ("addr", A, V2, V3), ("addr", A, V3, V3),
    ("addr", A, A, V3), ("addr", A.float(), V2, V3), ("baddbmm", t(4, 2, 5), B, BT),
    ("baddbmm", t(5), B, BT), ("baddbmm", V2, B, BT), ("baddbmm", t(4, 2, 3), B, B),
    ("baddbmm", S, A, BT), ("baddbmm", S, B, BT.float()), ("addbmm", t(2, 5), B, BT),
    ("addbmm", t(2, 2), B, BT), ("addbmm", t(2, 3), B, t(4, 2, 3)), ("addbmm", S, A, BT),
    ("addbmm", S, B, t(3, 3, 5)), ("addbmm", S, B, BT.float()),
    ("tensordot", A, t(2, 3)), ("tensordot", A, AT, 1), ("tensordot", A, A, ([1], [1])),
    ("tensordot", B, t(3, 4, 6), ([0, 2], [1, 0])), ("tensordot", A, V2, 0), ("tensordot", A, A, 1),
    ("tensordot", A, A, ([0, 1], [1])), ("tensordot", A, A, -1), ("tensordot", A, A, 3),
    ("tensordot", A, A.float()), ("kron", A, AT), ("kron", V2, A), ("kron", S, A),
    ("kron", A, INT), ("cross", A, t(2, 3)), ("cross", t(3, 4), t(3, 4)), ("cross", A, A, 0),
    ("cross", V2, V2), ("cross", A, V3), ("linalg.cross", A, t(1, 3)), ("linalg.cross", V2, V2),
    ("linalg.cross", A, t(4, 3)), ("linalg.cross", A, V3), ("linalg.multi_dot", (A, AT, A)),
    ("linalg.multi_dot", (A, V3, A)), ("linalg.multi_dot", (S, A)), ("linalg.multi_dot", (A, A)),
    ("linalg.multi_dot", (A, S)), ("linalg.multi_dot", (V3, V3)),
    ("linalg.vecdot", A, A), ("linalg.vecdot", A, V2), ("linalg.matmul", A, AT),
]  # fmt: skip


@pytest.mark.quick(45)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_call(call: tuple[Any, ...]) -> None:
    agree(*call, tol=2e-3 if getattr(call[1], "dtype", None) == torch.float16 else None)


SCALES = [{"beta": 2}, {"alpha": 0.5}, {"beta": 0, "alpha": -1}, {"beta": 0.5, "alpha": 3}]


@pytest.mark.parametrize("scales", SCALES, ids=str)
def test_scales(scales: dict[str, float]) -> None:
    agree("addmm", t(2, 2), A, AT, **scales)
    agree("addmv", V2, A, V3, **scales)
    agree("addr", A, V2, V3, **scales)
    agree("baddbmm", t(4, 2, 5), B, BT, **scales)
    agree("addbmm", t(2, 5), B, BT, **scales)
    whole = INT.new_ones(2, 2)
    agree("addmm", whole, INT, INT.t().contiguous(), **scales)
    agree("addr", whole, INT[0, :2], INT[1, :2], **scales)


def test_zero_beta_ignores_nan() -> None:
    agree("addmm", torch.full((2, 2), float("nan")), z(2, 3), z(3, 2), beta=0)


EQUATIONS: list[tuple[Any, ...]] = [
    ("ij,kj->ik", A, A), ("ij,jk", A, AT), ("bij,bjk->bik", B, BT), ("ii->i", t(2, 2)),
    ("ii", t(2, 2)), ("ij->", A), ("ij->j", A), ("i,i->", V3, V3), ("...i,...j->...ij", A, B[0]),
    ("b...->...", A), ("i j -> j i", A), ("Ij,IJ", A, A), ("i,j,k->kji", V2, V3, V2),
    ("ij->...", A),
    ("ij,->", A, S), ("ij,jk->ik", A, A), ("ij,jk->iz", A, AT), ("ij", A, A), ("i,j", V2),
    ("ijk", A), ("i", A), ("ii", A), ("ij->ijj", A), ("i1", A), ("..j->j", A), ("ij->->", A),
    ("ij,kj->ik", A, A.float()), ("i,i->i", V3, t(1)),
]  # fmt: skip


@pytest.mark.parametrize("call", EQUATIONS, ids=lambda c: c[0])
def test_einsum(call: tuple[Any, ...]) -> None:
    equation, *operands = call
    agree("einsum", equation, tuple(operands), theirs=lambda text, many: torch.einsum(text, *many))
