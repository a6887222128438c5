"""`torch.lstm`, `torch.gru`, `torch.rnn_*` and their cells, beside live PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import leafax

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
T, N, IN, H = 4, 2, 3, 5


def arrays(t: Any, kind: str, layers: int, directions: int, biases: bool, cell: bool) -> Any:
    """Inputs, states and parameters, the same for both libraries."""
    rng = np.random.default_rng(1)

    def draw(*shape: int) -> Any:
        return t.tensor(rng.normal(size=shape)).requires_grad_()

    x = draw(N, IN) if cell else draw(T, N, IN)
    shape = (N, H) if cell else (layers * directions, N, H)
    states = tuple(draw(*shape) for _ in range(2 if kind == "lstm" else 1))
    params = []
    for layer in range(layers):
        for _ in range(directions):
            rows = GATES[kind] * H
            params += [draw(rows, directions * H if layer else IN), draw(rows, H)]
            params += [draw(rows), draw(rows)] if biases else []
    return x, states, params


def seen(outs: Any, leaves: Any) -> list[Any]:
    """Results, the names of their nodes, and all gradients."""
    outs = outs if isinstance(outs, tuple) else (outs,)
    sum((o * o).sum() for o in outs).backward()
    facts: list[Any] = [(tuple(o.shape), str(o.dtype), o.grad_fn.name()) for o in outs]
    return facts + [o.detach().numpy() for o in outs] + [x.grad.numpy() for x in leaves]


def same(have: list[Any], want: list[Any]) -> None:
    assert len(have) == len(want)
    for a, b in zip(have, want, strict=True):
        if isinstance(b, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10)
        else:
            assert a == b


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("biases", [True, False])
def test_cells(kind: str, biases: bool) -> None:
    def program(t: Any) -> list[Any]:
        x, states, params = arrays(t, kind, 1, 1, biases, True)
        hx = states if kind == "lstm" else states[0]
        return seen(getattr(t, kind + "_cell")(x, hx, *params), (x, *states, *params))

    same(program(leafax), program(torch))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(
    ("layers", "both", "biases", "first"),
    [(1, False, True, False), (2, True, True, False), (2, False, False, True)],
)
def test_layers(kind: str, layers: int, both: bool, biases: bool, first: bool) -> None:
    def program(t: Any) -> list[Any]:
        x, states, params = arrays(t, kind, layers, 1 + both, biases, False)
        hx = states if kind == "lstm" else states[0]
        given = x.transpose(0, 1) if first else x
        rest = (biases, layers, 0.0, False, both, first)
        return seen(getattr(t, kind)(given, hx, params, *rest), (x, *states, *params))

    same(program(leafax), program(torch))


def test_a_layer_is_one_node_however_long_the_sequence_is() -> None:
    x, states, params = arrays(leafax, "gru", 1, 1, True, False)
    leafax.gru(x, states[0], params, True, 1, 0.0, False, False, False)[0].tolist()
    (run,) = leafax.explain(last=1)
    assert run.nodes < 10


def test_dropout_is_between_layers_alone() -> None:
    x, states, params = arrays(leafax, "rnn_tanh", 2, 1, True, False)

    def run(train: bool, layers: int) -> Any:
        leafax.manual_seed(0)
        hx, given = states[0][:layers], params[: 4 * layers]
        return leafax.rnn_tanh(x, hx, given, True, layers, 0.5, train, False, False)[0].tolist()

    assert run(True, 1) == run(False, 1)
    assert run(True, 2) != run(False, 2)


ERRORS = (
    "t.gru()", "t.lstm_cell(x[0], h[0], *p4)", "t.lstm_cell(x[0], (h[0],), *p4)",
    "t.rnn_tanh_cell(x[0], h[0], *p3)", "t.gru_cell(x[0], h[0][:1], *p3)",
    "t.gru_cell(x[0][:, :2], h[0], *p3)", "t.lstm_cell(x[0], (h[0], h[0][:, :2]), *p4)",
    "t.rnn_tanh_cell(x[0][0], h[0][0], *p1)", "t.gru_cell(x[0], h[0])",
    "t.lstm(x, (h,), p4, True, 1, 0.0, False, False, False)",
    "t.gru(x, h, p3[:2], True, 1, 0.0, False, False, False)",
    "t.gru(x, h, p3, True, 2, 0.0, False, False, False)",
    "t.gru(x, h, p3 + p3, True, 1, 0.0, False, False, False)",
    "t.gru(x, h, p3, True, 1, 0.0, False, True, False)",
    "t.gru(x, h, p3, False, 1, 0.0, False, False, False)",
    "t.gru(x[0], h, p3, True, 1, 0.0, False, False, False)",
    "t.gru(x[:0], h, p3, True, 1, 0.0, False, False, False)",
    "t.gru(x[..., :2], h, p3, True, 1, 0.0, False, False, False)",
    "t.rnn_relu(x, h[..., :2], p1, True, 1, 0.0, False, False, False)",
    "t.rnn_relu(x, h[:, :1], p1, True, 1, 0.0, False, False, False)",
    "t.rnn_relu(x, h.float(), p1, True, 1, 0.0, False, False, False)",
)  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    def said(t: Any) -> tuple[str, str]:
        scope = {"t": t}
        for kind, n in (("lstm", 4), ("gru", 3), ("rnn_tanh", 1)):
            x, states, params = arrays(t, kind, 1, 1, True, False)
            scope |= {"x": x, "h": states[0], f"p{n}": tuple(params)}
        with pytest.raises(Exception) as caught:
            eval(call, scope)
        return type(caught.value).__name__, str(caught.value)

    assert said(leafax) == said(torch)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_packed_sequences(kind: str, layers: int, both: bool) -> None:
    def program(t: Any) -> list[Any]:
        x, states, params = arrays(t, kind, layers, 1 + both, True, False)
        hx = states if kind == "lstm" else states[0]
        data = x.reshape(-1, IN)[[0, 1, 2, 3, 4, 6]]
        sizes = t.tensor([2, 2, 1, 1])
        rest = (True, layers, 0.0, False, both)
        outs = getattr(t, kind)(data, sizes, hx, params, *rest)
        sum((o * o).sum() for o in outs).backward()
        found = [o.detach().numpy() for o in outs]
        return found + [p.grad.numpy() for p in (x, *states, *params)]

    same(program(leafax), program(torch))


def test_lstm_with_projections() -> None:
    def program(t: Any) -> list[Any]:
        x, (_, c), (w_ih, w_hh, *biases) = arrays(t, "lstm", 1, 1, True, False)
        h, w_hr = c[..., :2].detach().requires_grad_(), w_hh[:2].detach().requires_grad_()
        w_hh = w_hh[:, :2].detach().requires_grad_()
        params = (w_ih, w_hh, *biases, w_hr)
        outs = t.lstm(x, (h, c), params, True, 1, 0.0, False, False, False)
        sum((o * o).sum() for o in outs).backward()
        found = [o.detach().numpy() for o in outs]
        return found + [p.grad.numpy() for p in (x, h, c, *params)]

    same(program(leafax), program(torch))
