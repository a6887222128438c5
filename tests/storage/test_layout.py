"""Strides of what ops make: elementwise results lie in memory as their operands do."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax
from leafax.functional import TABLE
from leafax.functional.ops.shape.view_rules import VIEW_RULES

OPERANDS = (
    lambda x: x.t(),
    lambda x: x.unsqueeze(0).transpose(0, 2),
    lambda x: x.view(3, 2, 1).permute(2, 0, 1),
    lambda x: x[:, ::2],
    lambda x: x.t()[1:],
    lambda x: x.expand(2, 2, 3).permute(1, 2, 0),
)
LAST = (
    lambda x: x,
    lambda x: x.contiguous(),
    lambda x: x[..., :1],
    lambda x: x.flip(0),
    lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
    lambda x: 2.0,
)


@pytest.mark.parametrize("which", range(len(OPERANDS)))
def test_binary_results_lie_as_their_operands(which: int) -> None:
    def program(torch: Any, see: Any) -> None:
        x = OPERANDS[which](torch.tensor([[0.5, -1.25, 2.0], [1.5, 0.25, -0.75]]))
        for last in LAST:
            y = last(x)
            for z in (x * y, torch.maximum(x, torch.as_tensor(y)), x.clone().mul_(y), x.lt(y)):
                see(z.stride(), z.is_contiguous(), (z + y).stride(), z.t_().stride() if z.dim() < 3
                    else z.stride())  # fmt: skip
            if last is not LAST[5]:
                see((y * x).stride(), torch.where(x > 0, y, x).stride())

    same(program)


def test_views_of_results_that_are_not_row_major() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        b = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], requires_grad=True)
        for x in (b.t() * 2, b.t().clone(), b.t().detach().sin()):
            see.attempt(x.view, -1)
            see.attempt(x.view, 3, 2)
            see.attempt(x.reshape, -1)
            see.attempt(x.flatten)
            see.attempt(x.ravel)
            see.attempt(x.as_strided, (2, 2), (2, 1))
            see.attempt(x.as_strided, (2,), (1,), 1)
            see.attempt(x[1:].contiguous)
            y = x.as_strided((2,), (1,), 1)
            y.mul_(3)
            see(x, y, x.t().view(-1))
        x = (b.t() * 2).detach()
        str(x)  # the program runs; the tensor still lies as it did
        see(x.stride(), x.clone().stride(), x.contiguous().stride(), x.requires_grad_().stride())
        x = torch.zeros(2)
        x.data = (b.t() * 2).data
        see(x.stride(), x.detach().stride())


def test_what_is_rotated_or_subtracted_from() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        a = torch.arange(24.0).reshape(2, 3, 4)
        for x in (a, a.transpose(0, 1), a[..., ::2], a.expand(2, 3, 4)):
            for k in range(-1, 5):
                see(torch.rot90(x, k).stride(), x.rot90(k, (2, -2)).stride())
            see(torch.rsub(x, torch.ones(1)).stride(), torch.rsub(x, x.contiguous()).stride())


def test_reshape_of_what_has_gaps_is_a_view_by_another_name() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        b = torch.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], requires_grad=True)
        for x in (b[:, ::2], b.t(), b.expand(2, 2, 3), b[:, 1]):
            for y in (x.reshape(*x.shape, 1), x.reshape(-1), x.flatten(), x.ravel()):
                see(y, y.stride())
        see((b * 2)[:, ::2].reshape(2, 2, 1).mul_(2))


def _strides(result: Any) -> Any:
    if isinstance(result, (tuple, list)):
        return [_strides(x) for x in result]
    return result.stride() if hasattr(result, "stride") else None


# A product that is a view of another order, and what is no op.
OWN_ORDER = {"kron", "broadcast_tensors"}


@pytest.mark.filterwarnings("ignore")
def test_every_op_of_the_table_on_transposed_operands() -> None:
    wrong = []
    for name, op in TABLE.items():
        for count in (1, 2, 3):
            found = []
            for lib in (torch, leafax):
                fn = getattr(lib, name, None) or getattr(lib.nn.functional, name, None)
                if op.view or op.random or fn is None or name in OWN_ORDER:
                    break
                x = lib.tensor([[0.5, 0.25, 0.75], [0.1, 0.2, 0.3]], dtype=lib.float64)
                try:
                    found.append(_strides(fn(*[x.t() for _ in range(count)])))
                except Exception:
                    break
            if len(found) == 2 and found[0] != found[1]:
                wrong.append((name, count, *found))
    assert not wrong


COLUMNS = (
    "linalg.cholesky(s)", "linalg.cholesky_ex(s)", "cholesky_inverse(s)", "cholesky_solve(b, s)",
    "linalg.inv(s)", "linalg.inv_ex(s)", "inverse(s)", "linalg.solve(s, b)",
    "linalg.solve(s, b[..., 0])", "linalg.solve(s, b.mT, left=False)", "linalg.solve_ex(s, b)",
    "linalg.solve_triangular(s, b, upper=True)",
    "linalg.solve_triangular(s, b.mT, upper=True, left=False)", "triangular_solve(b, s)",
    "linalg.qr(r)", "linalg.qr(r.mT)", "linalg.qr(r, mode='complete')", "linalg.qr(r, mode='r')",
    "linalg.svd(r)", "linalg.svd(r, full_matrices=False)", "svd(r)", "linalg.eigh(s)",
    "linalg.eig(s)", "linalg.lu(r)", "linalg.lu_factor(r)", "linalg.lu_factor_ex(r)",
    "linalg.lu_solve(*torch.linalg.lu_factor(s), b)",
    "linalg.lu_solve(*torch.linalg.lu_factor(s), b.mT, left=False)",
    "linalg.ldl_factor(s)", "linalg.ldl_solve(*torch.linalg.ldl_factor(s), b)", "geqrf(r)",
    "linalg.householder_product(*torch.geqrf(r))",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batch", [(), (2,)])
def test_matrices_that_lie_column_by_column(batch: tuple[int, ...]) -> None:
    wrong = []
    for case in COLUMNS:
        found = []
        for lib in (torch, leafax):
            s = (lib.eye(3) * 2 + 0.25).expand(*batch, 3, 3).contiguous()
            b, r = lib.ones(*batch, 3, 2), lib.eye(4, 3).expand(*batch, 4, 3).contiguous()
            found.append(_strides(eval(f"torch.{case}", {"torch": lib}, {"s": s, "b": b, "r": r})))
        if found[0] != found[1]:
            wrong.append((case, *found))
    assert not wrong


def test_new_tensors_lie_as_what_they_are_like() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 6)
        for t in (x.t(), x[:, ::2].t(), x[:1].expand(4, 6), x.view(2, 3, 2).permute(2, 0, 1)):
            for fn in (
                torch.zeros_like,
                torch.ones_like,
                lambda t, **k: torch.full_like(t, 2, **k),
            ):
                made = fn(t)
                see(made, made.stride(), fn(t, memory_format=torch.contiguous_format).stride())
                leaf = fn(t, requires_grad=True)
                see(leaf, leaf.stride(), (leaf * 2).stride())
                leaf.sum().backward()
                see.gradients(leaf.grad)
            see(torch.rand_like(t).stride(), torch.empty_like(t, dtype=torch.int64).stride())
        for t in (torch.zeros(2, 2), torch.tensor([[0, 1], [0, 0]]), torch.ones(2, 3)):
            places = t.nonzero()
            see(places, places.stride(), torch.argwhere(t).stride())
            see.attempt(places.view, -1)


def test_layouts_of_views_by_keywords() -> None:
    shown: list[list[Any]] = []
    for lib in (torch, leafax):
        x = lib.ones(2, 3)
        made = [
            lib.reshape(x, shape=(3, 2)), x.t().reshape(shape=(3, 2)),
            lib.swapaxes(x.t(), axis0=0, axis1=1), lib.swapdims(x, dim0=0, dim1=-1),
            *lib.split_with_sizes(x, split_sizes=[1, 2], dim=1),
        ]  # fmt: skip
        shown.append([(t.stride(), t.storage_offset(), t.tolist()) for t in made])
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", [n for n in VIEW_RULES if n in TABLE])
def test_rules_of_views_have_the_parameters_of_their_ops(name: str) -> None:
    rule = list(inspect.signature(VIEW_RULES[name]).parameters.values())[1:]
    if not any(p.kind is p.VAR_KEYWORD for p in rule):
        assert tuple(p.name for p in rule) == TABLE[name].parameters[1:]


@pytest.mark.parametrize("view", ["a", "a[1:]", "a.view(2, 4)[:, 1:]", "a[1:].expand(2, 7)"])
@pytest.mark.parametrize("args", [((2,), (2,)), ((2,), (2,), 0), ((2,), (4,), 1), ((3,), (2,))])
def test_scatter_into_the_memory_of_a_view(view: str, args: Any) -> None:
    # Gradients are not compared: PyTorch's for the input is that of the part written over (0
    # elsewhere), and that for `src` is read by strides that the gradient does not have.
    @same
    def program(torch: Any, log: Log) -> Any:
        a, src = torch.arange(8.0), torch.tensor([10.0, 20.0], requires_grad=True)
        with log.catch():
            out = torch.as_strided_scatter(eval(view, {"a": a}), src, *args)
            log(out)
            log(len(out.grad_fn.next_functions))
        with log.catch():
            torch.vmap(lambda x: x.as_strided_scatter(src, (2,), (2,)))(a.view(2, 4))


@pytest.mark.filterwarnings("ignore:stft with return_complex=False")
@pytest.mark.parametrize("kwargs", [
    {}, {"onesided": False}, {"center": False, "n_fft": 8}, {"return_complex": False},
])  # fmt: skip
def test_spectra_lie_frame_by_frame(kwargs: Any) -> None:
    given = {"n_fft": 4, "return_complex": True} | kwargs

    @same
    def program(torch: Any, log: Log) -> Any:
        for x in (torch.arange(8.0), torch.arange(16.0).view(2, 8)):
            out = torch.stft(x, window=torch.ones(given["n_fft"]), **given)
            log(out.stride(), out._version, out._is_view(), torch.view_as_real(out.resolve_conj())
                if out.is_complex() else out)  # fmt: skip
            with log.catch():
                out.view(-1)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.parametrize("dim", [0, None])
def test_quantiles_of_one_slice_lie_together(name: str, dim: Any) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(24.0).view(2, 3, 4).transpose(0, 2)
        for q in (0.5, torch.tensor([0.2, 0.5])):
            out = getattr(torch, name)(x, q, dim=dim, keepdim=dim is None)
            log(out, out.stride())
