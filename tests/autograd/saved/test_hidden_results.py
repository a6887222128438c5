"""Intermediate results of PyTorch's kernels are attributes of nodes: `grad_fn._saved_result1`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same


def _square(t: Any) -> Any:
    x = t.eye(3, dtype=t.float64) * 2 + t.arange(9.0, dtype=t.float64).reshape(3, 3).cos()
    return x.requires_grad_()


def _rows(t: Any) -> Any:
    return t.arange(6.0, dtype=t.float64).reshape(2, 3).requires_grad_()


def _image(t: Any) -> Any:
    return t.arange(48.0, dtype=t.float64).reshape(1, 3, 4, 4).sin().requires_grad_()


def _queries(t: Any) -> Any:
    return t.ones(1, 2, 4, 8, dtype=t.float64).cumsum(2).requires_grad_()


def _weight(t: Any) -> Any:
    return t.tensor([0.5, 1.0, 2.0], dtype=t.float64)


def _attend(t: Any, **given: Any) -> Any:
    q = _queries(t)
    return t.nn.functional.scaled_dot_product_attention(q, q, q, **given)


MADE: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "max_pool2d": (lambda t: t.nn.functional.max_pool2d(_image(t), 2), ["result1"]),
    "max_pool3d": (lambda t: t.nn.functional.max_pool3d(_image(t), 2), ["result1"]),
    "adaptive_max_pool2d": (
        lambda t: t.nn.functional.adaptive_max_pool2d(_image(t), 2), ["result1"],
    ),
    "adaptive_max_pool3d": (
        lambda t: t.nn.functional.adaptive_max_pool3d(_image(t), 2), ["result1"],
    ),
    "det": (lambda t: t.linalg.det(_square(t)), ["LU", "pivots"]),
    "slogdet": (lambda t: t.linalg.slogdet(_square(t))[1], ["LU", "pivots"]),
    "solve": (lambda t: t.linalg.solve(_square(t), _rows(t).T), ["LU", "pivots"]),
    "logsigmoid": (lambda t: t.nn.functional.logsigmoid(_rows(t)), ["buffer"]),
    "multilabel_margin_loss": (
        lambda t: t.nn.functional.multilabel_margin_loss(
            _rows(t), t.tensor([[0, 2, -1], [1, -1, 0]])
        ),
        ["is_target"],
    ),
    "layer_norm": (lambda t: t.nn.functional.layer_norm(_rows(t), (3,)), ["result1", "result2"]),
    "native_layer_norm": (
        lambda t: t.native_layer_norm(_rows(t), (3,), None, None, 1e-5)[0],
        ["result1", "result2"],
    ),
    "batch_norm": (
        lambda t: t.nn.functional.batch_norm(_image(t), None, None, training=True),
        ["result1", "result2"],
    ),
    "batch_norm by running statistics": (
        lambda t: t.nn.functional.batch_norm(_image(t), _weight(t), _weight(t)),
        ["result1", "result2"],
    ),
    "nll_loss": (
        lambda t: t.nn.functional.nll_loss(_rows(t), t.tensor([0, 2])), ["total_weight"],
    ),
    "nll_loss with weights": (
        lambda t: t.nn.functional.nll_loss(
            _rows(t), t.tensor([0, 2]), _weight(t), reduction="sum", ignore_index=0
        ),
        ["total_weight"],
    ),
    "nll_loss of images": (
        lambda t: t.nn.functional.nll_loss(
            _image(t), t.zeros(1, 4, 4, dtype=t.int64), _weight(t)
        ),
        ["total_weight"],
    ),
    "attention": (_attend, ["logsumexp"]),
    "causal attention": (lambda t: _attend(t, is_causal=True), ["logsumexp"]),
    "masked attention": (
        lambda t: _attend(t, attn_mask=t.eye(4, dtype=t.float64), scale=0.3), ["logsumexp"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MADE)
def test_hidden_results(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        make, names = MADE[name]
        node = make(torch).grad_fn
        for saved in names:
            t = getattr(node, f"_saved_{saved}")
            log(str(t.dtype), tuple(t.shape), t.detach().clone())


def test_group_norm() -> None:
    """PyTorch's have a history, these do not."""

    @same
    def program(torch: Any, log: Log) -> Any:
        node = torch.nn.functional.group_norm(_image(torch), 3).grad_fn
        log(node._saved_result1.detach().clone(), node._saved_result2.detach().clone())


@pytest.mark.parametrize(
    "make",
    [
        lambda t, x: t.nn.functional.pad(x, (1, 1), mode="reflect"),
        lambda t, x: t.nn.functional.pad(x, (1, 1), mode="replicate"),
        lambda t, x: t.squeeze_copy(x, 0),
        lambda t, x: t.view_copy(x, (2, 2)),
        lambda t, x: t.transpose_copy(x, 0, 1),
        lambda t, x: t.split_copy(x, 1, 0)[0],
        lambda t, x: t.diagonal_copy(x),
        lambda t, x: t.unfold_copy(x, 1, 2, 1),
        lambda t, x: x.squeeze((0,)),
        lambda t, x: t.ones(2, 4).index_reduce(0, t.tensor([0]), x, "prod"),
    ],
)
def test_dir_tells_the_same_names(make: Any) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        node = make(torch, torch.ones(1, 4, requires_grad=True)).grad_fn
        log(sorted(name for name in dir(node) if name.startswith("_saved_")))
