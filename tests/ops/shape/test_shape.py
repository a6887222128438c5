"""Joins, repeats, orders and copies against live PyTorch: values, gradients, dtypes, errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.ops_agree import agree

import leafax
from leafax.functional.ops.shape import joins, shape

assert joins and shape  # imported to enter their ops into the table


def t(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=dtype)


X, V, S, B = t(3, 4), t(6), t(), t(2, 3, 4)
E0 = t(0)

CALLS: list[tuple[Any, ...]] = [
    ("cat", (X, X)), ("cat", (X, X[:, :2]), 1), ("cat", (X, V)), ("cat", (X, X[:, :2])),
    ("cat", (X, X), 2), ("cat", (S, S)), ("cat", (X, S)), ("cat", (X, E0)), ("cat", (E0, X), 1),
    ("cat", (E0, E0)), ("cat", (X, X.float())), ("cat", (X.long(), X > 0)),
    ("cat", (X.half(), X.bfloat16() > 0)), ("cat", (X.long(), X.float())), ("concat", (V, V), -1),
    ("stack", (X, X)), ("stack", (X, X), -1), ("stack", (X, X), 3), ("stack", (X, V)),
    ("stack", (S, S)), ("stack", (X, X.float())), ("hstack", (X, X)), ("hstack", (V, S)),
    ("vstack", (V, V)), ("vstack", (X, X)), ("dstack", (V, V)), ("dstack", (X, X)),
    ("column_stack", (V, V)), ("column_stack", (X, t(3))), ("repeat", X, (2, 1)),
    ("repeat", X, (2, 1, 3)), ("repeat", X, (2,)), ("repeat", X, (-1, 2)), ("repeat", X, (0, 1)),
    ("repeat", S, ()), ("tile", X, (2,)), ("tile", X, (2, 1, 2)), ("tile", X, (-1, 2)),
    ("repeat_interleave", X, 2), ("repeat_interleave", X, 2, 1), ("repeat_interleave", X, 3, -2),
    ("repeat_interleave", S, 3), ("repeat_interleave", S, 3, 0), ("repeat_interleave", X, -2),
    ("repeat_interleave", X, 2, 3), ("flip", X, (0,)), ("flip", X, (0, -1)), ("flip", X, ()),
    ("flip", S, (0,)), ("flip", X, (0, 0)), ("flip", X, (0, 3)), ("fliplr", X), ("fliplr", V),
    ("flipud", X), ("flipud", S), ("roll", X, 1), ("roll", X, 5, 1), ("roll", X, (1, -2), (0, 1)),
    ("roll", X, (1, 2), 0), ("roll", X, (), 0), ("roll", X, (1, 2)), ("roll", S, 1),
    ("roll", S, 1, 0), ("roll", X, 1, 5), ("rot90", X), ("rot90", X, 2), ("rot90", X, -1, (1, 0)),
    ("rot90", X, 1, (0, 0)), ("rot90", X, 1, (0,)), ("rot90", V), ("rot90", X, 1, (0, 5)),
    ("tril", X), ("tril", X, -1), ("tril", B, 1), ("tril", V), ("triu", X, 2), ("triu", X > 0),
    ("triu", S), ("diag", X), ("diag", X, 1), ("diag", X, -2), ("diag", X, 9), ("diag", V, 2),
    ("diag", V, -1), ("diag", S), ("diag", B), ("diag_embed", X), ("diag_embed", X, 1),
    ("diag_embed", X, -1, 0, 2), ("diag_embed", X, 2, 2, 0), ("diag_embed", V, 0, 0, 0),
    ("diag_embed", V, 0, 0, 5), ("diagflat", X), ("diagflat", S, 1), ("trace", X), ("trace", V),
    ("trace", X.int()), ("trace", X > 0), ("clone", X), ("contiguous", X), ("fill", X, 2.5),
    ("fill", X, S), ("fill", X, V), ("fill", X.long(), 2.5), ("fill", X, t().float()),
]  # fmt: skip


@pytest.mark.quick(35)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_call(call: tuple[Any, ...]) -> None:
    agree(*call)


@pytest.mark.parametrize("name", ["cat", "stack", "hstack", "vstack", "dstack"])
def test_nothing_to_join(name: str) -> None:
    agree(name, ())


@pytest.mark.parametrize("tensors", [(X, V, S), (), (X, t(1, 1, 2)), (V.long(), X)])
def test_block_diag(tensors: Any) -> None:
    agree("block_diag", tensors, theirs=lambda many: torch.block_diag(*many))


@pytest.mark.parametrize("tensors", [(X, t(4), S), (X, V), (t(1, 4), t(3, 1))])
def test_broadcast_tensors(tensors: Any) -> None:
    agree("broadcast_tensors", tensors, theirs=lambda many: torch.broadcast_tensors(*many))


@pytest.mark.parametrize("tensors", [(V, t(3), t(2)), (S, V), (V, V.float())])
@pytest.mark.parametrize("indexing", ["ij", "xy", "zz"])
def test_meshgrid(tensors: Any, indexing: str) -> None:
    agree(
        "meshgrid", tensors, indexing=indexing,
        theirs=lambda many, indexing: torch.meshgrid(*many, indexing=indexing),
    )  # fmt: skip


@pytest.mark.parametrize("indexing", [["ij"], 3])
def test_meshgrid_takes_words(indexing: Any) -> None:
    errors = []
    for lib in (leafax, torch):
        with pytest.raises(TypeError) as error:
            lib.meshgrid(lib.ones(2), indexing=indexing)
        errors.append(str(error.value))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("src", [X, t(4), S, t(3, 1), X.float(), X.long(), V, B, t(1, 3, 4)])
def test_copy(src: torch.Tensor) -> None:
    agree("copy", X, src, theirs=lambda x, y: x.clone().copy_(y))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bool, torch.complex128])
@pytest.mark.parametrize("x", [X, X.long(), X > 0, X.float()])
def test_cast(x: torch.Tensor, dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    agree("_to_copy", x, name, theirs=lambda x, _: x.to(dtype))


def test_zero() -> None:
    agree("zero", X, theirs=lambda x: x.clone().zero_())
