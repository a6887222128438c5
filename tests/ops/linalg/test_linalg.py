"""Norms, solvers and decompositions against live PyTorch: values, gradients and errors."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.ops_agree import agree

from leafax.functional.ops.linalg import decompositions, linalg
from leafax.functional.ops.reduction import norms
from leafax.functional.program.op import TABLE

assert decompositions and linalg and norms  # imported to enter their ops into the table


def t(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


def positive(*shape: int) -> torch.Tensor:
    x = t(*shape)
    return x @ x.mT + 2 * torch.eye(shape[-1], dtype=x.dtype)


A, SQ, BATCH, V = t(3, 4), t(3, 3), t(2, 3, 3), t(4)
PD, Z, INT = positive(3, 3), torch.zeros(3, 3, dtype=torch.float64), torch.ones(3, 3).long()
HALF = torch.stack([SQ, Z])
BAD_MINOR = torch.diag(torch.tensor([1.0, 2, -1], dtype=torch.float64))

CALLS: list[tuple[Any, ...]] = [
    ("linalg.inv", SQ), ("linalg.inv", BATCH), ("linalg.inv", A), ("linalg.inv", V),
    ("linalg.inv", INT), ("linalg.inv", Z), ("linalg.inv", HALF), ("inverse", SQ),
    ("linalg.inv", SQ.float()), ("linalg.det", SQ), ("linalg.det", BATCH), ("linalg.det", A),
    ("linalg.det", INT), ("det", SQ), ("linalg.slogdet", SQ), ("linalg.slogdet", A),
    ("slogdet", BATCH), ("logdet", PD), ("linalg.solve", SQ, t(3)), ("linalg.solve", SQ, t(3, 2)),
    ("linalg.solve", BATCH, t(2, 3)), ("linalg.solve", BATCH, t(3)),
    ("linalg.solve", BATCH, t(3, 4)),
    ("linalg.solve", SQ, V), ("linalg.solve", SQ, t(4, 3)), ("linalg.solve", A, V),
    ("linalg.solve", Z, t(3)), ("linalg.solve", HALF, t(2, 3)), ("linalg.solve", SQ, t(3).float()),
    ("linalg.matrix_power", SQ, 3), ("linalg.matrix_power", SQ, 0), ("linalg.matrix_power", SQ, -2),
    ("linalg.matrix_power", A, 2), ("linalg.matrix_power", V, 2), ("matrix_power", BATCH, 2),
    ("linalg.pinv", A), ("linalg.pinv", V), ("pinverse", A), ("linalg.cholesky", PD),
    ("linalg.cholesky", positive(2, 3, 3)), ("linalg.cholesky", SQ + 9 * torch.eye(3)),
    ("linalg.cholesky", A), ("linalg.cholesky", V), ("linalg.cholesky", -PD), ("cholesky", PD),
    ("linalg.cholesky", BAD_MINOR), ("linalg.cholesky", torch.stack([PD, BAD_MINOR])),
    ("cholesky", BAD_MINOR), ("cholesky", PD, True), ("linalg.svdvals", A), ("linalg.svdvals", V),
    ("linalg.eigvalsh", PD), ("linalg.eigvalsh", SQ), ("linalg.eigvalsh", A), ("linalg.eigh", INT),
    ("linalg.eigh", PD, "Z"), ("linalg.qr", SQ, "foo"), ("linalg.qr", V), ("linalg.svd", V),
    ("linalg.vector_norm", A), ("linalg.vector_norm", INT), ("linalg.vector_norm", t(0)),
    ("linalg.vector_norm", t(0), -1), ("linalg.vector_norm", t(0), math.inf),
    ("linalg.vector_norm", A, 2, 3), ("linalg.vector_norm", A, 2, (0, 0)),
    ("linalg.matrix_norm", A), ("linalg.matrix_norm", V), ("linalg.matrix_norm", A, 3),
    ("linalg.matrix_norm", A, "foo"), ("linalg.matrix_norm", A, "fro", (0, 0)),
    ("linalg.matrix_norm", INT), ("linalg.norm", BATCH), ("linalg.norm", BATCH, 2),
    ("linalg.norm", BATCH, 2, (0, 1, 2)), ("linalg.norm", A, "fro"), ("linalg.norm", A, 2),
    ("linalg.norm", V, 3), ("linalg.norm", V, "fro"), ("linalg.norm", A, 1, 0),
    ("linalg.norm", A, None, (0, 1)), ("linalg.norm", BATCH, "nuc", (0, 2), True),
]  # fmt: skip


@pytest.mark.quick(12)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
@pytest.mark.filterwarnings("ignore:torch.cholesky is deprecated")
def test_call(call: tuple[Any, ...]) -> None:
    agree(*call, tol=1e-4 if getattr(call[1], "dtype", None) == torch.float32 else 1e-8)


@pytest.mark.quick(2)
@pytest.mark.parametrize("order", [0, 0.5, 1, 2, 3, -1, -2, math.inf, -math.inf])
def test_vector_norm(order: float) -> None:
    ties = torch.tensor([[2.0, -2, 1], [2, 2, 1]], dtype=torch.float64)
    for x in (A, ties):
        agree("linalg.vector_norm", x, order)
        agree("linalg.vector_norm", x, order, dim=1, keepdim=True)
    zero = torch.tensor([0.0, 3, -4], dtype=torch.float64)
    agree("linalg.vector_norm", zero, order, grad=order >= 1)


@pytest.mark.parametrize("order", [1, 2, 3, math.inf])
def test_gradient_at_zero(order: float) -> None:
    agree("linalg.vector_norm", torch.zeros(3, dtype=torch.float64), order)


@pytest.mark.parametrize("order", ["fro", "nuc", 1, 2, -1, -2, math.inf, -math.inf])
def test_matrix_norm(order: Any) -> None:
    agree("linalg.matrix_norm", A, order)
    agree("linalg.matrix_norm", BATCH, order, (0, 2), True)


def ours(name: str, x: torch.Tensor, *args: Any) -> Any:
    return TABLE[name].fn(jnp.asarray(x.numpy()), *args)


@pytest.mark.parametrize("x", [A, A.mT.contiguous(), BATCH], ids=["wide", "tall", "batch"])
@pytest.mark.parametrize("full", [True, False])
def test_svd(x: torch.Tensor, full: bool) -> None:
    with jax.enable_x64(True):
        got, want = ours("linalg.svd", x, full), torch.linalg.svd(x, full_matrices=full)
        for g, w in zip(got, want, strict=True):
            np.testing.assert_allclose(np.abs(g), np.abs(w.numpy()), atol=1e-10)
        k = got.S.shape[-1]
        rebuilt = (got.U[..., :k] * got.S[..., None, :]) @ got.Vh[..., :k, :]
        np.testing.assert_allclose(rebuilt, x.numpy(), atol=1e-10)


@pytest.mark.parametrize("mode", ["reduced", "complete", "r"])
@pytest.mark.parametrize("x", [A, A.mT.contiguous()], ids=["wide", "tall"])
def test_qr(x: torch.Tensor, mode: str) -> None:
    with jax.enable_x64(True):
        got, want = ours("linalg.qr", x, mode), torch.linalg.qr(x, mode)
        for g, w in zip(got, want, strict=True):
            assert g.shape == tuple(w.shape)
            np.testing.assert_allclose(np.abs(g), np.abs(w.numpy()), atol=1e-10)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigh(uplo: str) -> None:
    with jax.enable_x64(True):
        got, want = ours("linalg.eigh", SQ, uplo), torch.linalg.eigh(SQ, uplo)
        np.testing.assert_allclose(got.eigenvalues, want.eigenvalues.numpy(), atol=1e-10)
        np.testing.assert_allclose(
            np.abs(got.eigenvectors), np.abs(want.eigenvectors.numpy()), atol=1e-10
        )
