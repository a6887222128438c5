"""`nn.attention`: causal biases, kernels by name, and attention by functions of places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.attention.bias
import torch.nn.attention.flex_attention

import leafax

B, H, L, S, E = 2, 4, 5, 6, 8


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have PyTorch compute without its compiler."""
    flex = torch.nn.attention.flex_attention
    monkeypatch.setattr(flex, "_FLEX_ATTENTION_DISABLE_COMPILE_DEBUG", True)


def drawn(t: Any, heads: int = H, keys: int = S) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(B, H, L, E), (B, heads, keys, E), (B, heads, keys, E)]
    return [t.tensor(rng.normal(size=shape)) for shape in shapes]


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def near(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q - kv <= 2) & (b + h < 4)  # the last head of the last example attends to nothing


@pytest.mark.quick(2)
@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("heads", [H, 2])
def test_flex_attention(with_mask: bool, heads: int) -> None:
    def program(t: Any) -> list[Any]:
        flex = t.nn.attention.flex_attention
        q, k, v = drawn(t, heads)
        table = t.arange(H * 11, dtype=t.float64).reshape(H, 11) / 10

        def mod(score: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
            return t.tanh(score / 2) * 2 + table[h, q_idx - kv_idx + 5]

        mask = flex.create_block_mask(near, B, H, L, S, device="cpu", BLOCK_SIZE=2)
        request = flex.AuxRequest(lse=True)
        out, aux = flex.flex_attention(
            q, k, v, mod, mask if with_mask else None, enable_gqa=heads != H, return_aux=request
        )
        return [out.numpy(), aux.lse.numpy()]

    for a, b in zip(program(leafax), program(torch), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_attention_with_a_mask() -> None:
    flex = leafax.nn.attention.flex_attention
    bias = leafax.randn(L, L, dtype=leafax.float64, requires_grad=True)

    def mod(score: Any, b: Any, h: Any, q: Any, kv: Any) -> Any:
        return score + bias[q, kv]

    mask = flex.create_block_mask(causal, None, None, L, L)
    grads = []
    for own in (True, False):
        q, k, v = (x.requires_grad_() for x in drawn(leafax, keys=L))
        if own:
            out = flex.flex_attention(q, k, v, mod, mask)
        else:
            low = leafax.ones(L, L).triu(1) > 0
            added = bias.masked_fill(low, float("-inf"))
            out = leafax.nn.functional.scaled_dot_product_attention(q, k, v, added)
        grads.append(leafax.autograd.grad((out**2).sum(), (q, k, v, bias)))
    for a, b in zip(*grads, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-12)


def test_block_masks() -> None:
    def program(t: Any) -> list[Any]:
        flex = t.nn.attention.flex_attention
        mask = flex.create_block_mask(causal, 1, 2, 10, 12, device="cpu", BLOCK_SIZE=(2, 4))
        both = flex.and_masks(causal, flex.or_masks(near, flex.noop_mask))
        one = flex.create_block_mask(both, 2, None, 7, 7, "cpu", 2, separate_full_blocks=False)
        cropped = mask._adjust(6, 8)
        found: list[Any] = []
        for m in (mask, one, cropped, mask[:, 1], mask[0, :, 1:3]):
            found += [repr(m), str(m), m.shape, m.numel(), m.sparsity(), m.to_dense().tolist()]
            found += [x.tolist() for x in m.as_tuple() if hasattr(x, "tolist")]
        found.append(flex.create_mask(causal, None, 2, 3, 4, device="cpu").tolist())
        return found

    assert program(leafax) == program(torch)


FLEX_ERRORS = (
    "f(q, k[..., :4], v)", "f(q, k[:, :2], v[:, :2])", "f(q[0], k[0], v[0])",
    "f(q, k[:, :3], v[:, :3], enable_gqa=True)", "f(q, k[:1], v[:1])",
    "f(q, k, v, block_mask=flex.create_block_mask(c, None, None, 4, 6, device='cpu'))",
    "f(q, k, v, block_mask=flex.create_block_mask(c, None, None, 8, 8, device='cpu'))",
    "f(q, k, v, block_mask=flex.create_block_mask(c, None, None, 5, 6, device='cpu')[:, 0])",
    "f(q, k, v, return_lse=True, return_aux=flex.AuxRequest())",
    "f(q, k, v, kernel_options={'BACKEND': 'NO'})",
    "flex.create_block_mask(lambda a: a, 1, 1, 2, 2)",
    "flex.or_masks(c, 3)",
)  # fmt: skip


@pytest.mark.parametrize("call", FLEX_ERRORS)
def test_errors_are_pytorchs(call: str) -> None:
    def said(t: Any) -> tuple[str, str]:
        flex = t.nn.attention.flex_attention
        q, k, v = drawn(t)
        scope = {"t": t, "flex": flex, "f": flex.flex_attention, "c": causal}
        with pytest.raises(Exception) as caught:
            eval(call, scope | {"q": q, "k": k, "v": v})
        return type(caught.value).__name__, str(caught.value)

    ours, theirs = said(leafax), said(torch)
    assert ours[0] == theirs[0]
    assert ours[1].split("<")[0] == theirs[1].split("<")[0]  # a function's address follows


def test_causal_biases() -> None:
    def program(t: Any) -> list[Any]:
        bias = t.nn.attention.bias
        made = [bias.causal_upper_left(5, 6), bias.causal_lower_right(5, 6)]
        q, k, v = drawn(t)
        attend = t.nn.functional.scaled_dot_product_attention
        with t.nn.attention.sdpa_kernel(t.nn.attention.SDPBackend.MATH):
            outs = [attend(q, k, v, b).numpy().round(12).tolist() for b in made]
        return [*outs, *map(repr, made), [b._materialize().tolist() for b in made]]

    assert program(leafax) == program(torch)


def test_kernels_are_named_and_remembered() -> None:
    attention = leafax.nn.attention
    backends = attention.SDPBackend
    with attention.sdpa_kernel([backends.MATH, backends.FLASH_ATTENTION]):
        assert attention._cur_sdpa_kernel_backends() == [backends.FLASH_ATTENTION, backends.MATH]
    assert len(attention._cur_sdpa_kernel_backends()) == 5
    assert str(backends.MATH) == str(torch.nn.attention.SDPBackend.MATH)
    with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend or a list"):
        attention.sdpa_kernel("math").__enter__()
