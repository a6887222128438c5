"""Samples against the laws of SciPy, their gradients, and the programs that draw them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.distributions import EXAMPLES, build, mixtures, parameters
from scipy import stats

import leafax

D = leafax.distributions
N = 4000

# The law of each element of a batch, where SciPy has it.
CONTINUOUS: dict[str, list[Any]] = {
    "Beta": [stats.beta(0.4, 1.3), stats.beta(2.5, 3.0)],
    "Cauchy": [stats.cauchy(0, 1), stats.cauchy(1, 2.5)],
    "Chi2": [stats.chi2(0.8), stats.chi2(3.5)],
    "Exponential": [stats.expon(scale=1 / 0.7), stats.expon(scale=0.5)],
    "FisherSnedecor": [stats.f(1.5, 5.0), stats.f(3.0, 2.5)],
    "Gamma": [stats.gamma(0.5), stats.gamma(2.5, scale=1 / 0.3)],
    "GeneralizedPareto": [stats.genpareto(0.2, 0.5, 1), stats.genpareto(-0.3, 1, 2)],
    "Gumbel": [stats.gumbel_r(0, 1), stats.gumbel_r(1, 2.5)],
    "Laplace": [stats.laplace(0, 1), stats.laplace(1, 2.5)],
    "Normal": [stats.norm(0, 1), stats.norm(1, 2.5)],
    "StudentT": [stats.t(0.7, 0.1, 1), stats.t(1.5, 0.2, 2), stats.t(5, 0.3, 0.5)],
    "Uniform": [stats.uniform(0, 1), stats.uniform(-1, 3)],
    "VonMises": [stats.vonmises(0.5, 0.2), stats.vonmises(4, -1)],
}
DISCRETE: dict[str, list[Any]] = {
    "Bernoulli": [stats.bernoulli(0.7), stats.bernoulli(0.2)],
    "Binomial": [stats.binom(4, 0.7), stats.binom(4, 0.2)],
    "Categorical logits": [stats.rv_discrete(values=(range(3), [0.2800, 0.1390, 0.5810]))],
    "Geometric": [stats.geom(0.7, loc=-1), stats.geom(0.2, loc=-1)],
    "NegativeBinomial": [stats.nbinom(3, 0.3), stats.nbinom(6.5, 0.8)],
    "Poisson": [stats.poisson(0.7), stats.poisson(4)],
}
# Those whose mean and covariance say enough: of means 5 standard errors.
BY_MOMENTS = [
    "ContinuousBernoulli", "Kumaraswamy", "LowRankMultivariateNormal", "Multinomial",
    "MultivariateNormal precision", "OneHotCategoricalStraightThrough",
    "Wishart",
]  # fmt: skip


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", [*CONTINUOUS, *DISCRETE])
def test_samples_follow_the_law(name: str) -> None:
    leafax.manual_seed(1)
    drawn = build(leafax, name).sample((N,)).numpy().reshape(N, -1)
    laws = CONTINUOUS.get(name) or DISCRETE[name]
    assert drawn.shape[1] == len(laws)
    for column, law in zip(drawn.T, laws, strict=True):
        if name in CONTINUOUS:
            assert stats.kstest(column, law.cdf).pvalue > 1e-4
            continue
        values = np.arange(0, int(column.max()) + 1)
        expected = law.pmf(values) * N
        common = expected > 5  # the rule of thumb for this test
        found = np.array([(column == v).sum() for v in values])[common]
        rest = max(N - expected[common].sum(), 1e-9), N - found.sum()
        expected = np.append(expected[common], rest[0])
        expected *= N / expected.sum()
        assert stats.chisquare(np.append(found, rest[1]), expected).pvalue > 1e-4


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", BY_MOMENTS)
def test_samples_have_the_moments(name: str) -> None:
    # `Wishart` draws a singular sample again where `df` makes one likely, at most three times;
    # PyTorch looks at each.
    leafax.manual_seed(2)
    d, reference = build(leafax, name), build(torch, name)
    drawn = d.sample((N,)).numpy()
    mean, variance = reference.mean.numpy(), reference.variance.numpy()
    assert drawn.shape == (N, *mean.shape)
    assert (abs(drawn.mean(0) - mean) <= 5 * np.sqrt(variance / N) + 1e-9).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.3, atol=1e-9)
    d.log_prob(leafax.tensor(drawn[:5])).numpy()  # they are in the support


@pytest.mark.exhaustive
def test_samples_of_correlations_and_mixtures() -> None:
    leafax.manual_seed(3)
    d = build(leafax, "LKJCholesky")
    factors = d.sample((N,))
    assert bool(D.constraints.corr_cholesky.check(factors).all())
    correlation = (factors @ factors.mT)[..., 0, 1].numpy()
    for column, concentration in zip(correlation.T, (0.5, 2.0), strict=True):
        beta = stats.beta(concentration + 0.5, concentration + 0.5)  # of (r + 1) / 2
        assert stats.kstest((column + 1) / 2, beta.cdf).pvalue > 1e-4
    for name in ("mixture", "mixture of vectors"):
        reference = mixtures(torch)[name]
        drawn = mixtures(leafax)[name].sample((N,)).numpy()
        limit = 5 * np.sqrt(reference.variance.numpy() / N)
        assert (abs(drawn.mean(0) - reference.mean.numpy()) <= limit).all(), name


@pytest.mark.parametrize("name", ["RelaxedBernoulli", "RelaxedOneHotCategorical"])
def test_relaxed_samples_round_to_the_law(name: str) -> None:
    leafax.manual_seed(4)
    d = build(leafax, name)
    drawn = d.rsample((N,))
    hard = drawn.round() if name == "RelaxedBernoulli" else (drawn == drawn.amax(-1, True)).double()
    probs = np.broadcast_to(d.probs.numpy(), hard.shape[1:])
    assert (abs(hard.mean(0).numpy() - probs) < 5 * np.sqrt(probs * (1 - probs) / N)).all()


@pytest.mark.quick(2)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ["Gamma", "Beta", "Dirichlet"])
def test_gradients_of_draws_are_torchs(name: str) -> None:
    """At the same draw, with PyTorch's formula, which approximates within a thousandth."""
    given = parameters(leafax, name, grad=True)
    leafax.manual_seed(5)
    drawn = getattr(D, name)(**given).rsample((50,))
    leaves = list(given.values())
    weights = leafax.randn(drawn.shape, dtype=leafax.float64)
    ours = leafax.autograd.grad((drawn * weights).sum(), leaves)
    x, w = torch.tensor(drawn.detach().numpy()), torch.tensor(weights.numpy())
    if name == "Gamma":
        a, rate = parameters(torch, name).values()
        by_a = torch._standard_gamma_grad(a.expand_as(x), x * rate) / rate
        theirs = [(by_a * w).sum(0), (-x / rate * w).sum(0)]
    else:
        concentration = torch.stack(list(parameters(torch, name).values()), -1)
        concentration = concentration[..., 0] if name == "Dirichlet" else concentration
        if name == "Beta":
            x, w = torch.stack([x, 1 - x], -1), torch.stack([w, torch.zeros_like(w)], -1)
        backward = torch.distributions.dirichlet._Dirichlet_backward
        found = backward(x, concentration.expand_as(x), w).sum(0)
        theirs = [found] if name == "Dirichlet" else [found[..., 0], found[..., 1]]
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=5e-3, atol=5e-3)


def test_gradients_of_a_beta_draw_are_those_of_its_distribution_function() -> None:
    from scipy.special import betainc

    rng = np.random.default_rng(0)
    a, b = rng.gamma(1, 3, 40) + 0.01, rng.gamma(1, 3, 40) + 0.01
    x = np.clip(rng.beta(a, b), 1e-6, 1 - 1e-6)
    ours = leafax._dirichlet_grad(*map(leafax.tensor, (x, a, a + b))).numpy()
    e = 1e-5 * a
    slope = (betainc(a + e, b, x) - betainc(a - e, b, x)) / (2 * e)
    np.testing.assert_allclose(ours, -slope / stats.beta.pdf(x, a, b) / (1 - x), 1e-5)
    theirs = torch._dirichlet_grad(*map(torch.tensor, (x, a, a + b))).numpy()
    np.testing.assert_allclose(ours, theirs, 5e-3)


def test_draws_of_tiny_concentrations_stay_inside() -> None:
    beta = D.Beta(0.01, 0.01).sample((500,)).numpy()
    assert (beta > 0).all() and (beta < 1).all()
    assert 0.35 < (beta < 0.1).mean() < 0.65
    assert (D.Gamma(1e-3, 1.0).sample((500,)).numpy() > 0).all()
    with pytest.raises(NotImplementedError, match="\"gamma_cpu\" not implemented for 'Long'"):
        leafax._standard_gamma(leafax.tensor([1]))


def test_rsample_of_a_normal_is_differentiable_twice_and_of_straight_through_once() -> None:
    scale = leafax.tensor([0.5, 2.0], requires_grad=True)
    drawn = D.Normal(leafax.zeros(2), scale).rsample((3,))
    (grad,) = leafax.autograd.grad((drawn**2).sum(), [scale], create_graph=True)
    (second,) = leafax.autograd.grad(grad.sum(), [scale])
    np.testing.assert_allclose((second * scale).tolist(), grad.tolist(), 1e-5)
    logits = leafax.tensor([0.1, 0.2, 0.3], requires_grad=True)
    d = D.OneHotCategoricalStraightThrough(logits=logits)
    (d.rsample() * leafax.tensor([1.0, 2.0, 3.0])).sum().backward()
    probs = logits.detach().softmax(-1)
    weights = leafax.tensor([1.0, 2.0, 3.0])
    expected = probs * (weights - (probs * weights).sum())
    np.testing.assert_allclose(logits.grad.tolist(), expected.tolist(), 1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_has_rsample_and_enumerate_support_are_torchs() -> None:
    for name in EXAMPLES:
        ours, theirs = (build(lib, name, validate_args=False) for lib in (leafax, torch))
        assert ours.has_rsample == theirs.has_rsample, name
        assert ours.has_enumerate_support == theirs.has_enumerate_support, name


def test_a_policy_gradient_step_is_one_program() -> None:
    """Validation included, with new draws each step and nothing compiled after the first ones."""
    leafax.manual_seed(6)
    w = leafax.tensor(np.ones((4, 3), np.float32), requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    leafax.explain(clear=True)
    actions = []
    for _ in range(8):
        dist = D.Categorical(logits=leafax.randn(6, 4) @ w)
        action = dist.sample()
        loss = -(dist.log_prob(action) * leafax.rand(6)).mean() - 0.01 * dist.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        actions.append(action)
    runs = list(leafax.explain())
    steps = [run for run in runs if run.reason == "optimizer.step()"]
    assert len(steps) == 8 and len(runs) <= 9
    assert all(run.how == "cached" for run in steps[3:])
    assert len({tuple(a.tolist()) for a in actions}) > 1
    assert bool(((actions[0] >= 0) & (actions[0] < 3)).all())
