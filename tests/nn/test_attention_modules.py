"""Multi-head attention and transformers beside live PyTorch."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from helpers.module_pairs import given_to, said, same

import leafax

rng = np.random.default_rng(0)
L, S, N, E, HEADS = 3, 4, 2, 4, 2
Q, K, V = (rng.normal(size=(n, N, E)) for n in (L, S, S))
PAD = np.array([[False, False, True, False], [False, True, True, False]])
MASK = np.triu(np.ones((L, S)), 2).astype(bool)
FLOATS = np.where(MASK, -np.inf, 0.5).astype(np.float32)


@pytest.mark.parametrize(
    ("form", "call"),
    [
        ({"bias": False, "add_zero_attn": True, "batch_first": True}, {"attn_mask": MASK}),
        ({"add_bias_kv": True, "add_zero_attn": True},
         {"key_padding_mask": PAD, "attn_mask": MASK, "need_weights": False}),
        ({}, {"attn_mask": np.stack([MASK] * 4), "average_attn_weights": False}),
        ({}, {"attn_mask": MASK, "is_causal": True, "need_weights": False}),
    ],
)  # fmt: skip
def test_attention(form: dict[str, Any], call: dict[str, Any]) -> None:
    given = [x.swapaxes(0, 1) if form.get("batch_first") else x for x in (Q, K, V)]
    same(lambda t: t.nn.MultiheadAttention(E, HEADS, **form), *given, **call)


def test_attention_of_other_widths_and_without_batch() -> None:
    keys, values = rng.normal(size=(S, N, 3)), rng.normal(size=(S, N, 5))
    same(lambda t: t.nn.MultiheadAttention(E, HEADS, kdim=3, vdim=5), Q, keys, values)
    same(lambda t: t.nn.MultiheadAttention(E, HEADS), Q[:, 0], K[:, 0], V[:, 0], PAD[0])


def test_self_attention_projects_once() -> None:
    class Own:
        def __call__(self, t: Any) -> Any:
            class Module(t.nn.Module):  # type: ignore[name-defined, misc]
                def __init__(self) -> None:
                    super().__init__()
                    self.attention = t.nn.MultiheadAttention(E, HEADS, batch_first=True)

                def forward(self, x: Any) -> Any:
                    return self.attention(x, x, x)

            return Module()

    same(Own(), Q.swapaxes(0, 1))


def test_merged_masks() -> None:
    def program(t: Any) -> list[Any]:
        attention = t.nn.MultiheadAttention(E, HEADS)
        x, pad = t.zeros(N, S, E), t.tensor(PAD.astype(np.float32))
        mask = t.arange(S * S).reshape(S, S) * 1.0
        found = []
        for given in ((mask, pad), (mask, None), (None, pad), (None, None),
                      (mask.repeat(N * HEADS, 1, 1), pad)):  # fmt: skip
            merged, kind = attention.merge_masks(*given, x)
            found.append((None if merged is None else merged.tolist(), kind))
        return found

    assert program(leafax) == program(torch)


ERRORS = (
    "nn.MultiheadAttention(0, 1)", "nn.MultiheadAttention(4, 3)",
    "nn.MultiheadAttention(4, 2).double()(q, k, v, attn_mask=m.int())",
    "nn.MultiheadAttention(4, 2).double()(q, k, v, attn_mask=m[:2])",
    "nn.MultiheadAttention(4, 2).double()(q, k, v, key_padding_mask=m)",
    "nn.MultiheadAttention(4, 2).double()(q, k, v[:2])",
    "nn.MultiheadAttention(4, 2).double()(q, k[0], v[0])",
    "nn.MultiheadAttention(4, 2).double()(q, k, v, is_causal=True)",
    "nn.MultiheadAttention(6, 2).double()(q, k, v)",
    "nn.TransformerEncoderLayer(4, 2, activation='no')",
    "nn.Transformer(4, 2, 1, 1, 8).double()(q, k[:, :1])",
    "nn.Transformer(6, 2, 1, 1, 8).double()(q, q)",
)  # fmt: skip


@pytest.mark.parametrize("call", ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    scope = {"q": Q, "k": K, "v": V, "m": MASK}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert said(leafax, call, scope) == said(torch, call, scope)


def test_masks_of_two_kinds_warn() -> None:
    attention = leafax.nn.MultiheadAttention(E, HEADS).double()
    given = given_to(leafax, [Q, K, V])
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        attention(*given, key_padding_mask=leafax.tensor(PAD), attn_mask=leafax.tensor(FLOATS))


def test_layers_of_other_forms() -> None:
    mask = np.triu(np.ones((S, S)), 1).astype(bool)
    form: dict[str, Any] = {"dropout": 0.0, "norm_first": True, "activation": "gelu"}
    same(lambda t: t.nn.TransformerEncoderLayer(E, HEADS, 8, bias=False, **form), K, mask,
         is_causal=True)  # fmt: skip
    same(
        lambda t: t.nn.TransformerDecoderLayer(E, HEADS, 8, **form), K, Q, mask,
        memory_mask=MASK.T.copy(), tgt_key_padding_mask=PAD,
    )  # fmt: skip


def test_transformers() -> None:
    causal = np.triu(np.full((S, S), -np.inf, np.float32), 1)
    pads = {"src_key_padding_mask": np.where(PAD[:, :L], -np.inf, 0).astype(np.float32)}
    same(
        lambda t: t.nn.Transformer(E, HEADS, 2, 1, 8, dropout=0.0), Q, K, tgt_mask=causal, **pads
    )  # fmt: skip


def test_padding_is_zero_for_inference_as_with_nested_tensors() -> None:
    ends = np.array([[False, False, True, True], [False, True, True, True]])

    def program(t: Any, state: Any = None) -> Any:
        layer = t.nn.TransformerEncoderLayer(E, HEADS, 8, batch_first=True)
        encoder = t.nn.TransformerEncoder(layer, 2, t.nn.LayerNorm(E)).double().eval()
        if state is not None:
            encoder.load_state_dict({k: t.tensor(v.numpy()) for k, v in state.items()})
        x = t.tensor(K.swapaxes(0, 1).copy())
        with t.no_grad():
            outs = [encoder(x, src_key_padding_mask=t.tensor(p)).numpy() for p in (ends, PAD)]
        return encoder.state_dict(), outs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        state, theirs = program(torch)
    for a, b in zip(program(leafax, state)[1], theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def test_encoders_warn_of_what_keeps_nested_tensors_away() -> None:
    def words(t: Any) -> list[str]:
        found = []
        forms: list[dict[str, Any]] = [
            {}, {"batch_first": True, "norm_first": True}, {"batch_first": True, "bias": False},
            {"batch_first": True, "activation": t.tanh}, {"batch_first": True},
        ]  # fmt: skip
        for form in forms:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(E, HEADS, 8, **form), 1)
            found += [str(w.message) for w in caught]
        return found

    assert words(leafax) == words(torch)


def test_masks_are_looked_at_for_own_layers_alone() -> None:
    seen = []

    class Own(leafax.nn.TransformerEncoderLayer):
        def forward(self, src: Any, *args: Any, **kwargs: Any) -> Any:
            seen.append(kwargs["is_causal"])
            return super().forward(src, *args, **kwargs)

    nn = leafax.nn
    causal = nn.Transformer.generate_square_subsequent_mask(S)
    assert causal.tolist() == torch.nn.Transformer.generate_square_subsequent_mask(S).tolist()
    x = leafax.randn(S, N, E)
    for layer in (Own(E, HEADS, 8), nn.TransformerEncoderLayer(E, HEADS, 8)):
        encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        encoder(x, mask=causal)
        encoder(x, mask=causal + causal.new_ones(S, S).tril())
    assert seen == [True, True, False, False]


def test_copies_share_nothing_and_weights_are_drawn_as_pytorchs() -> None:
    leafax.manual_seed(0)
    form: dict[str, Any] = {"batch_first": True}
    model = leafax.nn.Transformer(64, 2, 2, 1, 128, **form)
    first, second = model.encoder.layers
    assert first.linear1.weight is not second.linear1.weight
    theirs = torch.nn.Transformer(64, 2, 2, 1, 128, **form)
    assert repr(model) == repr(theirs)
    for (name, p), (other, q) in zip(
        model.named_parameters(), theirs.named_parameters(), strict=True
    ):
        assert name == other and tuple(p.shape) == tuple(q.shape)
        if p.dim() > 1 and name.startswith(("encoder.layers.0", "decoder.layers.0.multi")):
            spread = q.std().item()
            assert abs(p.std().item() - spread) <= 0.05 * spread, name
    assert repr(copy.deepcopy(model)) == repr(theirs)


@pytest.mark.exhaustive
def test_a_step_is_one_program_whatever_is_dropped() -> None:
    leafax.manual_seed(0)
    layer = leafax.nn.TransformerEncoderLayer(E, HEADS, 8, dropout=0.5)
    model = leafax.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.1)
    x, losses = leafax.randn(S, N, E), set()
    for _ in range(9):
        optimizer.zero_grad()
        mask = leafax.nn.Transformer.generate_square_subsequent_mask(S)
        loss = model(x, mask=mask).square().sum()
        loss.backward()
        optimizer.step()
        losses.add(loss.item())
    assert len(losses) == 9
    assert [r.how for r in leafax.explain(last=4)] == ["cached"] * 4
