"""Losses against live PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, faults, same_error, to_jax

from leafax.functional.ops.nn import loss as ours
from leafax.functional.ops.nn import nll

G = torch.Generator().manual_seed(0)
X = torch.randn(6, 4, generator=G)
X4 = torch.randn(2, 3, 4, 5, generator=G)
T = torch.tensor([0, 3, 1, -100, 2, 2])
T4 = torch.randint(0, 3, (2, 4, 5), generator=G)
W = torch.tensor([0.3, 1.0, 2.0, 0.7])
P = torch.rand(6, 4, generator=G)
Q = torch.rand(6, 4, generator=G)
REDUCTIONS = ["none", "mean", "sum"]


def reference(input, target, weight=None, reduction="mean", ignore_index=-100):
    weight = None if weight is None else weight.detach().to(input.dtype)
    return F.nll_loss(input, target, weight, reduction=reduction, ignore_index=ignore_index)


@pytest.mark.quick(2)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll(reduction):
    for target in (T, T.abs().clamp(max=3).byte()):
        compare(nll.nll_loss, reference, [X, target], reduction=reduction)
    two = {"reduction": reduction, "ignore_index": 2}
    compare(nll.nll_loss, reference, [X, T.abs().clamp(max=3)], **two)
    compare(nll.nll_loss, reference, [X, T, W], reduction=reduction)
    compare(nll.nll_loss, reference, [X[0], torch.tensor(2)], reduction=reduction)
    # PyTorch 2.13 raises in the backward of this one.
    compare(nll.nll_loss, reference, [X[0], torch.tensor([2])], reduction=reduction, grad=False)
    half = (torch.float16, torch.bfloat16)
    compare(nll.nll_loss, reference, [X, T], half, grad=False, reduction=reduction)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll2d(reduction):
    compare(nll.nll_loss2d, reference, [X4, T4, W[:3]], reduction=reduction)
    compare(nll.nll_loss2d, reference, [X4, T4], reduction=reduction, ignore_index=1)
    compare(nll.nll_loss2d, reference, [X4[..., 0], T4[..., 0]], reduction=reduction)
    compare(nll.nll_loss2d, reference, [X4[..., None], T4[..., None]], reduction=reduction)


def test_nll_nothing_to_average():
    compare(nll.nll_loss, reference, [X, torch.full((6,), -100)])
    compare(nll.nll_loss, reference, [X[:0], T[:0]])


@pytest.mark.parametrize(
    ("x", "t", "w"),
    [
        (X, T[:3], None), (X, T.float(), None), (X, T.int(), None), (X.long(), T, None),
        (X, T, W[:3]), (X, T, W.double()), (torch.tensor(1.0), torch.tensor(0), None),
        (X, torch.zeros(6, 4).long(), None), (X[0], T[:2], None), (X, torch.tensor(1), None),
    ],
)  # fmt: skip
def test_nll_errors(x, t, w):
    args = (x, t) if w is None else (x, t, w)
    same_error(lambda: nll.nll_loss(*map(to_jax, args)), lambda: F.nll_loss(*args))


@pytest.mark.parametrize(
    ("x", "t", "w"),
    [
        (X4, T4[:1], None), (X4, T4[:, :3], None), (X4, T4[..., 0], None), (X4, T4, W[:2]),
        (X4, T4.float(), None), (X4[..., 0], T4[:, :2, 0], None),
    ],
)  # fmt: skip
def test_nll2d_errors(x, t, w):
    args = (x, t) if w is None else (x, t, w)
    same_error(lambda: nll.nll_loss2d(*map(to_jax, args)), lambda: F.nll_loss(*args))


@pytest.mark.parametrize("value", [4, -1])
def test_target_out_of_bounds(value):
    target = torch.tensor([0, 3, value, -100, 2, 2])
    with pytest.raises(IndexError) as error:
        F.nll_loss(X, target)
    assert faults(nll._nll_check, X, target) == [(IndexError, str(error.value))]
    assert faults(nll._nll_check, X, T) == []


# Differences at 0, at the thresholds, and around them.
A = torch.tensor([[0.0, 1.0, -1.0, 0.5], [2.0, -3.0, 0.3, 0.0]])
B = torch.tensor([[0.0, 0.0, 0.0, 1.0], [1.5, 1.0, 0.1, -0.5]])


@pytest.mark.quick(5)
@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        ("mse_loss", {}), ("smooth_l1_loss", {}), ("smooth_l1_loss", {"beta": 0.5}),
        ("smooth_l1_loss", {"beta": 0.0}), ("huber_loss", {}), ("huber_loss", {"delta": 0.5}),
        ("soft_margin_loss", {}),
    ],
    ids=str,
)  # fmt: skip
def test_elementwise(name, kwargs, reduction):
    body, ref = getattr(ours, name), getattr(F, name)
    compare(body, ref, [A, B], reduction=reduction, grad=name != "soft_margin_loss", **kwargs)
    if name == "soft_margin_loss":
        # PyTorch has no gradient for the target.
        compare(lambda a, **k: body(a, to_jax(B.double()), **k),
                lambda a, **k: ref(a, B.double(), **k),
                [A], (torch.float64,), reduction=reduction)  # fmt: skip
    compare(body, ref, [A, B[0]], grad=False, reduction=reduction, **kwargs)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss"])
def test_elementwise_promotion_and_errors(name):
    body, ref = getattr(ours, name), getattr(F, name)
    for x, y in [(A, B.double()), (A.double(), B), (A.half(), B.half()), (A, B.long())]:
        compare(body, ref, [x, y], (), grad=False)
        ours_dtype, theirs = body(to_jax(x), to_jax(y)).dtype, ref(x, y).dtype
        assert str(theirs).endswith(str(ours_dtype)) or torch.float64 in (x.dtype, y.dtype)
    same_error(lambda: body(to_jax(A), to_jax(B[:, :3])), lambda: ref(A, B[:, :3]))
    same_error(lambda: body(to_jax(A), to_jax(B), "foo"), lambda: ref(A, B, reduction="foo"))
    same_error(lambda: body(to_jax(A.long()), to_jax(B.long())), lambda: ref(A.long(), B.long()))


def test_elementwise_argument_errors():
    a, b = to_jax(A), to_jax(B)
    same_error(lambda: ours.huber_loss(a, b, delta=0.0), lambda: F.huber_loss(A, B, delta=0.0))
    same_error(
        lambda: ours.smooth_l1_loss(a, b, beta=-1.0), lambda: F.smooth_l1_loss(A, B, beta=-1.0)
    )


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy(reduction):
    p = P.clone()
    p[0, 0], p[0, 1] = 0.0, 1.0
    compare(ours.binary_cross_entropy, F.binary_cross_entropy, [p, Q], reduction=reduction)
    weighted = lambda a, b, **k: F.binary_cross_entropy(a, b, W.to(a.dtype), **k)  # noqa: E731
    compare(
        lambda a, b, **k: ours.binary_cross_entropy(a, b, to_jax(W).astype(a.dtype), **k),
        weighted, [p, Q], reduction=reduction,
    )  # fmt: skip
    b = Q.clone()
    b[0, 0] = 1.5
    assert faults(ours._bce_check, P, b) == [
        (RuntimeError, "all elements of target should be between 0 and 1")
    ]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_binary_cross_entropy_with_logits(reduction):
    x = X * 30
    x[0, 0] = 0
    body, ref = ours.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits
    compare(body, ref, [x, Q], reduction=reduction)
    compare(
        lambda a, b, **k: body(a, b, to_jax(P).astype(a.dtype), to_jax(W).astype(a.dtype), **k),
        lambda a, b, **k: ref(a, b, P.to(a.dtype), pos_weight=W.to(a.dtype), **k),
        [x, Q], reduction=reduction,
    )  # fmt: skip


@pytest.mark.parametrize("name", ["binary_cross_entropy", "binary_cross_entropy_with_logits"])
def test_binary_errors(name):
    body, ref = getattr(ours, name), getattr(F, name)
    for x, y in [(P, Q[:, :3]), (P, Q[0]), (P.long(), Q.long()), (P, Q.long())]:
        same_error(lambda x=x, y=y: body(to_jax(x), to_jax(y)), lambda x=x, y=y: ref(x, y))
    for x, y in [(P, Q.double()), (P.double(), Q)]:
        if name == "binary_cross_entropy":
            same_error(lambda x=x, y=y: body(to_jax(x), to_jax(y)), lambda x=x, y=y: ref(x, y))
    if name == "binary_cross_entropy":
        same_error(
            lambda: body(to_jax(P), to_jax(Q), to_jax(W[:3])), lambda: ref(P, Q, weight=W[:3])
        )
