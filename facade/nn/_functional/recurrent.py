"""`torch.lstm`, `torch.gru` and `torch.rnn_*`, and the cells that they repeat."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._core.trie import local
from ..._core.vmap_checks import refuse_in_vmap
from ..._dispatch.record import apply
from .dropout import dropout as _dropout
from .linear import linear
from .packed_sequence import Places

_RECURRENCE, _STACK, _CAT = TABLE["_recurrence"], TABLE["stack"], TABLE["cat"]
_GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def _check_cell(kind: str, input: Any, hiddens: tuple[Any, ...], w_ih: Any, w_hh: Any) -> None:
    """Raise PyTorch's errors for sizes that do not fit."""
    size, wanted = input.size(1), w_ih.size(1)
    if size != wanted:
        raise RuntimeError(f"input has inconsistent input_size: got {size} expected {wanted}")
    hidden = w_hh.size(1)
    rows = _GATES[kind] * hidden
    if w_ih.size(0) != rows:
        raise RuntimeError(
            f"weight_ih first dim must be {_GATES[kind]} * hidden_size = {rows}, but got "
            f"{w_ih.size(0)}"
        )
    for i, h in enumerate(hiddens):
        if h.size(0) != input.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{i} batch size {h.size(0)}"
            )
        if h.size(1) != hidden:
            raise RuntimeError(
                f"hidden{i} has inconsistent hidden_size: got {h.size(1)}, expected {hidden}"
            )


def _pair(hx: Any) -> tuple[Any, Any]:
    if isinstance(hx, Handle):
        raise TypeError(
            "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return tuple(hx)  # type: ignore[return-value]


def lstm_cell(
    input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None
) -> tuple[Any, Any]:
    """One step of an LSTM.

    Args:
      input: `(N, in)`.
      hx: hidden and cell state, `(N, H)` each.
      w_ih: `(4 * H, in)`: of the input, forget, cell and output gate.
      w_hh: `(4 * H, H)`.

    Returns:
      The next hidden and cell state.
    """
    h, c = _pair(hx)
    _check_cell("lstm", input, (h, c), w_ih, w_hh)
    gates = linear(input, w_ih, b_ih) + linear(h, w_hh, b_hh)
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
    """One step of a GRU: the next hidden state.

    Args:
      input: `(N, in)`.
      hx: `(N, H)`.
      w_ih: `(3 * H, in)`: of the reset, update and new gate.
      w_hh: `(3 * H, H)`.
    """
    _check_cell("gru", input, (hx,), w_ih, w_hh)
    r, z, n = linear(input, w_ih, b_ih).chunk(3, 1)
    hr, hz, hn = linear(hx, w_hh, b_hh).chunk(3, 1)
    n = (n + (r + hr).sigmoid() * hn).tanh()
    return (hx - n) * (z + hz).sigmoid() + n


def _rnn_cell(kind: str, activation: str) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        _check_cell(kind, input, (hx,), w_ih, w_hh)
        return getattr(linear(input, w_ih, b_ih) + linear(hx, w_hh, b_hh), activation)()

    cell.__name__ = cell.__qualname__ = kind + "_cell"
    cell.__doc__ = f"One step of an RNN: `{activation}` of what input and hidden state add up to."
    return cell


rnn_tanh_cell, rnn_relu_cell = _rnn_cell("rnn_tanh", "tanh"), _rnn_cell("rnn_relu", "relu")


def _layers(
    kind: str, input: Any, live: Any, states: list[Any], params: Any, has_biases: bool,
    num_layers: int, dropout: float, train: bool, bidirectional: bool, projected: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """The outputs `(T, N, directions * H)`, and each state `(layers * directions, N, H)` after.

    Without states they are zeros, which are no part of what is recorded.
    """
    if kind == "lstm" and states:
        projected = states[0].size(2) != states[1].size(2)
    directions, each = (2 if bidirectional else 1), (4 if has_biases else 2) + projected
    if len(params) % each:
        raise RuntimeError("got an incorrect number of RNN parameters")
    cells = [tuple(params[i : i + each]) for i in range(0, len(params), each)]
    count = num_layers * directions
    given = states[0].size(0) if states else count
    if bidirectional and (len(cells) % 2 or given % 2):
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    for what, found in (("hidden states", given), ("weights", len(cells))):
        if found != count:  # PyTorch asks for more also where there are too many
            raise RuntimeError(f"Expected more {what} in stacked_rnn")
    if input.size(0) == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    if input.dim() < 3:
        input.select(0, 0).size(1)  # the error that PyTorch's first step raises
    starts = [s.unbind(0) for s in states]
    ends: list[list[Any]] = [[] for _ in range(2 if kind == "lstm" else 1)]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            at = layer * directions + direction
            first = [s[at] for s in starts]
            weights = list(cells[at])
            w_hr = weights.pop() if projected else None
            out, *last = _direction(kind, input, first, weights, w_hr, live, direction == 1)
            outs.append(out)
            for kept, state in zip(ends, last, strict=True):
                kept.append(state)
        input = outs[0] if directions == 1 else apply(_CAT, tuple(outs), 2)
        if dropout and train and layer < num_layers - 1:
            input = _dropout(input, dropout)
    return (input, *[apply(_STACK, tuple(kept), 0) for kept in ends])


def _direction(
    kind: str, input: Any, states: list[Any], weights: list[Any], w_hr: Any, live: Any,
    reverse: bool,
) -> Any:  # fmt: skip
    w_ih, w_hh, *biases = weights
    b_ih, b_hh = biases or (None, None)
    gates = linear(input, w_ih, b_ih)
    h, c = (*states, None, None)[:2]
    if local.mode.autocast is not None:  # a GRU's states keep their dtype, in PyTorch, too
        dtype = gates.dtype if kind != "gru" else (input if h is None else h).dtype
        every = (gates, w_hh, b_hh, h, c, w_hr)
        gates, w_hh, b_hh, h, c, w_hr = (x if x is None else x.to(dtype) for x in every)
    return apply(_RECURRENCE, gates, w_hh, b_hh, h, c, w_hr, live, kind, reverse)


def padded_layers(
    kind: str, input: Any, states: list[Any], params: Any, has_biases: bool, num_layers: int,
    dropout: float, train: bool, bidirectional: bool, batch_first: bool, projected: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    """Run layers of this kind, "lstm", "gru", "rnn_tanh" or "rnn_relu"; from zeros without states.

    Args:
      projected: without states, whether the hidden ones are narrower than the cell states.
    """
    refuse_in_vmap(kind, input, *states, *params)
    if batch_first:
        input = input.transpose(0, 1)
    rest = (has_biases, num_layers, dropout, train, bidirectional, projected)
    out, *ends = _layers(kind, input, None, states, params, *rest)
    if batch_first:
        turn = out.transpose if kind == "lstm" else out.transpose_  # as PyTorch does it
        out = turn(0, 1)
    return (out, *ends)


def _packed_layers(
    kind: str, data: Any, batch_sizes: Any, states: list[Any], params: Any, *rest: Any
) -> tuple[Any, ...]:
    """Return the outputs of a packed sequence, packed as well, and each one's last states."""
    places = Places.of(batch_sizes)
    out, *ends = _layers(kind, places.padded(data), places.live(), states, params, *rest)
    return (places.packed(out), *ends)


def _states(kind: str, hx: Any, params: Any) -> list[Any]:
    if isinstance(params, Handle) or isinstance(hx, Handle) == (kind == "lstm"):
        raise TypeError(f"{kind}(): wrong types of hx and params")
    states = [hx] if isinstance(hx, Handle) else list(hx)
    if kind == "lstm" and len(states) != 2:
        raise RuntimeError("lstm expects two hidden states")
    return states


def _rnn(kind: str) -> Callable[..., Any]:
    def layers(
        input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: float,
        train: bool, bidirectional: bool, batch_first: bool,
    ) -> tuple[Any, ...]:  # fmt: skip
        rest: tuple[Any, ...] = (num_layers, dropout, train, bidirectional, batch_first)
        if isinstance(hx, Handle) and isinstance(has_biases, tuple | list):
            batch_sizes, hx, params, *rest = hx, params, has_biases, *rest  # type: ignore[assignment]
            states = _states(kind, hx, params)
            refuse_in_vmap(kind, input, *states, *params)
            return _packed_layers(kind, input, batch_sizes, states, tuple(params), *rest)
        states = _states(kind, hx, params)
        return padded_layers(kind, input, states, tuple(params), has_biases, *rest)

    layers.__name__ = layers.__qualname__ = kind
    layers.__doc__ = f"""Layers of {kind.upper()} cells over a sequence.

    A packed sequence is given as `(data, batch_sizes, hx, params, ...)`, without `batch_first`.

    Args:
      input: `(T, N, in)`, or `(N, T, in)` if `batch_first`.
      hx: `(num_layers * directions, N, H)`{", twice: hidden and cell state" * (kind == "lstm")}.
      params: for each layer and direction `w_ih`, `w_hh` and, if `has_biases`, `b_ih`, `b_hh`
        {"and, where hidden states are narrower than cell states, `w_hr`" * (kind == "lstm")}.
      dropout: probability, between layers, if `train`.

    Returns:
      The last layer's hidden states for each step, and the states after the last step.
    """
    return layers


lstm, gru = _rnn("lstm"), _rnn("gru")
rnn_tanh, rnn_relu = _rnn("rnn_tanh"), _rnn("rnn_relu")
