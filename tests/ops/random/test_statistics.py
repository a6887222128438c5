"""Every random op: its distribution by moments and a Kolmogorov-Smirnov (or chi-squared) test.

Seeds are fixed, so a test always gives the same answer; the levels leave room for one in ten
thousand. Bit streams are leafax's own, distributions are PyTorch's.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

import leafax
from leafax.nn import functional as F

N = 20_000
LEVEL = 1e-4

CONTINUOUS = {
    "rand": (lambda t: t.rand(N), stats.uniform()),
    "rand_like": (lambda t: t.rand_like(t.zeros(N, dtype=t.float64)), stats.uniform()),
    "rand_float64": (lambda t: t.rand(N, dtype=t.float64), stats.uniform()),
    "randn": (lambda t: t.randn(N), stats.norm()),
    "randn_like": (lambda t: t.randn_like(t.zeros(N)), stats.norm()),
    "normal": (lambda t: t.normal(2.0, 3.0, (N,)), stats.norm(2, 3)),
    "normal_tensors": (
        lambda t: t.normal(t.full((N,), -1.0), t.full((N,), 0.5)), stats.norm(-1, 0.5)
    ),
    "normal_": (lambda t: t.zeros(N).normal_(2.0, 3.0), stats.norm(2, 3)),
    "uniform_": (lambda t: t.zeros(N).uniform_(-1, 3), stats.uniform(-1, 4)),
    "exponential_": (lambda t: t.zeros(N).exponential_(0.7), stats.expon(scale=1 / 0.7)),
    "cauchy_": (lambda t: t.zeros(N).cauchy_(1.0, 2.0), stats.cauchy(1, 2)),
    "log_normal_": (
        lambda t: t.zeros(N).log_normal_(0.5, 0.8), stats.lognorm(0.8, scale=np.exp(0.5))
    ),
    "rrelu": (
        lambda t: -t.nn.functional.rrelu(-t.ones(N), 0.1, 0.6, training=True),
        stats.uniform(0.1, 0.5),
    ),
    "randperm": (lambda t: t.randperm(10 * N)[:N] / (10 * N), stats.uniform()),
    "randn_complex": (lambda t: t.randn(N, dtype=t.complex64).real, stats.norm(0, 0.5**0.5)),
}  # fmt: skip
DISCRETE = {
    "randint": (lambda t: t.randint(3, 9, (N,)), stats.randint(3, 9)),
    "randint_like": (lambda t: t.randint_like(t.zeros(N), 4), stats.randint(0, 4)),
    "random_": (lambda t: t.zeros(N).random_(2, 12), stats.randint(2, 12)),
    "bernoulli": (lambda t: t.bernoulli(t.full((N,), 0.3)), stats.bernoulli(0.3)),
    "bernoulli_": (lambda t: t.zeros(N).bernoulli_(0.8), stats.bernoulli(0.8)),
    "geometric_": (lambda t: t.zeros(N).geometric_(0.4), stats.geom(0.4)),
    "poisson": (lambda t: t.poisson(t.full((N,), 2.5)), stats.poisson(2.5)),
    "binomial": (
        lambda t: t.binomial(t.full((N,), 7.0), t.full((N,), 0.35)), stats.binom(7, 0.35)
    ),
    "multinomial": (
        lambda t: t.multinomial(t.tensor([1.0, 2.0, 3.0, 2.0]), N, replacement=True),
        stats.rv_discrete(values=(range(4), [0.125, 0.25, 0.375, 0.25])),
    ),
    "multinomial_without_replacement": (  # the first of three
        lambda t: t.multinomial(t.tensor([[1.0, 2.0, 3.0, 2.0]]).expand(N, 4), 3)[:, 0],
        stats.rv_discrete(values=(range(4), [0.125, 0.25, 0.375, 0.25])),
    ),
    "dropout": (
        lambda t: t.nn.functional.dropout(t.ones(N), 0.25) * 0.75, stats.bernoulli(0.75)
    ),
    "gumbel_softmax": (
        lambda t: t.nn.functional.gumbel_softmax(
            t.tensor([1.0, 2.0, 5.0]).log().expand(N, 3), hard=True
        ).argmax(-1),
        stats.rv_discrete(values=(range(3), [0.125, 0.25, 0.625])),
    ),
}  # fmt: skip


def draws(make):
    leafax.manual_seed(1)
    return np.asarray(make(leafax).numpy(), np.float64)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name):
    make, law = CONTINUOUS[name]
    x = draws(make)
    assert stats.kstest(x, law.cdf).pvalue > LEVEL
    mean, var = law.stats("mv")
    if np.isfinite(var):  # Cauchy's law has no moments
        assert abs(x.mean() - mean) < 4 * np.sqrt(var / len(x))


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete(name):
    make, law = DISCRETE[name]
    x = draws(make).round(6)
    low, high = int(law.ppf(1e-3)), int(law.ppf(1 - 1e-3))
    # The tails count as one cell each.
    edges = np.arange(low, high)
    below = np.concatenate([law.cdf(edges), [1.0]])
    expected = np.diff(np.concatenate([[0.0], below])) * len(x)
    counts = np.bincount(np.searchsorted(edges, x, side="left"), minlength=len(expected))
    keep = expected > 1e-9
    assert counts[~keep].sum() == 0
    assert stats.chisquare(counts[keep], expected[keep]).pvalue > LEVEL
    assert abs(x.mean() - law.mean()) < 4 * law.std() / np.sqrt(len(x))


@pytest.mark.quick(8)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_reproducible(name):
    make = (CONTINUOUS | DISCRETE)[name][0]
    for _ in range(2):  # op by op the last bit of what is scaled may be another
        make(leafax).tolist()
    leafax.manual_seed(5)
    first, second = make(leafax).tolist(), make(leafax).tolist()
    leafax.manual_seed(5)
    assert make(leafax).tolist() == first != second


def test_without_replacement_nothing_is_drawn_twice():
    leafax.manual_seed(0)
    x = leafax.multinomial(leafax.tensor([[1.0, 2.0, 3.0, 2.0]]).expand(50, 4), 3).tolist()
    assert all(len(set(row)) == 3 for row in x)


def test_alpha_dropout_keeps_mean_and_variance_as_torch_does():
    leafax.manual_seed(0)
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=N).astype(np.float32)
    ours = F.alpha_dropout(leafax.from_numpy(x), 0.3, training=True).numpy()
    theirs = torch.nn.functional.alpha_dropout(torch.from_numpy(x), 0.3, training=True).numpy()
    assert stats.ks_2samp(ours.round(4), theirs.round(4)).pvalue > LEVEL  # one is a point mass
    assert abs(ours.mean()) < 0.03 and abs(ours.var() - 1) < 0.05


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"])
def test_channels_are_dropped_whole(name):
    leafax.manual_seed(0)
    dims = {"dropout1d": 1, "dropout3d": 3}.get(name, 2)
    x = leafax.ones(20, 30, *(2,) * dims)
    y = getattr(F, name)(x, 0.4, True).numpy().reshape(600, -1)
    assert (y == y[:, :1]).all()
    dropped = (y[:, 0] == y.min()).mean()
    assert abs(dropped - 0.4) < 4 * np.sqrt(0.24 / 600)


def test_attention_dropout():
    leafax.manual_seed(0)
    q = leafax.zeros(1, 8, 50, 4)
    v = leafax.ones(1, 8, 50, 4)
    y = F.scaled_dot_product_attention(q, q, v, dropout_p=0.5)
    kept = np.asarray(y[..., 0].numpy()).reshape(-1) / 2 * 50  # how many of 50 keys were kept
    law = stats.binom(50, 0.5)
    assert abs(kept.mean() - 25) < 4 * law.std() / np.sqrt(kept.size)
    assert abs(kept.var() / law.var() - 1) < 0.3
