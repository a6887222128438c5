"""Reductions, extrema, scans and sorting against live PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.ops_nn import compare, compare_gradients, same, same_error, to_jax

import leafax
from leafax.functional.ops.reduction import extrema as E
from leafax.functional.ops.reduction import reduction as R
from leafax.functional.ops.reduction import scans as C
from leafax.functional.ops.reduction import sorting as S
from leafax.functional.ops.reduction import torch_norm as N

NAN, INF = float("nan"), float("inf")
Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]
generator = torch.Generator().manual_seed(0)
X = torch.randn(3, 4, generator=generator)
CUBE = torch.randn(2, 3, 4, generator=generator)
ZEROS = torch.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
TIES = torch.tensor([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 1.0]])
HOLES = torch.tensor([[1.0, NAN, 3.0, 2.0], [4.0, 2.0, 5.0, 1.0]])
LOW = torch.tensor([[-INF, -INF], [0.0, -INF], [1.0, 2.0]])
ZERO_D = torch.tensor(3.0)
EMPTY = torch.zeros(0, 3)
I = torch.tensor([[3, 1, 2], [2, 2, 5]])  # noqa: E741
T = torch.tensor([True, False, True])
SMALL = torch.tensor([3, 0, 250], dtype=torch.uint8)
CPLX = torch.tensor([1 + 2j, -0.5j, -3.0 + 0j])


def _vector_norm(x: Any, *args: Any, **kwargs: Any) -> Any:
    return torch.Tensor.norm(x, *args, **kwargs)


def _max(x: Any, dim: int, keepdim: bool = False) -> Any:
    return torch.max(x, dim, keepdim)


def _min(x: Any, dim: int, keepdim: bool = False) -> Any:
    return torch.min(x, dim, keepdim)


DIMS: tuple[dict[str, Any], ...] = ({}, {"dim": 1}, {"dim": (0, -1), "keepdim": True}, {"dim": ()})

SMOOTH: list[Case] = [
    *((body, getattr(torch, body.__name__), (CUBE,), kw) for kw in DIMS
      for body in (R.sum, R.mean, R.nansum, R.nanmean, E.amax, E.amin)),
    # PyTorch's gradient for `dim=()` is infinite.
    *((body, getattr(torch, body.__name__), (CUBE,), kw) for kw in DIMS[:3]
      for body in (R.var, R.std)),
    *((body, getattr(torch, body.__name__), (HOLES,), kw) for kw in DIMS[:2]
      for body in (R.sum, R.nansum, R.nanmean, E.amax)),
    *((body, getattr(torch, body.__name__), (ZERO_D,), {}) for body in (
        R.sum, R.mean, R.prod, E.max, E.amin, E.aminmax, S.median)),
    (R.prod, torch.prod, (ZEROS,), {}),
    (R.prod, torch.prod, (ZEROS,), {"dim": 1}),
    (R.prod, torch.prod, (torch.tensor([2.0, 0.0, 3.0]),), {}),
    (R.var, torch.var, (X, 0, False), {}),
    (R.var, torch.var, (X, False), {}),
    (R.var, torch.var, (X,), {"dim": 1, "correction": 0, "keepdim": True}),
    (R.std, torch.std, (TIES * 0 + 1,), {"dim": 1}),
    (R.var_mean, torch.var_mean, (X,), {"dim": 1}),
    (R.std_mean, torch.std_mean, (X,), {"keepdim": True}),
    *((N.norm, _vector_norm, (x,), {"p": p, "dim": d}) for x in (X, ZEROS) for d in (None, 1)
      for p in ("fro", 2, 1, 0, 3.0, 1.5, INF, -INF)),
    (N.norm, _vector_norm, (ZEROS * 0,), {}),
    (N.norm, _vector_norm, (ZEROS * 0,), {"p": 3, "dim": 0}),
    (N.norm, _vector_norm, (X,), {"p": -1, "dim": (0, 1), "keepdim": True}),
    (N.norm, _vector_norm, (EMPTY,), {}),
    (R.logsumexp, torch.logsumexp, (X, 1), {}),
    (R.logsumexp, torch.logsumexp, (CUBE, (0, 2), True), {}),
    (R.logsumexp, torch.logsumexp, (LOW[1:], 1), {}),
    *((body, ref, (x,), {}) for body, ref in ((E.max, torch.max), (E.min, torch.min))
      for x in (X, TIES)),
    *((body, ref, (x, d, k), {}) for body, ref in ((E.max_dim, _max), (E.min_dim, _min))
      for x in (X, TIES, HOLES) for d, k in ((0, False), (1, True))),
    (E.max_dim, _max, (ZERO_D, 0), {}),
    (E.aminmax, torch.aminmax, (TIES,), {}),
    (E.aminmax, torch.aminmax, (TIES,), {"dim": 1, "keepdim": True}),
    *((getattr(C, n), getattr(torch, n), (x, d), {}) for x in (X, TIES, ZEROS) for d in (0, -1)
      for n in ("cumsum", "cumprod", "logcumsumexp", "cummax", "cummin")),
    *((getattr(C, n), getattr(torch, n), (ZERO_D, 0), {}) for n in (
        "cumsum", "cumprod", "logcumsumexp", "cummax")),
    (C.cummax, torch.cummax, (HOLES, 1), {}),
    (C.cummin, torch.cummin, (HOLES, 1), {}),
    *((S.sort, torch.sort, (x,), {"dim": d, "descending": down, "stable": True})
      for x in (X, TIES, HOLES) for d in (0, 1) for down in (False, True)),
    (S.sort, torch.sort, (ZERO_D,), {}),
    *((S.topk, torch.topk, (X, 2), {"dim": d, "largest": big})
      for d in (0, 1) for big in (False, True)),
    (S.topk, torch.topk, (HOLES, 2), {}),
    (S.topk, torch.topk, (HOLES, 4), {"largest": False}),
    (S.kthvalue, torch.kthvalue, (X, 2), {}),
    (S.kthvalue, torch.kthvalue, (X, 3, 0, True), {}),
    (S.kthvalue, torch.kthvalue, (HOLES, 4), {}),
    *((body, ref, (x,), {}) for body, ref in (
        (S.median, torch.median), (S.nanmedian, torch.nanmedian)) for x in (X, TIES, HOLES)),
    *((body, ref, (x, d), {}) for body, ref in (
        (S.median_dim, torch.median), (S.nanmedian_dim, torch.nanmedian))
        for x in (X, HOLES) for d in (0, 1)),
    (S.mode, torch.mode, (X,), {}),
    (S.mode, torch.mode, (TIES,), {}),
    (S.mode, torch.mode, (TIES, 0, True), {}),
]  # fmt: skip


def _label(case: Any) -> str:
    parts = [str(a) for a in case[2][1:]] + [f"{k}={v}" for k, v in case[3].items()]
    return "-".join([case[0].__name__, *parts])


@pytest.mark.quick(28)
@pytest.mark.parametrize("case", SMOOTH, ids=_label)
def test_values_and_gradients(case: Any) -> None:
    body, reference, args, kwargs = case
    smooth = not (body in (R.nanmean,) and args[0] is HOLES)
    compare(body, reference, args, grad=smooth, tolerance=1e-5, **kwargs)


EXACT: list[Case] = [
    *((body, getattr(torch, body.__name__), (x,), {}) for x in (I, T, SMALL)
      for body in (R.sum, R.prod, R.nansum, R.all, R.any, R.count_nonzero, E.max, E.amin, S.mode)),
    *((body, getattr(torch, body.__name__), (I,), {"dim": 1}) for body in (
        R.sum, R.prod, R.all, R.any, R.count_nonzero, R.logsumexp, E.amax, E.argmax, E.argmin,
        C.cumsum, C.cumprod, C.cummax, C.cummin, S.argsort, S.mode)),
    (R.sum, torch.sum, (X,), {"dtype": torch.int64}),
    (R.sum, torch.sum, (I,), {"dtype": torch.float32}),
    (R.sum, torch.sum, (I,), {"dtype": torch.bool}),
    (R.mean, torch.mean, (I,), {"dtype": torch.float64}),
    (R.mean, torch.mean, (X.half(),), {}),
    (R.mean, torch.mean, (EMPTY,), {}),
    (R.var, torch.var, (EMPTY, 0), {}),
    (R.sum, torch.sum, (EMPTY, 0), {}),
    (R.prod, torch.prod, (EMPTY,), {}),
    (R.all, torch.all, (EMPTY,), {}),
    (R.all, torch.all, (X,), {"dim": ()}),
    (R.any, torch.any, (X,), {"dim": (0, 1), "keepdim": True}),
    *((body, getattr(torch, body.__name__), (CPLX,), {}) for body in (
        R.sum, R.mean, R.prod, R.var, R.std, R.var_mean, R.all)),
    (N.norm, _vector_norm, (CPLX,), {}),
    (N.norm, _vector_norm, (CPLX,), {"p": 3}),
    (N.norm, _vector_norm, (X,), {"dtype": torch.float64}),
    (N.norm, _vector_norm, (X.bfloat16(),), {}),
    (R.logsumexp, torch.logsumexp, (LOW, 1), {}),
    (R.logsumexp, torch.logsumexp, (EMPTY, 0), {}),
    (R.logsumexp, torch.logsumexp, (CPLX, 0), {}),
    (C.cumsum, torch.cumsum, (X, 0), {"dtype": torch.int32}),
    (C.cumsum, torch.cumsum, (EMPTY, 0), {}),
    (C.cumprod, torch.cumprod, (T, 0), {}),
    (C.cummax, torch.cummax, (T, 0), {}),
    (E.max_dim, _max, (T, 0), {}),
    (E.max_dim, _max, (I, 1), {}),
    (E.max_dim, _max, (EMPTY, 1), {}),
    (E.amax, torch.amax, (EMPTY, 1), {}),
    (E.argmax, torch.argmax, (HOLES,), {}),
    (E.argmax, torch.argmax, (X,), {"keepdim": True}),
    (E.argmin, torch.argmin, (HOLES,), {"dim": 1, "keepdim": True}),
    (E.argmax, torch.argmax, (EMPTY, 1), {}),
    (S.sort, torch.sort, (T,), {"stable": True}),
    (S.sort, torch.sort, (I,), {"stable": True, "descending": True}),
    (S.sort, torch.sort, (EMPTY,), {}),
    (S.argsort, torch.argsort, (X, 0, True), {}),
    (S.topk, torch.topk, (EMPTY, 1), {}),
    (S.topk, torch.topk, (SMALL, 2), {}),
    (S.kthvalue, torch.kthvalue, (SMALL, 2), {}),
    (S.median, torch.median, (I,), {}),
    (S.median, torch.median, (EMPTY,), {}),
    (S.median_dim, torch.median, (SMALL, 0), {}),
    (S.mode, torch.mode, (HOLES,), {}),
]  # fmt: skip


@pytest.mark.quick(14)
@pytest.mark.filterwarnings("ignore:var.*degrees of freedom")
@pytest.mark.parametrize("case", EXACT, ids=_label)
def test_dtypes_and_special_values(case: Any) -> None:
    body, reference, args, kwargs = case
    theirs = reference(*args, **kwargs)
    if "dtype" in kwargs:
        kwargs = {**kwargs, "dtype": np.dtype(str(kwargs["dtype"]).removeprefix("torch."))}
    with jax.enable_x64(True):
        ours = body(*map(to_jax, args), **kwargs)
        many = isinstance(theirs, tuple)
        for o, t in zip(*((ours, theirs) if many else ((ours,), (theirs,))), strict=True):
            same(o, t, 0 if t.dtype == torch.bool else 1e-2 if t.itemsize == 2 else 1e-5)


WRONG: list[Case] = [
    *((body, getattr(torch, body.__name__), (X, 2), {}) for body in (
        R.sum, R.mean, R.prod, R.all, R.var, R.logsumexp, R.count_nonzero, R.nansum, E.amax,
        E.argmax, C.cumsum, C.cummax, C.logcumsumexp, S.sort, S.argsort, S.mode)),
    (R.sum, torch.sum, (X, (0, 0)), {}),
    (R.sum, torch.sum, (ZERO_D, 1), {}),
    (R.mean, torch.mean, (I,), {}),
    (R.mean, torch.mean, (T, 0), {}),
    (R.mean, torch.mean, (X,), {"dtype": torch.int32}),
    *((body, getattr(torch, body.__name__), (I,), {}) for body in (
        R.var, R.std, R.var_mean, R.std_mean, R.nanmean)),
    (R.nansum, torch.nansum, (CPLX,), {}),
    (N.norm, _vector_norm, (I,), {}),
    (N.norm, _vector_norm, (X, 2, 2), {}),
    (N.norm, _vector_norm, (X, "foo"), {}),
    (N.norm, _vector_norm, (EMPTY, INF), {}),
    (N.norm, _vector_norm, (EMPTY, INF, 0), {}),
    (N.norm, _vector_norm, (X,), {"dtype": torch.int32}),
    (N.norm, _vector_norm, (X,), {"dtype": torch.float16}),
    *((body, ref, (x, *rest), {}) for body, ref, rest in (
        (E.max, torch.max, ()), (E.min, torch.min, ()), (E.max_dim, _max, (0,)),
        (E.min_dim, _min, (0,)), (E.amax, torch.amax, ()), (E.amin, torch.amin, (0,)),
        (E.argmax, torch.argmax, ()), (E.argmin, torch.argmin, (0,)))
        for x in (EMPTY, CPLX)),
    (E.argmax, torch.argmax, (T,), {}),
    (E.aminmax, torch.aminmax, (EMPTY,), {}),
    (E.aminmax, torch.aminmax, (EMPTY,), {"dim": 0}),
    (E.aminmax, torch.aminmax, (CPLX,), {}),
    (C.cummax, torch.cummax, (CPLX, 0), {}),
    (C.logcumsumexp, torch.logcumsumexp, (I, 0), {}),
    (S.sort, torch.sort, (CPLX,), {}),
    *((S.topk, torch.topk, (x, k), {}) for x, k in (
        (X, 5), (X, -1), (ZERO_D, 2), (CPLX, 1), (T, 1))),
    (S.topk, torch.topk, (X, 2, 2), {}),
    *((S.kthvalue, torch.kthvalue, (x, *k), {}) for x, k in (
        (X, (5,)), (X, (0,)), (X, (1, 2)), (EMPTY, (1, 0)), (T, (1,)))),
    *((S.median, torch.median, (x,), {}) for x in (CPLX, T)),
    (S.median_dim, torch.median, (EMPTY, 0), {}),
    (S.median_dim, torch.median, (T, 0), {}),
    (S.mode, torch.mode, (EMPTY, 0), {}),
    (S.mode, torch.mode, (CPLX,), {}),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=_label)
def test_errors(case: Any) -> None:
    body, reference, args, kwargs = case
    ours = dict(kwargs)
    if "dtype" in kwargs:
        ours["dtype"] = np.dtype(str(kwargs["dtype"]).removeprefix("torch."))
    with jax.enable_x64(True):
        made = [to_jax(a) for a in args]
    same_error(lambda: body(*made, **ours), lambda: reference(*args, **kwargs))


def test_variance_differentiates_twice() -> None:
    def penalty(v: Any) -> Any:
        return jnp.sum(jax.grad(lambda w: R.var(w))(v) ** 2)

    with jax.enable_x64(True):
        x = X.double().requires_grad_()
        (first,) = torch.autograd.grad(x.var(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.pow(2).sum(), x)
        np.testing.assert_allclose(jax.grad(penalty)(to_jax(x)), second.numpy(), rtol=1e-9)


def test_gradient_of_topk_in_a_loss() -> None:
    compare_gradients(
        lambda x: S.topk(x, 2).values.sum(-1), lambda x: torch.topk(x, 2).values.sum(-1), (X,)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logcumsumexp_from_infinity_on(dtype: str) -> None:
    """Numbers added to infinity have no part in it: gradients were differences of infinities."""

    def gradient(lib: Any) -> Any:
        x = lib.tensor([1.0, float("inf"), 2.0], dtype=getattr(lib, dtype), requires_grad=True)
        y = x.logcumsumexp(0)
        y.sum().backward()
        return y.tolist(), x.grad.numpy()

    (ours, found), (theirs, expected) = gradient(leafax), gradient(torch)
    assert ours == theirs
    np.testing.assert_allclose(found, expected)
