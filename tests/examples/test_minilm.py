"""MiniLM in Flax against its forward pass written in torch, with the package's weights."""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F

import leafax
from leafax.adapters import linen, safetensors

sys.path.append(str(Path(__file__).parents[2] / "examples"))
minilm = importlib.import_module("models.minilm")
try:
    importlib.metadata.distribution(minilm.PACKAGE)
except importlib.metadata.PackageNotFoundError:
    pytest.skip("MiniLM's weights are not installed", allow_module_level=True)

SENTENCES = [
    "A man is eating food.",
    "Someone has a meal!",
    "The stock market fell by 3% on Monday.",
    "Shares dropped sharply at the start of the week.",
    "A cat plays the piano, badly; naïve façade 日本.",
]


@pytest.fixture(scope="module")
def ids() -> Any:
    return minilm.Tokenizer()(SENTENCES, 32)


def reference(tensors: dict[str, Any], ids: Any) -> Any:
    """BERT with mean pooling, as in PyTorch."""
    t = {name: torch.tensor(x) for name, x in tensors.items()}

    def linear(x: Any, name: str) -> Any:
        return F.linear(x, t[f"{name}.weight"], t[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (384,), t[f"{name}.weight"], t[f"{name}.bias"], 1e-12)

    ids = torch.tensor(ids).long()
    there = (ids != 0).float()
    e = "embeddings"
    x = t[f"{e}.word_embeddings.weight"][ids] + t[f"{e}.token_type_embeddings.weight"][0]
    x = norm(x + t[f"{e}.position_embeddings.weight"][: ids.shape[1]], f"{e}.LayerNorm")
    for i in range(6):
        p = f"encoder.layer.{i}"
        q, k, v = (
            linear(x, f"{p}.attention.self.{n}").unflatten(-1, (12, 32)).transpose(1, 2)
            for n in ("query", "key", "value")
        )
        scores = q @ k.transpose(-1, -2) / math.sqrt(32)
        scores = scores.masked_fill(there[:, None, None, :] == 0, -1e9)
        out = (scores.softmax(-1) @ v).transpose(1, 2).flatten(-2)
        x = norm(x + linear(out, f"{p}.attention.output.dense"), f"{p}.attention.output.LayerNorm")
        hidden = F.gelu(linear(x, f"{p}.intermediate.dense"))
        x = norm(x + linear(hidden, f"{p}.output.dense"), f"{p}.output.LayerNorm")
    mean = (x * there[..., None]).sum(1) / there.sum(1, keepdim=True)
    return F.normalize(mean, dim=-1)


def test_embeddings_agree_with_torchs_forward_and_rank_what_is_related(ids: Any) -> None:
    tensors = safetensors.read(minilm.data_file("model.safetensors"))
    model = linen.Model(minilm.MiniLM(), minilm.load_pretrained()).eval()
    ours = model(leafax.from_numpy(ids)).detach().numpy()
    theirs = reference(tensors, ids).numpy()
    cosines = (ours * theirs).sum(1)
    assert (cosines > 0.9999).all(), cosines
    np.testing.assert_allclose(ours, theirs, atol=2e-5)
    similar = ours @ ours.T
    assert similar[0, 1] > 0.5 > 0.3 > max(similar[0, 2:].max(), similar[1, 2:].max())
    assert similar[2, 3] > 0.5 > 0.3 > similar[2, 4]


@pytest.mark.exhaustive
def test_padding_changes_nothing(ids: Any) -> None:
    apply = jax.jit(minilm.MiniLM().apply)
    variables = minilm.load_pretrained()
    np.testing.assert_allclose(
        apply(variables, ids), apply(variables, np.pad(ids, ((0, 0), (0, 7)))), atol=1e-5
    )


def test_word_pieces() -> None:
    """As BERT's own tokenizer gives them."""
    tokenizer = minilm.Tokenizer()
    piece = {i: p for p, i in tokenizer.number.items()}

    def pieces(text: str) -> list[str]:
        return [piece[i] for i in tokenizer([text], 24)[0] if i]

    assert pieces("Unaffable, naïve!") == [
        "[CLS]", "una", "##ffa", "##ble", ",", "naive", "!", "[SEP]",
    ]  # fmt: skip
    assert pieces("$3.50 日本") == ["[CLS]", "$", "3", ".", "50", "日", "本", "[SEP]"]
    assert pieces("x" * 101) == ["[CLS]", "[UNK]", "[SEP]"]
    assert pieces("") == ["[CLS]", "[SEP]"]
    assert len(pieces("word " * 100)) == 24


def test_a_head_is_new_and_all_else_is_loaded() -> None:
    variables = minilm.load_pretrained(8)
    shapes = jax.eval_shape(minilm.MiniLM(8).init, jax.random.key(0), jnp.zeros((1, 4), "int32"))
    assert jax.tree.map(jnp.shape, variables) == jax.tree.map(jnp.shape, shapes)
    assert variables["params"]["head"]["kernel"].std() == pytest.approx(384**-0.5, rel=0.1)
