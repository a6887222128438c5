"""The programs that leafax is measured on, written by hand in JAX as an expert would.

Each `make_*` returns a `Program`: `step(state, batch) -> (state, loss)` is jitted and donates its
state; `state.params` are numpy arrays, so that leafax and torch start from equal numbers; and
`batch(i)` are the numpy arrays of step `i`. The parameters of the MLP and of the GPT have torch's
names and layout: the weight of a linear layer is `(out, in)`.
"""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

Params = dict[str, Any]  # names of torch -> arrays, or a tree of Flax
Batch = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]  # inputs, and labels of int32


class State(NamedTuple):
    """The values that a step changes; `stats` are BatchNorm's where the program trains them."""

    params: Any
    opt_state: Any
    stats: Any = ()


class Program(NamedTuple):
    """A training program; it unpacks as `step, state, batch`."""

    step: Callable[[State, Batch], tuple[State, jax.Array]]
    state: State
    batch: Callable[[int], Batch]


MLP_WIDTHS = (784, 512, 512, 10)
MLP_BATCH = 128
MLP_RATE, MLP_MOMENTUM = 0.05, 0.9

GPT_LAYERS, GPT_WIDTH, GPT_HEADS = 4, 128, 4
GPT_BATCH, GPT_TOKENS, GPT_VOCABULARY = 16, 128, 256
GPT_RATE, GPT_DECAY = 1e-3, 0.01

FINETUNE_BATCH, FINETUNE_SIZE, FINETUNE_CLASSES = 16, 96, 10
FINETUNE_RATE = 1e-3


def make_mlp(out_in: bool = True) -> Program:
    """Return the MLP 784-512-512-10 with ReLU under SGD with momentum, batch 128.

    Args:
        out_in: False keeps the weights as `(in, out)`, transposed before the first step.
    """
    return _supervised(
        functools.partial(_mlp, out_in=out_in),
        optax.sgd(MLP_RATE, momentum=MLP_MOMENTUM),
        mlp_params() if out_in else _transposed(mlp_params()),
        mlp_batch,
    )


def make_gpt(out_in: bool = True) -> Program:
    """Return a GPT of 4 layers, 128 wide, 4 heads, under AdamW, batch 16 of 128 tokens.

    Args:
        out_in: False keeps the weights as `(in, out)`, transposed before the first step.
    """
    return _supervised(
        functools.partial(_gpt, out_in=out_in),
        optax.adamw(GPT_RATE, weight_decay=GPT_DECAY),
        gpt_params() if out_in else _transposed(gpt_params()),
        gpt_batch,
    )


def make_finetune_head(plain: bool = False) -> Program:
    """Return fine-tuning of EfficientNet-Lite0 that differentiates only a new 10-way head.

    The frozen variables are an argument that is not donated; BatchNorm uses its statistics.
    `step.func` is the jitted function and `step.args` the frozen variables.

    Args:
        plain: True leaves every convolution to XLA, also on a CPU, where that is ten times slower.
    """
    model, variables = _lite0(plain)
    head = variables["params"].pop("classifier")
    optimizer = optax.adam(FINETUNE_RATE)

    def loss_of(head: Params, frozen: Any, batch: Batch) -> jax.Array:
        params = {**frozen["params"], "classifier": head}
        return _cross_entropy(model.apply({**frozen, "params": params}, batch[0]), batch[1])

    def step(frozen: Any, state: State, batch: Batch) -> tuple[State, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of)(state.params, frozen, batch)
        return _updated(optimizer, state, grads), loss

    compiled = functools.partial(jax.jit(step, donate_argnums=1), jax.device_put(variables))
    return Program(compiled, State(head, optimizer.init(head)), finetune_batch)


def make_finetune_all(train_norm: bool = True, plain: bool = False) -> Program:
    """Return fine-tuning of every parameter of EfficientNet-Lite0.

    Args:
        train_norm: True normalises by the batch and updates the statistics, as usual in
            training; False uses the pretrained statistics, as the frozen program does.
        plain: True leaves every convolution to XLA.
    """
    model, variables = _lite0(plain)
    optimizer = optax.adam(FINETUNE_RATE)

    def loss_of(params: Params, stats: Any, batch: Batch) -> tuple[jax.Array, Any]:
        given = {"params": params, "batch_stats": stats}
        if not train_norm:
            return _cross_entropy(model.apply(given, batch[0]), batch[1]), stats
        logits, changed = model.apply(given, batch[0], train=True, mutable=["batch_stats"])
        return _cross_entropy(logits, batch[1]), changed["batch_stats"]

    def step(state: State, batch: Batch) -> tuple[State, jax.Array]:
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, stats), grads = gradient(state.params, state.stats, batch)
        return _updated(optimizer, state, grads)._replace(stats=stats), loss

    params, stats = variables["params"], variables["batch_stats"]
    state = State(params, optimizer.init(params), stats)
    return Program(jax.jit(step, donate_argnums=0), state, finetune_batch)


def mlp_params(seed: int = 0) -> Params:
    """Return `{"0.weight": float32[512, 784], "0.bias": float32[512], ...}`."""
    random, params = np.random.default_rng(seed), {}
    for i, (inputs, outputs) in enumerate(zip(MLP_WIDTHS, MLP_WIDTHS[1:], strict=False)):
        params[f"{i}.weight"] = _normal(random, (outputs, inputs), 1 / np.sqrt(inputs))
        params[f"{i}.bias"] = np.zeros(outputs, np.float32)
    return params


def gpt_params(seed: int = 0) -> Params:
    """Return embeddings `tokens`, `positions`; blocks `0.` to `3.`; `norm` and `head.weight`."""
    random, width = np.random.default_rng(seed), GPT_WIDTH
    linears = {"qkv": (3 * width, width), "out": (width, width)}
    linears |= {"up": (4 * width, width), "down": (width, 4 * width)}
    params = {"tokens.weight": _normal(random, (GPT_VOCABULARY, width), 0.02)}
    params["positions.weight"] = _normal(random, (GPT_TOKENS, width), 0.02)
    for i in range(GPT_LAYERS):
        for name, shape in linears.items():
            params[f"{i}.{name}.weight"] = _normal(random, shape, 0.02)
            params[f"{i}.{name}.bias"] = np.zeros(shape[0], np.float32)
    for norm in (*(f"{i}.norm{j}" for i in range(GPT_LAYERS) for j in (1, 2)), "norm"):
        params[f"{norm}.weight"] = np.ones(width, np.float32)
        params[f"{norm}.bias"] = np.zeros(width, np.float32)
    params["head.weight"] = _normal(random, (GPT_VOCABULARY, width), 0.02)
    return params


def mlp_batch(i: int) -> Batch:
    """Return `float32[128, 784]` and `int32[128]` labels that a linear map of it decides."""
    inputs = _normal(np.random.default_rng(i), (MLP_BATCH, MLP_WIDTHS[0]), 1.0)
    teacher = _normal(np.random.default_rng(10**6), (MLP_WIDTHS[0], MLP_WIDTHS[-1]), 1.0)
    return inputs, (inputs @ teacher).argmax(1).astype(np.int32)


def gpt_batch(i: int) -> Batch:
    """Return tokens `int32[16, 128]` that count up by a step of their row, and the next ones."""
    random = np.random.default_rng(i)
    start = random.integers(GPT_VOCABULARY, size=(GPT_BATCH, 1))
    steps = random.integers(1, 8, size=(GPT_BATCH, 1))
    tokens = (start + steps * np.arange(GPT_TOKENS + 1)) % GPT_VOCABULARY
    return tokens[:, :-1].astype(np.int32), tokens[:, 1:].astype(np.int32)


def finetune_batch(i: int) -> Batch:
    """Return noise, `float32[16, 96, 96, 3]`, and labels `int32[16]`; time does not see more."""
    random = np.random.default_rng(i)
    images = _normal(random, (FINETUNE_BATCH, FINETUNE_SIZE, FINETUNE_SIZE, 3), 0.5)
    labels = random.integers(FINETUNE_CLASSES, size=FINETUNE_BATCH)
    return images, labels.astype(np.int32)


def _supervised(
    logits_of: Callable[[Params, Any], Any],
    optimizer: optax.GradientTransformation,
    params: Params,
    batch: Callable[[int], Batch],
) -> Program:
    def loss_of(params: Params, batch: Batch) -> jax.Array:
        return _cross_entropy(logits_of(params, batch[0]), batch[1])

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: State, batch: Batch) -> tuple[State, jax.Array]:
        loss, grads = jax.value_and_grad(loss_of)(state.params, batch)
        return _updated(optimizer, state, grads), loss

    return Program(step, State(params, optimizer.init(params)), batch)


def _updated(optimizer: optax.GradientTransformation, state: State, grads: Any) -> State:
    updates, opt_state = optimizer.update(grads, state.opt_state, state.params)
    return state._replace(params=optax.apply_updates(state.params, updates), opt_state=opt_state)


def _cross_entropy(logits: Any, labels: Any) -> jax.Array:
    losses: jax.Array = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


def _mlp(params: Params, x: Any, out_in: bool) -> Any:
    last = len(MLP_WIDTHS) - 2
    for i in range(last):
        x = jax.nn.relu(_linear(params, f"{i}", x, out_in))
    return _linear(params, f"{last}", x, out_in)


def _gpt(params: Params, tokens: Any, out_in: bool) -> Any:
    linear = functools.partial(_linear, params, out_in=out_in)
    length = tokens.shape[1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    x = params["tokens.weight"][tokens] + params["positions.weight"][:length]
    for i in range(GPT_LAYERS):
        qkv = linear(f"{i}.qkv", _layer_norm(params, f"{i}.norm1", x))
        x = x + linear(f"{i}.out", _attention(qkv, causal))
        wide = jax.nn.gelu(linear(f"{i}.up", _layer_norm(params, f"{i}.norm2", x)))
        x = x + linear(f"{i}.down", wide)
    return linear("head", _layer_norm(params, "norm", x))


def _attention(qkv: Any, causal: jax.Array) -> Any:
    batch, length, width = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    heads = qkv.reshape(batch, length, 3, GPT_HEADS, width // GPT_HEADS)
    q, k, v = jnp.moveaxis(heads, (2, 3), (0, 2))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]).astype(np.float32)
    weights = jax.nn.softmax(jnp.where(causal, scores, -jnp.inf))
    return (weights @ v).swapaxes(1, 2).reshape(batch, length, width)


def _layer_norm(params: Params, name: str, x: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    return scaled * params[f"{name}.weight"] + params[f"{name}.bias"]


def _linear(params: Params, name: str, x: Any, out_in: bool) -> Any:
    weight = params[f"{name}.weight"]
    y = x @ (weight.T if out_in else weight)
    return y + params[f"{name}.bias"] if f"{name}.bias" in params else y


def _transposed(params: Params) -> Params:
    """Return `params` with the weights of linear layers as `(in, out)`; embeddings stay."""
    kept = ("tokens.weight", "positions.weight")
    return {
        name: np.ascontiguousarray(value.T) if value.ndim == 2 and name not in kept else value
        for name, value in params.items()
    }


def _lite0(plain: bool) -> tuple[Any, dict[str, Any]]:
    """Return the network with a new head, and its variables; Flax is imported only here."""
    examples = str(Path(__file__).parents[1] / "examples")
    if examples not in sys.path:
        sys.path.append(examples)
    from models.efficientnet_lite import EfficientNetLite0, conv_for_device, load_pretrained

    conv = jax.lax.conv_general_dilated if plain else conv_for_device
    return EfficientNetLite0(FINETUNE_CLASSES, conv=conv), load_pretrained(FINETUNE_CLASSES)


def _normal(random: np.random.Generator, shape: tuple[int, ...], scale: float) -> Any:
    return random.standard_normal(shape, np.float32) * np.float32(scale)
