"""The adaptive softmax, embeddings and bags of them: what the sample database leaves out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.module_pairs import given_to, said, same

import leafax

rng = np.random.default_rng(0)
X, TARGET = rng.normal(size=(5, 8)), np.array([0, 3, 9, 5, 1])


def adaptive(t: Any) -> Any:
    return t.nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 6], div_value=2.0, head_bias=True)


def test_adaptive_softmax() -> None:
    same(adaptive, X, TARGET)


def test_adaptive_softmax_of_one_row_computes_all_clusters() -> None:
    # Counts of rows are data, so every cluster is computed for all rows; PyTorch picks the rows of
    # each.
    def program(t: Any, state: Any) -> Any:
        model = adaptive(t).double()
        model.load_state_dict({k: t.tensor(v) for k, v in state.items()})
        out = model(given_to(t, X[0]), t.tensor(3))
        out.loss.backward()
        return model, [out.output.item(), out.loss.item(), model.head.weight.grad.tolist()]

    state = {k: v.numpy() for k, v in adaptive(torch).double().state_dict().items()}
    (ours, a), (theirs, b) = program(leafax, state), program(torch, state)
    np.testing.assert_allclose(a[0], b[0], rtol=1e-12)
    np.testing.assert_allclose(a[2], b[2], rtol=1e-9, atol=1e-12)
    assert theirs.tail[1][0].weight.grad is None
    assert not ours.tail[1][0].weight.grad.any()


def test_adaptive_softmax_names_classes() -> None:
    theirs = adaptive(torch).double()
    ours = adaptive(leafax).double()
    ours.load_state_dict({k: leafax.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    a, b = ours.log_prob(given_to(leafax, X)), theirs.log_prob(given_to(torch, X))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-12)
    assert ours.predict(given_to(leafax, X)).tolist() == b.argmax(1).tolist()
    assert theirs.predict(given_to(torch, X)).tolist() == b.argmax(1).tolist()
    assert repr(ours) == repr(theirs)


TABLE = rng.normal(size=(6, 3))


def test_bags_and_rows_that_are_scaled() -> None:
    ids = np.array([1, 2, 4, 5, 4, 3])
    for mode in ("sum", "mean", "max"):
        same(
            lambda t, m=mode: t.nn.EmbeddingBag(6, 3, mode=m, padding_idx=2), ids, np.array([0, 4])
        )
    same(lambda t: t.nn.Embedding(6, 3, padding_idx=-2, scale_grad_by_freq=True), ids)
    same(lambda t: t.nn.Embedding(6, 3, max_norm=0.5), ids)


def test_tables_that_are_there() -> None:
    def facts(t: Any) -> list[Any]:
        table, found = t.tensor(TABLE), []
        for cls in (t.nn.Embedding, t.nn.EmbeddingBag):
            for freeze in (True, False):
                made = cls.from_pretrained(table, freeze=freeze, padding_idx=-1)
                found += [repr(made), made.weight.requires_grad, made.padding_idx]
                found.append(made(t.tensor([[1, 2]])).detach().numpy().round(12).tolist())
        return found

    assert facts(leafax) == facts(torch)


ERRORS = (
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [])", "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [3, 2])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2, 10])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2]).double()(x, y + 5)",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2]).double()(x, y[:2])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2]).double()(x, y[:, None])",
    "nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2]).double()(x, y[0])",
    "nn.Embedding(3, 2, 3)", "nn.Embedding(3, 2, -4)", "nn.EmbeddingBag(3, 2, padding_idx=3)",
    "nn.Embedding(3, 2, _weight=x)", "nn.Embedding.from_pretrained(x[0])",
)  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    scope = {"x": X, "y": TARGET}
    assert said(leafax, call, scope) == said(torch, call, scope)


def test_sparse_gradients_are_refused_in_words() -> None:
    layer = leafax.nn.Embedding(3, 2, sparse=True)
    assert repr(layer) == "Embedding(3, 2, sparse=True)"
    with pytest.raises(NotImplementedError, match="leafax has no sparse gradients"):
        layer(leafax.tensor([1]))
