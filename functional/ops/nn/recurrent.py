"""Recurrent layers: the steps of one direction of one layer, by `lax.scan`."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...program.dtypes import scalar_name
from ...program.numerics import numerics, products_as
from ...program.op import op

Array = jax.Array


def _step(kind: str, gates: Array, hidden: Array, h: Array, c: Array | None) -> tuple[Array, ...]:
    """Compute the next states, from what input and hidden state add to the gates."""
    if kind == "lstm":
        assert c is not None
        i, f, g, o = jnp.split(gates + hidden, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return jax.nn.sigmoid(o) * jnp.tanh(c), c
    if kind == "gru":
        r, z, n = jnp.split(gates, 3, 1)
        hr, hz, hn = jnp.split(hidden, 3, 1)
        n = jnp.tanh(n + jax.nn.sigmoid(r + hr) * hn)
        return ((h - n) * jax.nn.sigmoid(z + hz) + n,)
    total = gates + hidden
    return (jnp.tanh(total) if kind == "rnn_tanh" else jax.nn.relu(total),)


def _check(gates: Array, w_hh: Array, state: Array) -> None:
    """Raise PyTorch's errors for a state that does not fit."""
    if state.dtype != w_hh.dtype:
        found = f"{scalar_name(state.dtype)} and {scalar_name(w_hh.dtype)}"
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {found}")
    rows, columns = w_hh.shape
    if state.shape[-1] != columns:
        raise RuntimeError(
            "mat1 and mat2 shapes cannot be multiplied "
            f"({state.shape[0]}x{state.shape[-1]} and {columns}x{rows})"
        )
    if state.shape[0] != gates.shape[1]:
        wanted = [gates.shape[1], columns]
        raise RuntimeError(
            f"output with shape {list(state.shape)} doesn't match the broadcast shape {wanted}"
        )
    if rows != gates.shape[-1]:
        raise RuntimeError(
            f"The size of tensor a ({gates.shape[-1]}) must match the size of tensor b ({rows}) "
            "at non-singleton dimension 1"
        )


@op(
    name="_recurrence", method=False, function=False, backward="StackBackward0", residuals=True,
    saves={"self": "*"},
)  # fmt: skip
def recurrence(
    gates: Array, w_hh: Array, b_hh: Array | None, h: Array | None, c: Array | None,
    w_hr: Array | None, live: Array | None, kind: str, reverse: bool,
) -> tuple[Array, ...]:  # fmt: skip
    """Return all hidden states `(T, N, H)`, the last one, and for an LSTM the last cell state.

    Args:
      gates: `(T, N, gates * H)`, what the inputs add.
      w_hh: `(gates * H, H)`.
      h: `(N, H)` before the first step, zeros if None; so `c`, for an LSTM.
      w_hr: `(P, H)`, what projects the hidden states of an LSTM, `(N, P)` then; or None.
      live: `(T, N)`, False where a sequence has no such step: its states stay; or None.
      kind: "lstm", "gru", "rnn_tanh" or "rnn_relu".
      reverse: from the last input to the first.
    """

    first: tuple[Array, ...]
    if h is None:
        widths = (w_hh.shape[1], w_hh.shape[0] // 4)[: 2 if kind == "lstm" else 1]
        first = tuple(jnp.zeros((gates.shape[1], n), gates.dtype) for n in widths)
    else:
        first = (h,) if c is None else (h, c)
    for x in first if w_hr is None else first[:1]:
        _check(gates, w_hh, x)

    def step(
        states: tuple[Array, ...], now: tuple[Array, Array | None]
    ) -> tuple[tuple[Array, ...], Array]:
        x, alive = now
        hidden = states[0] @ w_hh.T
        if b_hh is not None:
            hidden = hidden + b_hh
        new = _step(kind, x, hidden, states[0], states[1] if len(states) > 1 else None)
        if w_hr is not None:
            new = (new[0] @ w_hr.T, *new[1:])
        if alive is not None:
            kept = zip(new, states, strict=True)
            new = tuple(jnp.where(alive[:, None], a, b) for a, b in kept)
        return new, new[0]

    with products_as(numerics().rnn, (gates,)):
        last, seen = jax.lax.scan(step, first, (gates, live), reverse=reverse)
    return (seen, *last)
