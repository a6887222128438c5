"""Linear, embedding, one-hot, dropout and attention against live PyTorch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, faults, same_error, to_jax

import leafax
from leafax.functional.ops.nn import attention, dropout
from leafax.functional.ops.nn import linear as ours

G = torch.Generator().manual_seed(0)
W = torch.randn(4, 5, generator=G)
o = torch.ones


@pytest.mark.parametrize("shape", [(5,), (2, 5), (2, 3, 5), (0, 5)], ids=str)
def test_linear(shape):
    x = torch.randn(shape, generator=G)
    compare(ours.linear, F.linear, [x, W, torch.randn(4, generator=G)])
    compare(ours.linear, F.linear, [x, W])
    if len(shape) == 2 and shape[0]:
        compare(ours.linear, F.linear, [x, W, torch.randn(2, 4, generator=G)])
        compare(ours.linear, F.linear, [x, W[0]])
        compare(ours.linear, F.linear, [x.bfloat16(), W.bfloat16()], (torch.bfloat16,), grad=False)
        compare(ours.linear, F.linear, [(x * 9).long(), (W * 9).long()], grad=False)


@pytest.mark.parametrize(
    "args",
    [
        (o(2, 3), W), (o(2, 3), W, o(4)), (o(2, 2, 3), W, o(4)), (o(3), W, o(4)), (o(3), W),
        (o(2, 5), W, o(3)), (o(2, 2, 5), W, o(3)), (o(2, 5), o(5), o(1)), (o(2, 5), W.double()),
        (o(2, 5), W.double(), o(4)), (o(2, 5), W, o(4).double()), (o(2, 5), o(2, 4, 5)),
        (o(()), W), (o(2, 5).long(), W), (o(2, 5).long(), W, o(4)), (o(2, 5).half(), W, o(4)),
        (o(2, 5).bool(), W.bool()),
    ],
)  # fmt: skip
def test_linear_errors(args):
    same_error(lambda: ours.linear(*map(to_jax, args)), lambda: F.linear(*args))


def test_embedding():
    indices = torch.tensor([[0, 3, 3], [1, 0, 2]])
    compare(ours.embedding, F.embedding, [indices, W])
    compare(ours.embedding, F.embedding, [indices.int(), W])
    compare(ours.embedding, F.embedding, [torch.tensor(1), W])
    compare(ours.embedding, F.embedding, [indices[:0], W])
    for padding in (3, -1, 0):
        compare(ours.embedding, F.embedding, [indices, W], padding_idx=padding)
    for bad in (5, -1):
        assert faults(ours._embedding_check, torch.tensor([1, bad]), W) == [
            (IndexError, "index out of range in self")
        ]
    for index, weight, padding in [
        (o(2), W, None), (o(2).byte(), W, None), (o(2).bool(), W, None), (o(2).long(), W[0], None),
        (o(2).long(), W, 4), (o(2).long(), W, -5),
    ]:  # fmt: skip
        args = (index, weight, padding)
        same_error(lambda a=args: ours.embedding(*map(to_jax, a)), lambda a=args: F.embedding(*a))
    with pytest.raises(NotImplementedError, match="`max_norm` writes to the weight"):
        ours.embedding(to_jax(indices), to_jax(W), max_norm=1.0)
    with pytest.raises(NotImplementedError, match="no sparse gradients: use `sparse=False`"):
        ours.embedding(to_jax(indices), to_jax(W), sparse=True)


def test_embedding_gradients_by_frequency():
    """Tangents are divided as these are; PyTorch leaves them alone."""
    indices = torch.tensor([[0, 3, 3], [1, 3, 2]])
    for padding in (None, 0, 3):
        compare(
            ours.embedding, F.embedding, [indices, W], padding_idx=padding, scale_grad_by_freq=True
        )


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_embedding_bag_gradients_by_frequency(mode):
    def gradient(t, ids=((1, 1, 0), (0, 2, 2))):
        weight = t.ones(4, 2, requires_grad=True)
        args = t.tensor(ids), weight
        t.nn.functional.embedding_bag(*args, mode=mode, scale_grad_by_freq=True).sum().backward()
        return weight.grad.numpy()

    np.testing.assert_allclose(gradient(leafax), gradient(torch), rtol=1e-6)
    # PyTorch divides the i-th row by the count of the i-th sorted index, which is another row's.
    ids = ((0, 1, 1), (2, 1, 1))
    size = 3 if mode == "mean" else 1
    np.testing.assert_allclose(gradient(leafax, ids)[:3] * size, np.ones((3, 2)), rtol=1e-6)
    assert np.abs(gradient(torch, ids)[2] * size - 1).max() > 0.1


def test_embedding_bag_errors():
    def bag(t, ids=(0, 1, 1), starts=(0,), ids_dtype="int64", dtype="float32", **kwargs):
        ids = t.tensor(ids, dtype=getattr(t, ids_dtype))
        weight = t.ones(4, 2, dtype=getattr(t, dtype))
        starts = None if starts is None else t.tensor(starts)
        return t.nn.functional.embedding_bag(ids, weight, starts, **kwargs)

    for kwargs in (
        {"mode": "max", "scale_grad_by_freq": True}, {"mode": "max", "sparse": True},
        {"starts": None, "mode": "max", "sparse": True}, {"starts": (1,)}, {"starts": (0, 5)},
        {"ids_dtype": "float32"}, {"dtype": "int64"}, {"padding_idx": 4},
    ):  # fmt: skip
        same_error(lambda k=kwargs: bag(leafax, **k), lambda k=kwargs: bag(torch, **k))


def test_one_hot():
    x = torch.tensor([[0, 2], [1, 1]])
    compare(ours.one_hot, F.one_hot, [x], grad=False, num_classes=3)
    compare(ours.one_hot, F.one_hot, [x[:0]], grad=False, num_classes=3)
    for bad in (torch.tensor([1, 5]), torch.tensor([1, -1])):
        with pytest.raises(RuntimeError) as error:
            F.one_hot(bad, 3)
        assert faults(ours._one_hot_check, bad, 3) == [(RuntimeError, str(error.value))]
    for bad in (x.float(), x.int()):
        same_error(lambda b=bad: ours.one_hot(to_jax(b), 3), lambda b=bad: F.one_hot(b, 3))


@pytest.mark.parametrize("p", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("name", ["dropout", "feature_dropout"])
def test_dropout(name, p):
    body = getattr(dropout, name)
    with jax.enable_x64(True):
        key, x = jax.random.key(0), jnp.full((200, 50, 2), 2.0, np.float32)
        y, pull = jax.vjp(lambda x: body(key, x, p, True), x)
        assert y.dtype == x.dtype
        keep = np.asarray(y) != 0
        assert abs(keep.mean() - (1 - p)) < 0.02
        if p < 1:
            np.testing.assert_allclose(np.asarray(y)[keep], 2 / (1 - p), rtol=1e-6)
        np.testing.assert_array_equal(pull(jnp.ones_like(y))[0], np.asarray(y) / 2)
        if name == "feature_dropout":
            assert (keep == keep[..., :1]).all()
        assert body(key, x, p, False) is x
        traced = jax.jit(lambda x, p: body(key, x, p, True))(x, p)
        np.testing.assert_array_equal(traced, y)


def test_alpha_dropout_keeps_moments():
    with jax.enable_x64(True):
        x = jax.random.normal(jax.random.key(1), (400, 300), np.float32)
        y = dropout.alpha_dropout(jax.random.key(0), x, 0.3, True)
        assert abs(float(y.mean())) < 0.02 and abs(float(y.std()) - 1) < 0.02
        assert float(abs(dropout.alpha_dropout(jax.random.key(0), x, 1.0, True)).max()) == 0


def test_dropout_errors():
    x = o(2, 3)
    key = jax.random.key(0)
    for args in [(x, -1.0, True), (x.long(), 0.5, True)]:
        same_error(
            lambda a=args: dropout.dropout(key, *map(to_jax, a)),
            lambda a=args: torch.dropout(*a),
        )


S = attention.scaled_dot_product_attention
Q, K, V = (torch.randn(2, 4, n, e, generator=G) for n, e in ((5, 8), (6, 8), (6, 3)))


@pytest.mark.quick(2)
@pytest.mark.parametrize("kwargs", [{}, {"is_causal": True}, {"scale": 0.3}], ids=str)
@pytest.mark.parametrize("rank", [2, 3, 4])
def test_attention(kwargs, rank):
    tensors = [t[(0,) * (4 - rank)] for t in (Q, K, V)]
    compare(S, F.scaled_dot_product_attention, tensors, **kwargs)
    half = (torch.bfloat16,)
    compare(S, F.scaled_dot_product_attention, tensors, half, grad=False, tolerance=3e-2, **kwargs)


def test_attention_masks():
    mask = torch.rand(5, 6, generator=G) > 0.5
    mask[1] = False
    mask[0, 0] = True
    bias = torch.randn(2, 1, 5, 6, generator=G)
    compare(S, F.scaled_dot_product_attention, [Q, K, V, mask])
    compare(S, F.scaled_dot_product_attention, [Q, K, V, bias])
    keys, values = K[:, :2], V[:, :2]
    compare(S, F.scaled_dot_product_attention, [Q, keys, values], enable_gqa=True)
    compare(S, F.scaled_dot_product_attention, [Q, K[:, :1], V[:, :1]])


def test_attention_gradient_of_halves():
    with jax.enable_x64(True):
        q, k, v = (to_jax(t.bfloat16()) for t in (Q, K, V))
        grads = jax.grad(lambda *a: S(*a).astype(np.float32).sum(), (0, 1, 2))(q, k, v)
    assert [g.dtype for g in grads] == [q.dtype] * 3


def test_attention_dropout():
    with jax.enable_x64(True):
        q, k, v = map(to_jax, (Q, K, V))
        y = attention.attention_dropout(jax.random.key(0), q, k, v, dropout_p=0.0)
        np.testing.assert_allclose(y, S(q, k, v), rtol=1e-5, atol=1e-6)
        y = attention.attention_dropout(jax.random.key(0), q, k, v, dropout_p=1.0)
        np.testing.assert_array_equal(y, np.zeros_like(y))


q = o(1, 2, 4, 8)


@pytest.mark.parametrize(
    "args",
    [
        (q, q.double(), q), (q[0, 0, 0], q, q), (q, q, q, o(4, 4).long()),
        (q, q, q, o(4, 4).double()), (q, o(1, 2, 4, 7), q), (q, o(1, 3, 4, 8), o(1, 3, 4, 8)),
        (q, q, q, o(3, 3)), (q.long(), q.long(), q.long()), (q, q, q, None, 1.5),
        (o(3, 2, 4, 8), o(2, 2, 4, 8), o(2, 2, 4, 8)), (o(2, 4, 8), o(3, 4, 8), o(3, 4, 8)),
        (o(1, 3, 4, 8), q, q, None, 0.0, False, None, True),
    ],
)  # fmt: skip
def test_attention_errors(args):
    keys = ("dropout_p", "is_causal", "scale", "enable_gqa")
    rest = dict(zip(keys, args[4:], strict=False))
    same_error(
        lambda: S(*map(to_jax, args[:4]), **rest),
        lambda: F.scaled_dot_product_attention(*args[:4], **rest),
    )
