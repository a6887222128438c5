"""The program of `recurrent_torch.py` written by hand in JAX, with its parameters and batches."""

import handwritten as hand
import jax
import jax.numpy as jnp
import numpy as np
import optax
from handwritten import Batch, Params, Program

LAYERS, WIDTH, VOCABULARY = 2, 32, 64
BATCH, TOKENS = 4, 16
RATE = 1e-3


def make_lstm() -> Program:
    """Return a language model of two LSTM layers, 32 wide, under Adam, batch 4 of 16 tokens."""
    return hand._supervised(_lstm, optax.adam(RATE), lstm_params(), lstm_batch)


def lstm_params(seed: int = 0) -> Params:
    """Return the parameters, named as `nn.LSTM` names them."""
    random, wide = np.random.default_rng(seed), 4 * WIDTH
    params = {"tokens.weight": hand._normal(random, (VOCABULARY, WIDTH), 0.1)}
    for i in range(LAYERS):
        for side in ("ih", "hh"):
            params[f"lstm.weight_{side}_l{i}"] = hand._normal(random, (wide, WIDTH), WIDTH**-0.5)
            params[f"lstm.bias_{side}_l{i}"] = np.zeros(wide, np.float32)
    params["head.weight"] = hand._normal(random, (VOCABULARY, WIDTH), WIDTH**-0.5)
    params["head.bias"] = np.zeros(VOCABULARY, np.float32)
    return params


def lstm_batch(i: int) -> Batch:
    """Return tokens `int32[4, 16]` and the next ones."""
    random = np.random.default_rng(i)
    start = random.integers(VOCABULARY, size=(BATCH, 1))
    tokens = (start + random.integers(1, 8, size=(BATCH, 1)) * np.arange(TOKENS + 1)) % VOCABULARY
    return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)


def _lstm(params: Params, tokens: jax.Array) -> jax.Array:
    x = params["tokens.weight"][tokens].swapaxes(0, 1)
    for i in range(LAYERS):
        w, b, recurrent = (
            params[f"lstm.weight_ih_l{i}"], params[f"lstm.bias_ih_l{i}"],
            (params[f"lstm.weight_hh_l{i}"], params[f"lstm.bias_hh_l{i}"]),
        )  # fmt: skip

        def turn(carry: tuple[jax.Array, jax.Array], x: jax.Array, recurrent: Params = recurrent):  # type: ignore[no-untyped-def, assignment]
            (h, c), (w, b) = carry, recurrent
            gates = x + h @ w.T + b
            put, forget, new, out = jnp.split(gates, 4, -1)
            c = jax.nn.sigmoid(forget) * c + jax.nn.sigmoid(put) * jnp.tanh(new)
            h = jax.nn.sigmoid(out) * jnp.tanh(c)
            return (h, c), h

        zeros = jnp.zeros((x.shape[1], WIDTH))
        _, x = jax.lax.scan(turn, (zeros, zeros), x @ w.T + b)
    return x.swapaxes(0, 1) @ params["head.weight"].T + params["head.bias"]
