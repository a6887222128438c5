"""The programs of `layers_torch.py` written by hand in JAX, with their parameters and batches.

Names and layouts of the parameters are those of the models' `state_dict()`.
"""

import functools
from typing import Any

import handwritten as hand
import jax
import jax.numpy as jnp
import numpy as np
import optax
from handwritten import Batch, Params, Program, State

from leafax.functional.ops.nn.convolve import convolve

RESNET_WIDTH, RESNET_BLOCKS, RESNET_CLASSES = 32, (2, 2, 2, 2), 10
RESNET_BATCH, RESNET_SIZE = 16, 32
RESNET_RATE, RESNET_MOMENTUM, RESNET_DECAY = 1e-3, 0.9, 5e-4
NORM_MOMENTUM, EPS = 0.1, 1e-5

ENCODER_LAYERS, ENCODER_WIDTH, ENCODER_HEADS, ENCODER_INNER = 4, 128, 4, 512
ENCODER_BATCH, ENCODER_TOKENS, ENCODER_VOCABULARY = 8, 64, 256
ENCODER_RATE, ENCODER_DECAY = 1e-3, 0.01


def make_resnet(plain: bool = False) -> Program:
    """Return a narrow ResNet-18 under SGD with momentum and weight decay, batch 16 of 32x32.

    Args:
        plain: True leaves every convolution to XLA; else they are lowered as leafax lowers them.
    """

    def loss_of(params: Params, stats: Params, batch: Batch) -> tuple[jax.Array, Params]:
        logits, changed = _resnet(params, stats, batch[0], plain)
        return hand._cross_entropy(logits, batch[1]), changed

    optimizer = optax.chain(
        optax.add_decayed_weights(RESNET_DECAY), optax.sgd(RESNET_RATE, RESNET_MOMENTUM)
    )

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: State, batch: Batch) -> tuple[State, jax.Array]:
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, stats), grads = gradient(state.params, state.stats, batch)
        return hand._updated(optimizer, state, grads)._replace(stats=stats), loss

    params, stats = resnet_variables()
    return Program(step, State(params, optimizer.init(params), stats), resnet_batch)


def make_encoder() -> Program:
    """Return a language model of 4 encoder layers, 128 wide, under AdamW, batch 8 of 64 tokens."""
    optimizer = optax.adamw(ENCODER_RATE, weight_decay=ENCODER_DECAY)
    return hand._supervised(_encoder, optimizer, encoder_params(), encoder_batch)


def resnet_convolutions() -> list[tuple[str, int, int, int, int, int]]:
    """Return of each convolution its name, channels in and out, kernel, stride, padding."""
    found = [("conv1", 3, RESNET_WIDTH, 7, 2, 3)]
    width = RESNET_WIDTH
    for i, blocks in enumerate(RESNET_BLOCKS):
        out = RESNET_WIDTH * 2**i
        for j in range(blocks):
            stride = 2 if i and not j else 1
            name = f"layer{i + 1}.{j}"
            found.append((f"{name}.conv1", width, out, 3, stride, 1))
            found.append((f"{name}.conv2", out, out, 3, 1, 1))
            if stride != 1 or width != out:
                found.append((f"{name}.downsample.0", width, out, 1, stride, 0))
            width = out
    return found


def norm_of(convolution: str) -> str:
    """Return the name of the batch norm behind a convolution."""
    if convolution.endswith("downsample.0"):
        return convolution[:-1] + "1"
    return convolution.replace("conv", "bn")


def resnet_variables(seed: int = 0) -> tuple[Params, Params]:
    """Return the parameters and the running statistics, as torchvision names them."""
    random = np.random.default_rng(seed)
    params, stats = {}, {}
    for name, inputs, outputs, kernel, _, _ in resnet_convolutions():
        shape, norm = (outputs, inputs, kernel, kernel), norm_of(name)
        params[f"{name}.weight"] = hand._normal(random, shape, (2 / (outputs * kernel**2)) ** 0.5)
        params[f"{norm}.weight"] = np.ones(outputs, np.float32)
        params[f"{norm}.bias"] = np.zeros(outputs, np.float32)
        stats[f"{norm}.running_mean"] = np.zeros(outputs, np.float32)
        stats[f"{norm}.running_var"] = np.ones(outputs, np.float32)
        stats[f"{norm}.num_batches_tracked"] = np.zeros((), np.int32)
    features = RESNET_WIDTH * 2 ** (len(RESNET_BLOCKS) - 1)
    params["fc.weight"] = hand._normal(random, (RESNET_CLASSES, features), features**-0.5)
    params["fc.bias"] = np.zeros(RESNET_CLASSES, np.float32)
    return params, stats


def encoder_params(seed: int = 0) -> Params:
    """Return the parameters, named as `nn.TransformerEncoder` names them."""
    random, width, inner = np.random.default_rng(seed), ENCODER_WIDTH, ENCODER_INNER
    linears = {
        "self_attn.in_proj_": (3 * width, width), "self_attn.out_proj.": (width, width),
        "linear1.": (inner, width), "linear2.": (width, inner),
    }  # fmt: skip
    params = {
        "tokens.weight": hand._normal(random, (ENCODER_VOCABULARY, width), 0.1),
        "positions.weight": hand._normal(random, (ENCODER_TOKENS, width), 0.1),
    }
    for i in range(ENCODER_LAYERS):
        for name, shape in linears.items():
            params[f"encoder.layers.{i}.{name}weight"] = hand._normal(random, shape, 0.05)
            params[f"encoder.layers.{i}.{name}bias"] = np.zeros(shape[0], np.float32)
        for norm in ("norm1", "norm2"):
            params[f"encoder.layers.{i}.{norm}.weight"] = np.ones(width, np.float32)
            params[f"encoder.layers.{i}.{norm}.bias"] = np.zeros(width, np.float32)
    params["head.weight"] = hand._normal(random, (ENCODER_VOCABULARY, width), 0.05)
    params["head.bias"] = np.zeros(ENCODER_VOCABULARY, np.float32)
    return params


def resnet_batch(i: int) -> Batch:
    """Return noise, `float32[16, 3, 32, 32]`, and labels `int32[16]`."""
    random = np.random.default_rng(i)
    images = hand._normal(random, (RESNET_BATCH, 3, RESNET_SIZE, RESNET_SIZE), 1.0)
    return images, random.integers(RESNET_CLASSES, size=RESNET_BATCH).astype(np.int32)


def encoder_batch(i: int) -> Batch:
    """Return tokens `int32[8, 64]`, and the next ones, of the GPT's sequences."""
    tokens, following = hand.gpt_batch(i)
    rows, length = slice(ENCODER_BATCH), slice(ENCODER_TOKENS)
    return tokens[rows, length].copy(), following[rows, length].copy()


def _resnet(params: Params, stats: Params, x: Any, plain: bool) -> tuple[Any, Params]:
    changed: Params = {}
    facts = {name: (stride, pad) for name, _, _, _, stride, pad in resnet_convolutions()}

    def conv_norm(name: str, x: Any) -> Any:
        stride, pad = facts[name]
        y, norm = _convolved(x, params[f"{name}.weight"], stride, pad, plain), norm_of(name)
        mean = y.mean((0, 2, 3), keepdims=True)
        centred = y - mean
        variance = (centred**2).mean((0, 2, 3), keepdims=True)
        count = y.size // y.shape[1]
        for stat, new in (
            ("running_mean", mean), ("running_var", variance * (count / (count - 1))),
        ):  # fmt: skip
            old = stats[f"{norm}.{stat}"]
            changed[f"{norm}.{stat}"] = (1 - NORM_MOMENTUM) * old + NORM_MOMENTUM * new.reshape(-1)
        tracked = f"{norm}.num_batches_tracked"
        changed[tracked] = stats[tracked] + 1
        scaled = centred * jax.lax.rsqrt(variance + EPS)
        weight, bias = params[f"{norm}.weight"], params[f"{norm}.bias"]
        return scaled * weight[:, None, None] + bias[:, None, None]

    x = jax.nn.relu(conv_norm("conv1", x))
    pads = [(0, 0), (0, 0), (1, 1), (1, 1)]
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), pads)
    for i, blocks in enumerate(RESNET_BLOCKS):
        for j in range(blocks):
            name = f"layer{i + 1}.{j}"
            shortcut = f"{name}.downsample.0"
            y = conv_norm(f"{name}.conv2", jax.nn.relu(conv_norm(f"{name}.conv1", x)))
            x = jax.nn.relu(y + (conv_norm(shortcut, x) if shortcut in facts else x))
    return hand._linear(params, "fc", x.mean((2, 3)), True), changed


def _convolved(x: Any, weight: Any, stride: int, pad: int, plain: bool) -> Any:
    pads = [(pad, pad)] * 2
    if plain:
        return jax.lax.conv_general_dilated(x, weight, (stride, stride), pads)
    return convolve(x, weight, (stride, stride), pads, (1, 1), (1, 1), 1)


def _encoder(params: Params, tokens: Any) -> Any:
    causal = jnp.tril(jnp.ones((tokens.shape[1],) * 2, bool))
    x = params["tokens.weight"][tokens] + params["positions.weight"]
    for i in range(ENCODER_LAYERS):
        layer = f"encoder.layers.{i}"
        qkv = x @ params[f"{layer}.self_attn.in_proj_weight"].T
        qkv = qkv + params[f"{layer}.self_attn.in_proj_bias"]
        y = hand._attention(qkv, causal)
        y = x + hand._linear(params, f"{layer}.self_attn.out_proj", y, True)
        x = hand._layer_norm(params, f"{layer}.norm1", y)
        wide = jax.nn.relu(hand._linear(params, f"{layer}.linear1", x, True))
        y = x + hand._linear(params, f"{layer}.linear2", wide, True)
        x = hand._layer_norm(params, f"{layer}.norm2", y)
    return hand._linear(params, "head", x, True)
