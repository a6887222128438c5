"""Recurrent layers and cells beside live PyTorch."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from helpers.module_pairs import given_to, said, same, tensors_in

import leafax

rng = np.random.default_rng(0)
T, N, IN, H = 4, 3, 2, 5
X, X1 = rng.normal(size=(T, N, IN)), rng.normal(size=(T, IN))


def states(kind: str, layers: int, batch: int | None, width: int = H) -> Any:
    shape = (layers, H) if batch is None else (layers, batch, H)
    h = rng.normal(size=(*shape[:-1], width))
    return (h, rng.normal(size=shape)) if kind == "LSTM" else h


def test_states_are_given_and_batches_left_out() -> None:
    same(lambda t: t.nn.LSTM(IN, H), X1, states("LSTM", 1, None))
    same(lambda t: t.nn.GRU(IN, H, bidirectional=True), X, states("GRU", 2, N))


def test_other_forms() -> None:
    lstm: dict[str, Any] = {"num_layers": 2, "bidirectional": True, "proj_size": 3}
    same(lambda t: t.nn.LSTM(IN, H, **lstm), X, states("LSTM", 4, N, 3))
    same(lambda t: t.nn.LSTM(IN, H, proj_size=2, bias=False, batch_first=True), X)


@pytest.mark.parametrize(("kind", "given"), [("LSTM", True), ("GRU", False), ("RNN", True)])
def test_packed_sequences(kind: str, given: bool) -> None:
    layers = 2

    def make(t: Any) -> Any:
        class Model(t.nn.Module):  # type: ignore[name-defined, misc]
            def __init__(self) -> None:
                super().__init__()
                self.rnn = getattr(t.nn, kind)(IN, H, layers, batch_first=True, bidirectional=True)

            def forward(self, x: Any, lengths: Any, hx: Any) -> Any:
                rnn = t.nn.utils.rnn
                packed = rnn.pack_padded_sequence(x, lengths, True, enforce_sorted=False)
                out, hidden = self.rnn(packed, hx)
                return rnn.pad_packed_sequence(out, batch_first=True)[0], hidden

        return Model()

    x, lengths = rng.normal(size=(N, T, IN)), np.array([2, 4, 1])
    same(make, x, lengths, states(kind, 2 * layers, N) if given else None)


REPRS = (
    "nn.LSTM(2, 3)", "nn.GRU(2, 3, 2, False, True, 0.5, True)", "nn.RNN(2, 3, 1, 'relu')",
    "nn.LSTM(2, 3, proj_size=1)", "nn.LSTMCell(2, 3, False)", "nn.RNNCell(2, 3, True, 'relu')",
)  # fmt: skip


@pytest.mark.parametrize("call", REPRS)
def test_names_and_attributes(call: str) -> None:
    def facts(t: Any) -> list[Any]:
        module = eval(call, {"nn": t.nn})
        weights = [[tuple(w.shape) for w in ws] for ws in getattr(module, "all_weights", [])]
        public = {k: v for k, v in vars(module).items() if k[0] != "_"}
        return [repr(module), {k: tuple(v.shape) for k, v in module.state_dict().items()}, weights,
                public, getattr(module, "_all_weights", None)]  # fmt: skip

    assert facts(leafax) == facts(torch)


ERRORS = (
    "nn.LSTM(2, 3, dropout=2)", "nn.LSTM(2, 3, dropout=True)", "nn.LSTM(2, 3, 0)",
    "nn.LSTM(0, 3)", "nn.LSTM(2, 0)", "nn.LSTM(2.0, 3)", "nn.LSTM(2, 3.0)",
    "nn.LSTM(2, 3, bias=1)", "nn.LSTM(2, 3, batch_first=1)", "nn.LSTM(2, 3, proj_size=3)",
    "nn.LSTM(2, 3, proj_size=-1)", "nn.GRU(2, 3, proj_size=1)", "nn.RNN(2, 3, proj_size=1)",
    "nn.RNN(2, 3, nonlinearity='no')", "nn.modules.rnn.RNNBase('no', 2, 3)",
    "nn.LSTM(2, 3).double()(x[..., :1])", "nn.LSTM(2, 3)(x)", "nn.LSTM(2, 3).double()(x[0, 0])",
    "nn.GRU(2, 3).double()(x[0, 0])", "nn.RNN(2, 3).double()(x[0, 0])",
    "nn.LSTM(2, 3).double()(x, (h, h[0]))", "nn.LSTM(2, 3).double()(x[0], (h, h))",
    "nn.LSTM(2, 3).double()(x, (h, h[:, :1]))", "nn.LSTM(2, 3).double()(x, (h[..., :1], h))",
    "nn.GRU(2, 3).double()(x, h[0])", "nn.GRU(2, 3).double()(x[0], h)",
    "nn.GRU(2, 3, batch_first=True).double()(x, h)",
    "nn.GRUCell(2, 3).double()(x)", "nn.GRUCell(2, 3).double()(x[0], h)",
    "nn.LSTMCell(2, 3).double()(x[0], (h[0], h))", "nn.RNNCell(2, 3).double()(x[0], h[0, :1])",
    "nn.RNNCell(2, 3, nonlinearity='no').double()(x[0])", "nn.LSTMCell(2, 3).double()(x)",
    "nn.LSTMCell(4, 3).double()(x[0])",
)  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    scope = {"x": X, "h": rng.normal(size=(1, N, 3))}
    assert said(leafax, call, scope) == said(torch, call, scope)


def test_dropout_of_one_layer_warns() -> None:
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        leafax.nn.LSTM(2, 3, dropout=0.5)


def test_copies_and_swapped_weights_are_used() -> None:
    gru = leafax.nn.GRU(IN, H)
    x = given_to(leafax, X).float()
    for other in (copy.deepcopy(gru), pickle.loads(pickle.dumps(gru))):
        assert other._flat_weights[0] is other.weight_ih_l0
        assert leafax.equal(other(x)[0], gru(x)[0])
        with leafax.no_grad():
            other.weight_ih_l0.zero_()
        assert not leafax.equal(other(x)[0], gru(x)[0])
    zeros = {k: leafax.zeros_like(v) for k, v in gru.named_parameters()}
    assert leafax.func.functional_call(gru, zeros, x)[0].abs().max() == 0
    assert gru(x)[0].abs().max() > 0
    gru.weight_hh_l0 = leafax.nn.Parameter(leafax.zeros(3 * H, H))
    assert gru._flat_weights[1] is gru.weight_hh_l0
    assert gru.double().flatten_parameters() is None
    assert gru._flat_weights[0].dtype == leafax.float64
    assert gru(x.double())[0].dtype == leafax.float64


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "LSTMCell", "GRUCell"])
def test_autocast(kind: str) -> None:
    def dtypes(t: Any) -> list[str]:
        module = getattr(t.nn, kind)(IN, H)
        x = given_to(t, X[0] if "Cell" in kind else X).detach().float()
        with t.autocast("cpu", dtype=t.bfloat16):
            return [str(o.dtype) for o in tensors_in(module(x))]

    assert dtypes(leafax) == dtypes(torch)


def test_weights_are_drawn_within_their_bound() -> None:
    leafax.manual_seed(0)
    for module in (leafax.nn.LSTM(20, 64), leafax.nn.GRUCell(20, 64)):
        for p in module.parameters():
            assert 0.11 < p.abs().max().item() <= 0.125
            assert abs(p.std().item() - 0.125 / 3**0.5) < 0.01


@pytest.mark.exhaustive
def test_a_step_is_one_program_whatever_is_dropped() -> None:
    leafax.manual_seed(0)
    model = leafax.nn.LSTM(IN, H, 2, dropout=0.5)
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.1)
    x = given_to(leafax, X).detach().float()
    losses = set()
    for _ in range(9):
        optimizer.zero_grad()
        loss = model(x)[0].square().sum()
        loss.backward()
        optimizer.step()
        losses.add(loss.item())
    assert len(losses) == 9
    runs = leafax.explain(last=4)
    assert [r.how for r in runs] == ["cached"] * 4
