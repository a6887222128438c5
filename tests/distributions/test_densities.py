"""Densities, moments and divergences, with their gradients, against live PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.distributions import DISTRIBUTIONS, EXAMPLES, build, mixtures, parameters, samples

import leafax

# `torch` raises a dtype error in double precision; `test_generalized_pareto` has these.
_NOT_IN_TORCH = {("GeneralizedPareto", "log_prob"), ("GeneralizedPareto", "cdf")}

ASKED: dict[str, Any] = {
    "log_prob": lambda lib, d, value: d.log_prob(value),
    "cdf": lambda lib, d, value: d.cdf(value),
    "icdf": lambda lib, d, value: d.icdf(lib.full_like(value, 0.3)),
    "entropy": lambda lib, d, value: d.entropy(),
    "perplexity": lambda lib, d, value: d.perplexity(),
    "mean": lambda lib, d, value: d.mean,
    "mode": lambda lib, d, value: d.mode,
    "variance": lambda lib, d, value: d.variance,
    "stddev": lambda lib, d, value: d.stddev,
    "support": lambda lib, d, value: repr(d.support),
    "repr": lambda lib, d, value: repr(d),
    "enumerate_support": lambda lib, d, value: d.enumerate_support(),
    "not expanded": lambda lib, d, value: d.enumerate_support(False),
}


def answer(lib: Any, asked: Any, d: Any, value: Any, leaves: list[Any]) -> Any:
    """Return the result with its gradients, or the words of the refusal."""
    try:
        out = asked(lib, d, value)
    except NotImplementedError as error:
        return str(error).replace("leafax.", "torch.")
    if isinstance(out, str):
        return out
    found = [out.detach().numpy()]
    if out.requires_grad and leaves:
        try:
            found += lib.autograd.grad(out.sum(), leaves, allow_unused=True, retain_graph=True)
        except NotImplementedError:  # PyTorch has no formula
            return found
    return [None if x is None else np.asarray(x) for x in found]


def assert_same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, str):
        assert ours == theirs
        return
    for one, other in zip(ours, theirs, strict=False):  # we may have the gradient and they not
        assert (one is None) == (other is None)
        if other is not None:
            assert one.dtype == other.dtype
            tolerance = 1e-5 if other.dtype == np.float32 else 1e-9
            np.testing.assert_allclose(one, other, tolerance, tolerance / 10, strict=True)


def answers(lib: Any, name: str) -> dict[str, Any]:
    given = parameters(lib, name, grad=True)
    d = getattr(DISTRIBUTIONS[lib], name.split(" ")[0])(**given)
    drawn = samples(name, 2)
    value = lib.tensor(drawn, requires_grad=drawn.dtype.kind == "f")
    leaves = [x for x in (*given.values(), value) if getattr(x, "requires_grad", False)]
    return {
        asked: answer(lib, fn, d, value, leaves)
        for asked, fn in ASKED.items()
        if (name.split(" ")[0], asked) not in _NOT_IN_TORCH
    }


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_answers_and_gradients(name: str) -> None:
    ours, theirs = answers(leafax, name), answers(torch, name)
    for asked in theirs:
        if asked in ("entropy", "perplexity") and name == "Multinomial":  # it computes in float32
            np.testing.assert_allclose(ours[asked][0], theirs[asked][0], 1e-5)
            continue
        assert_same(ours[asked], theirs[asked])


def test_generalized_pareto_is_the_one_of_scipy() -> None:
    from scipy import stats

    d, value = build(leafax, "GeneralizedPareto"), samples("GeneralizedPareto", 2)
    theirs = stats.genpareto([0.2, -0.3], [0.5, 1.0], [1.0, 2.0])
    x = leafax.tensor(value)
    np.testing.assert_allclose(d.log_prob(x).numpy(), theirs.logpdf(value), 1e-9)
    np.testing.assert_allclose(d.cdf(x).numpy(), theirs.cdf(value), 1e-9)
    np.testing.assert_allclose(d.log_survival_function(x).numpy(), theirs.logsf(value), 1e-9)
    zero = build(leafax, "GeneralizedPareto zero")
    theirs = stats.genpareto([0.0, 0.7], 0.5)
    np.testing.assert_allclose(zero.log_prob(x.abs() + 1).numpy(), theirs.logpdf(abs(value) + 1))


@pytest.mark.parametrize("name", mixtures(leafax))
def test_made_of_others(name: str) -> None:
    ours, theirs = mixtures(leafax)[name], mixtures(torch)[name]
    torch.manual_seed(0)
    value = theirs.sample((2,))
    assert ours.sample((2,)).shape == value.shape
    for asked in ("log_prob", "cdf", "mean", "variance", "entropy", "support", "repr"):
        if name == "mixture of vectors" and asked == "cdf":
            continue
        outs = [
            answer(lib, ASKED[asked], d, lib.tensor(value.numpy()), [])
            for lib, d in ((leafax, ours), (torch, theirs))
        ]
        assert_same(*outs)


def _pairs() -> list[tuple[str, str]]:
    from torch.distributions.kl import _KL_REGISTRY

    known: dict[str, str] = {}
    for name in EXAMPLES:
        known.setdefault(name.split(" ")[0], name)
    pairs = [(p.__name__, q.__name__) for p, q in _KL_REGISTRY]
    return sorted((known[p], known[q]) for p, q in pairs if p in known and q in known)


def _divergence(lib: Any, p: str, q: str) -> list[Any] | str:
    D = DISTRIBUTIONS[lib]
    given = parameters(lib, p, grad=True), parameters(lib, q, grad=True)
    if p == q:  # another one than itself, in the same support
        for key, value in given[1].items():
            if key in ("loc", "rate", "high", "alpha", "concentration", "concentration1", "df1"):
                given[1][key] = (value.detach() * 1.2).requires_grad_()
    one, other = (getattr(D, n)(**g) for n, g in zip((p, q), given, strict=True))
    try:
        divergence = D.kl_divergence(one, other)
    except NotImplementedError as error:
        return str(error)
    leaves = [x for g in given for x in g.values() if hasattr(x, "detach")]
    grads = ()
    if divergence.requires_grad:
        grads = lib.autograd.grad(divergence.sum(), leaves, allow_unused=True)
    found = [divergence.detach(), *grads]
    return [None if x is None else x.numpy() for x in found]


def test_divergences_of_all_registered_pairs() -> None:
    from torch.distributions import kl

    registered = {
        lib: {(p.__name__, q.__name__) for p, q in registry}
        for lib, registry in (
            (torch, kl._KL_REGISTRY), (leafax, leafax.distributions.kl._KL_REGISTRY),
        )
    }  # fmt: skip
    assert registered[leafax] == registered[torch]
    assert len(_pairs()) > 75
    for p, q in _pairs():
        assert_same(_divergence(leafax, p, q), _divergence(torch, p, q))
