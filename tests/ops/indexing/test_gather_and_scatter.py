"""Indexing and scatter ops against live PyTorch: values, gradients, dtypes and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.ops_agree import agree

import leafax
from leafax.functional.ops.indexing import indexing, scatter
from leafax.functional.ops.shape import slice_writes

assert indexing and scatter and slice_writes  # imported to enter their ops into the table


def t(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


def i(values: Any, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def by_key(x: torch.Tensor, indices: Any) -> torch.Tensor:
    """The op behind `x[indices]`; PyTorch's Python front selects at 0-dim tensors first."""
    return torch.ops.aten.index(x, list(indices))


X, V, S = t(3, 4), t(6), t()
B = t(2, 3, 4)


INDEX = [
    (X, (i([0, 2]),)), (X, (i([0, -1, 0]),)), (X, (None, i([1, 1]))), (X, (i([0, 2]), i([1, 1]))),
    (X, (i([[0], [2]]), i([1, 3]))), (B, (i([0, 1]), None, i([1, 2]))),
    (B, (None, i([0, 1]), i([1, 2]))), (B, (i(1), None, i([2, 0]))), (X, (i([]),)),
    (X, (i([0, 1], torch.int32),)), (X, (i([5]),)), (X, (i([-4]),)), (X, (None, i([4]))),
    (X, (i([0]), i([9]))), (X, (i([0, 1]), i([0, 1, 2]))), (X, (i([0.5], torch.float64),)),
    (X, (i([0], torch.int8),)), (t(0, 3), (i([0]),)), (t(0, 3), (i([]),)),
    (X.long(), (i([1]),)), (X > 0, (i([1]),)), (X.to(torch.complex128), (i([1, 1]),)),
]  # fmt: skip


@pytest.mark.parametrize("x, indices", INDEX)
def test_index(x: torch.Tensor, indices: Any) -> None:
    agree("index", x, indices, theirs=by_key)


CALLS: list[tuple[Any, ...]] = [
    ("index_put", X, (i([0, 2]),), t(4)), ("index_put", X, (i([0, -1]),), t(2, 4)),
    ("index_put", X, (i([0, 2]), i([1, 1])), S), ("index_put", X, (i([0, 0, 1]),), t(3, 4), True),
    ("index_put", X, (i([0, 5]),), S), ("index_put", X, (i([0]),), t(6)),
    ("index_put", X, (i([0]),), S.float()), ("index_put", X, (i([0]), i([0]), i([0])), S),
    ("index_select", X, 0, i([0, 2, 0])), ("index_select", X, 1, i(3)),
    ("index_select", X, -1, i([1], torch.int32)), ("index_select", X, 0, i([3])),
    ("index_select", X, 1, i([4])), ("index_select", X, 1, i([-1])), ("index_select", V, 0, i([6])),
    ("index_select", X, 0, i([[0]])), ("index_select", X, 0, i([0.0], torch.float32)),
    ("index_select", X, 2, i([0])), ("index_select", S, 0, i([0])), ("index_select", S, 0, i([1])),
    ("index_select", t(0, 3), 0, i([0])), ("index_select", X, 0, i([], torch.int64)),
    ("gather", X, 0, i([[0, 2, 1, 1]])), ("gather", X, 1, i([[0, 3], [1, 1]])),
    ("gather", X, 1, i([[0, 3, 3, 3, 0]])), ("gather", X, -1, i([[0]], torch.int32)),
    ("gather", X, 0, i([[3]])), ("gather", X, 1, i([[-1]])), ("gather", X, 0, i([0])),
    ("gather", X, 0, i([[0] * 5])), ("gather", X, 0, i([[0.0]], torch.float32)),
    ("gather", X, 2, i([[0]])), ("gather", S, 0, i(0)), ("gather", S, 0, i([0, 0])),
    ("gather", V, 0, i(3)), ("gather", X, 0, i([])),
    ("gather", B, 1, i([[[0, 1, 2]], [[2, 2, 2]]])),
    ("take_along_dim", X, i([[0, 2, 1, 1]]), 0), ("take_along_dim", X, i([[0], [-1], [5]]), 1),
    ("take_along_dim", X, i([[1]]), 0), ("take_along_dim", X, i([3, 0])),
    ("take_along_dim", X, i([[3], [0]])), ("take_along_dim", X, i([12])),
    ("take_along_dim", X, i([-1])), ("take_along_dim", X, i([0]), 0),
    ("take_along_dim", X, i([[0, 1]]), 0), ("take_along_dim", X, i([[0]], torch.int32), 0),
    ("take", X, i([0, 11, -1])), ("take", X, i([[2, 2]])), ("take", X, i(3)),
    ("take", X, i([12])), ("take", X, i([-13])), ("take", X, i([0], torch.int32)),
    ("put", X, i([0, 7]), t(2)), ("put", X, i([3, 3]), t(2), True), ("put", X, i([12]), t(1)),
    ("put", X, i([0]), t(2)), ("put", X, i([0]), t(1).float()),
    ("masked_scatter", X, X > 0, t(12)), ("masked_scatter", X, X > 9, t(12)),
    ("masked_scatter", X, X[0] > 0, t(12)), ("masked_scatter", X, X > -9, t(3)),
    ("masked_scatter", X, X, t(3)), ("masked_scatter", X, X > 0, t(12).float()),
    ("scatter", X, 0, i([[0, 2, 1, 1]]), X[:1]), ("scatter", X, 1, i([[0, 3], [1, 2]]), X[:2, :2]),
    ("scatter", X, 1, i([[0, 3], [1, 2]]), 2.5), ("scatter", X.long(), 1, i([[0]]), 2),
    ("scatter", S, 0, i(0), t()), ("scatter", X, 0, i([[3]]), X), ("scatter", X, 0, i([[-1]]), 1.0),
    ("scatter", X, 0, i([[0]]), X.float()), ("scatter", X, 0, i([0]), X),
    ("scatter", X, 0, i([[0]]), V), ("scatter", X, 0, i([[0]]), S),
    ("scatter", X, 0, i([[0] * 5]), X),
    ("scatter", X, 0, i([[0, 1]]), X[:1, :1]), ("scatter", X, 0, i([[0.0]], torch.float32), X),
    ("scatter", X, 2, i([[0]]), X), ("scatter_add", X, 0, i([[0, 0, 1, 1], [0, 0, 0, 1]]), X[1:]),
    ("scatter_add", X, 1, i([[1, 1, 1, 1, 1]]), t(1, 5)), ("scatter_add", X, 0, i([[9]]), X),
    ("scatter_add", X, 0, i([[0]]), X.float()), ("scatter_add", S, 0, i([0]), t(1)),
    ("scatter_add", X.long(), 0, i([[0, 0], [0, 1]]), X.long()),
    ("scatter_reduce", X, 0, i([[0]]), X, "foo"), ("scatter_reduce", X, 0, i([[4]]), X, "sum"),
    ("scatter_reduce", X > 0, 0, i([[0, 1]]), X > 1, "sum"),
    ("scatter_reduce", (X * 9).long(), 0, i([[0, 0], [0, 1]]), (X * 5).long(), "mean"),
    ("index_add", X, 0, i([0, 0]), t(2, 4)), ("index_add", X, 1, i([1]), t(3, 1)),
    ("index_add", X, 0, i([3]), t(1, 4)), ("index_add", X, 0, i([0, 1, 1]), t(2, 4)),
    ("index_add", X, 0, i([0]), t(1, 4).float()), ("index_add", X, 0, i([0]), t(1, 3)),
    ("index_add", X, 0, i([[0]]), t(1, 4)), ("index_add", X, 0, i([0.0], torch.float32), t(1, 4)),
    ("index_add", V, 0, i(0), S), ("index_add", S, 0, i([0]), t(1)), ("index_add", S, 0, i([0]), S),
    ("index_copy", X, 0, i([2, 0]), t(2, 4)), ("index_copy", X, 1, i(1), t(3, 1)),
    ("index_copy", X, 0, i([3]), t(1, 4)), ("index_copy", X, 1, i([-1]), t(3, 1)),
    ("index_copy", X, 0, i([0, 1, 1]), t(2, 4)), ("index_copy", X, 0, i([0]), t(1, 4).float()),
    ("index_copy", X, 0, i([0]), t(1, 3)), ("index_copy", X, 0, i([0], torch.int32), t(1, 4)),
    ("index_copy", X, 0, i([[0]]), t(1, 4)), ("index_copy", X, 0, i([0]), t(4)),
    ("index_fill", X, 0, i([0, -1]), 2.0), ("index_fill", X, 1, i([0, 0]), S),
    ("index_fill", X, 0, i([3]), 2.0), ("index_fill", X, 0, i([0]), V),
    ("index_fill", X, 0, i([0.0], torch.float32), 1.0), ("index_fill", X, 0, i([[0]]), 1.0),
    ("index_fill", X.long(), 0, i(0), 3), ("select_scatter", X, t(4), 0, -1),
    ("select_scatter", X, t(3), 1, 2), ("select_scatter", X, V, 0, 0),
    ("slice_scatter", X, t(1, 4), 0, 1, 2), ("slice_scatter", X, t(3, 2), 1, 0, None, 2),
    ("slice_scatter", X, V, 0, 0, 1), ("diagonal_scatter", X, t(3)),
    ("diagonal_scatter", X, t(2), -1), ("diagonal_scatter", X, V),
]  # fmt: skip


@pytest.mark.quick(42)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_call(call: tuple[Any, ...]) -> None:
    agree(*call)


@pytest.mark.quick(6)
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize(
    "make", [lambda: t(3, 4), lambda: (t(3, 4) * 2).round()], ids=["distinct", "ties and zeros"]
)
def test_scatter_reduce(make: Callable[[], torch.Tensor], reduce: str, include_self: bool) -> None:
    src = (t(4, 4) * 2).round() if make().frac().abs().sum() == 0 else t(4, 4)
    index = i([[0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 2], [0, 0, 0, 0]])
    agree("scatter_reduce", make(), 0, index, src, reduce, include_self=include_self)
    whole = [(x * 9).long() for x in (make(), src)]
    agree("scatter_reduce", whole[0], 0, index, whole[1], reduce, include_self=include_self)


@pytest.mark.filterwarnings("ignore:The reduce argument")
def test_scatter_reduce_argument() -> None:
    agree("scatter", X, 0, i([[0, 0]]), X, reduce="add", grad=False)
    agree("scatter", X, 0, i([[0, 0], [0, 1]]), X, reduce="multiply", grad=False)
    agree("scatter", X, 0, i([[0, 0]]), X, reduce="foo")
    agree("scatter", X, 0, i([[0, 0]]), value=2.0)
    agree("scatter_reduce", X.to(torch.complex128), 0, i([[0, 0]]), X.to(torch.complex128), "amax")


def test_a_tensor_for_the_number_that_is_scattered() -> None:
    found = []
    for lib in (torch, leafax):
        x, at = lib.zeros(2, 3), lib.tensor([[0, 1, 1]])
        more = lib.scatter(x, 0, at, value=lib.tensor(2.5), reduce="add")
        found.append([x.scatter_(0, at, value=lib.tensor(3)).tolist(), more.tolist()])
    assert found[0] == found[1]


def test_index_add_alpha() -> None:
    agree("index_add", X, 0, i([0, 2]), t(2, 4), alpha=2)
    agree("index_add", X, 0, i([0, 2]), t(2, 4), alpha=0.5)


SLICES = (
    "1, t.tensor([0.0]), t.ones(3, 1)", "1, t.tensor([0]), t.ones(3, 2)",
    "1, t.tensor([0, 1]), t.ones(3, 1)", "5, t.tensor([0]), t.ones(3, 2)",
    "1, t.tensor([[0]]), t.ones(3, 1)", "1, t.tensor(0), t.ones(3)",
    "1, t.tensor([0]), t.ones(2, 1)", "1, t.tensor([0]), t.ones(3, 1, 1)",
    "0, t.tensor([0]), t.tensor(2.0)", "0, t.tensor([0, 1]), t.tensor(2.0)",
    "1, t.tensor([0]), t.ones(3, 1).double()", "-1, t.tensor([2]), 2 * t.ones(3, 1)",
)  # fmt: skip


@pytest.mark.parametrize("arguments", SLICES)
@pytest.mark.parametrize("method", ["index_add_({})", "index_reduce_({}, 'prod')"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_slices_that_do_not_fit_are_refused(method: str, arguments: str) -> None:
    found = []
    for t in (leafax, torch):
        x = t.ones(3, 4)
        try:
            found.append(eval(f"x.{method.format(arguments)}", {"x": x, "t": t}).tolist())
        except Exception as e:
            found.append((type(e), str(e)))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_index_reduce_says_what_pytorch_says_of_an_index_out_of_range() -> None:
    for t in (leafax, torch):
        with pytest.raises(IndexError, match="^index out of range in self"):
            t.ones(3, 4).index_reduce_(1, t.tensor([9]), t.ones(3, 1), "prod").tolist()


@pytest.mark.filterwarnings("ignore:The reduce argument")
@pytest.mark.parametrize("src", ["t.ones(2)", "2.0", "x[:2]"])
@pytest.mark.parametrize("call", ["(x * 1).scatter(0, i, {}, reduce='add')",
                                  "(x * 1).scatter_(0, i, {}, reduce='multiply')"])  # fmt: skip
def test_a_reducing_scatter_has_no_derivative(call: str, src: str) -> None:
    found = []
    for lib in (torch, leafax):
        x = lib.ones(4, requires_grad=True)
        y = eval(call.format(src), {"t": lib, "x": x, "i": lib.tensor([0, 1])})
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        found.append((y.grad_fn.name(), y.tolist(), str(error.value)))
    assert found[0] == found[1]


def test_the_lengths_of_segments_are_saved() -> None:
    found = []
    for lib in (torch, leafax):
        lengths = lib.tensor([1, 3])
        y = lib.segment_reduce(lib.ones(4, requires_grad=True), "sum", lengths=lengths)
        lengths[0] = 0
        with pytest.raises(RuntimeError) as error:
            y.sum().backward()
        found.append(str(error.value))
    assert found[0] == found[1]


@pytest.mark.parametrize("dim", [0, -2, 1])
@pytest.mark.parametrize("index", [[[0, -1]], [[5, 1]]])
def test_indices_along_a_dim_wrap_in_memory_of_their_own(index: Any, dim: int) -> None:
    found = []
    for lib in (torch, leafax):
        x = lib.arange(8.0).reshape(4, 2).requires_grad_()
        at = lib.tensor(index)
        y = x.take_along_dim(at, dim)
        at[0, 0] = 0
        y.backward(y.detach())
        found.append((y.tolist(), x.grad.tolist(), lib.take_along_dim(x, at * 0 - 1, dim).tolist()))
    assert found[0] == found[1]
