"""Arguments are validated in PyTorch's words: at once where values are at rest, else later."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from helpers.distributions import DISTRIBUTIONS, EXAMPLES, build

import leafax

D = leafax.distributions

REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "probs": lambda t, D: D.Bernoulli(t.tensor([2.0, 0.5])),
    "a number": lambda t, D: D.Bernoulli(-0.5),
    "scale": lambda t, D: D.Normal(t.zeros(2), t.tensor([1.0, -1.0])),
    "broadcast": lambda t, D: D.Normal(t.zeros(2), -1.0),
    "nan": lambda t, D: D.Normal(t.tensor([t.nan]), 1.0),
    "bounds": lambda t, D: D.Uniform(t.tensor([2.0, 0.5]), 1.0),
    "simplex": lambda t, D: D.Categorical(probs=t.tensor([[-0.5, 1.5], [0.5, 0.5]])),
    "vectors": lambda t, D: D.Categorical(logits=t.tensor([[t.nan, 0.0], [1.0, 2.0]])),
    "concentration": lambda t, D: D.Dirichlet(t.tensor([1.0, -1.0])),
    "beta": lambda t, D: D.Beta(t.tensor([1.0]), t.tensor([0.0])),
    "count": lambda t, D: D.Binomial(t.tensor([1.5]), t.tensor([0.5])),
    "positive": lambda t, D: D.Geometric(t.tensor([0.0, 0.4])),
    "not positive definite": lambda t, D: D.MultivariateNormal(
        t.zeros(2), t.tensor([[1.0, 0.0], [0.0, -2.0]])
    ),
    "not symmetric": lambda t, D: D.MultivariateNormal(
        t.zeros(2), t.tensor([[1.0, 0.5], [0.0, 1.0]])
    ),
    "not lower": lambda t, D: D.MultivariateNormal(
        t.zeros(2), scale_tril=t.tensor([[1.0, 1.0], [1.0, 1.0]])
    ),
    "low df": lambda t, D: D.Wishart(t.tensor(1.0), t.eye(3)),
    "value": lambda t, D: D.Uniform(0.0, 1.0).log_prob(t.tensor(3.0)),
    "integer": lambda t, D: D.Poisson(1.0).log_prob(t.tensor([0.5])),
    "category": lambda t, D: D.Categorical(t.ones(3)).log_prob(t.tensor([3])),
    "one-hot": lambda t, D: D.OneHotCategorical(t.ones(3)).log_prob(t.tensor([1.0, 1.0, 0.0])),
    "negative": lambda t, D: D.Gamma(1.0, 1.0).log_prob(t.tensor(-1.0)),
    "cdf": lambda t, D: D.Exponential(t.ones(2)).cdf(t.tensor([-1.0, 1.0])),
    "shape of events": lambda t, D: D.Dirichlet(t.ones(3)).log_prob(t.ones(2)),
    "shape of batches": lambda t, D: D.Normal(t.zeros(3), 1.0).log_prob(t.zeros(2)),
    "no tensor": lambda t, D: D.Normal(0.0, 1.0).log_prob(0.5),
    "mixture": lambda t, D: D.MixtureSameFamily(
        D.Categorical(t.ones(2)), D.Uniform(t.tensor([0.0, 0.0]), t.tensor([1.0, 1.0]))
    ).log_prob(t.tensor(2.0)),
    "both": lambda t, D: D.Bernoulli(0.5, 0.5),
    "neither": lambda t, D: D.Categorical(),
    "default": lambda t, D: D.Distribution.set_default_validate_args(2),
    "inhomogeneous": lambda t, D: D.Multinomial(t.tensor([1, 2]), t.ones(2)),
    "inhomogeneous entropy": lambda t, D: D.Binomial(t.tensor([1.0, 2.0]), t.ones(2)).entropy(),
    "independent": lambda t, D: D.Independent(D.Normal(t.zeros(2), 1.0), 2),
    "lkj": lambda t, D: D.LKJCholesky(1),
    "no mode": lambda t, D: D.LKJCholesky(2).mode,
    "no divergence": lambda t, D: D.kl_divergence(D.Poisson(1.0), D.Cauchy(0.0, 1.0)),
    "reshape": lambda t, D: D.ReshapeTransform((2, 3), (5,)),
    "cache": lambda t, D: D.ExpTransform(cache_size=2),
    "no transform": lambda t, D: D.TransformedDistribution(D.Normal(0.0, 1.0), 3),
    "no bijection": lambda t, D: D.biject_to(D.constraints.lower_cholesky),
    "low rank": lambda t, D: D.LowRankMultivariateNormal(t.zeros(2), t.zeros(3, 1), t.ones(2)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_torchs_words(case: str) -> None:
    with pytest.raises(Exception) as theirs:
        REFUSED[case](torch, torch.distributions)
    with pytest.raises(type(theirs.value)) as ours:
        REFUSED[case](leafax, D)
    assert str(ours.value).replace("leafax.", "torch.") == str(theirs.value)


PENDING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "parameter": lambda t, D, x: D.Bernoulli(x + 2.0),
    "number beside it": lambda t, D, x: D.Normal(0.5, x - 3.0),
    "sample": lambda t, D, x: D.Exponential(1.0).log_prob(x - 3.0),
    "bound": lambda t, D, x: D.Uniform(x * 2.0, x),
    "vectors": lambda t, D, x: D.Dirichlet(x - 1.0),
}


@pytest.mark.usefixtures("all_recorded")
@pytest.mark.parametrize("case", PENDING)
def test_what_is_pending_is_raised_at_the_observation(case: str) -> None:
    with pytest.raises(ValueError) as theirs:
        PENDING[case](torch, torch.distributions, torch.tensor([0.5, 1.0]))
    x = leafax.tensor([0.5, 1.0])
    PENDING[case](leafax, D, x)  # nothing is known of it yet, and nobody holds it
    with pytest.raises(ValueError) as ours:
        (x + 1).tolist()
    shown, words = str(ours.value), str(theirs.value)
    cut = words.index("of distribution") if "sample" not in case else len(words)
    assert shown[:cut] == words[:cut]
    assert shown.split("invalid values:")[1] == words.split("invalid values:")[1]
    line = inspect.getsourcelines(PENDING[case])[1]
    assert f"{__file__}:{line}" in ours.value.__notes__[0]
    (x + 1).tolist()  # said once


@pytest.mark.usefixtures("all_recorded")
def test_a_distribution_that_is_held_is_shown_as_it_is() -> None:
    x = leafax.tensor(3.0)
    held = D.Bernoulli(x + 1)
    with pytest.raises(ValueError, match=re.escape("distribution Bernoulli(probs: 4.0) to")):
        x.add(1).item()
    del held


def test_large_values_that_are_gone_are_not_shown() -> None:
    x = leafax.ones(2000)
    D.Normal(x, -(x + 1))
    said = (
        "Expected parameter scale (Tensor of shape (2000,)) of distribution "
        "Normal(loc: torch.Size([2000]), scale: torch.Size([2000])) to satisfy the constraint "
        "GreaterThan(lower_bound=0.0), but found invalid values"
    )
    with pytest.raises(ValueError) as caught:
        x.add(1).sum().item()
    assert str(caught.value) == said


def test_validation_can_be_turned_off() -> None:
    assert D.Bernoulli(2.0, validate_args=False).probs.item() == 2.0
    D.Distribution.set_default_validate_args(False)
    try:
        assert D.Normal(0.0, -1.0).scale.item() == -1.0
        with pytest.raises(ValueError, match="Expected parameter scale"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)


def test_a_constraint_of_the_users_own_is_asked() -> None:
    class Even(D.constraints.Constraint):
        def check(self, value: Any) -> Any:
            return value % 2 == 0

    class Coin(D.Distribution):
        arg_constraints = {"side": Even()}
        support = Even()

        def __init__(self, side: Any) -> None:
            self.side = side
            super().__init__()

    assert repr(Coin(leafax.tensor(2.0))) == "Coin(side: 2.0)"
    Coin(leafax.tensor(3.0))
    with pytest.raises(ValueError, match=r"parameter side \(Tensor of shape \(\)\) .*\n3.0"):
        leafax.synchronize()


def test_what_says_nothing_of_its_arguments_is_warned_of() -> None:
    class Bare(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        bare = Bare()
    with pytest.warns(UserWarning, match="does not define `support`"):
        bare._validate_sample(leafax.tensor(0.0))
    with pytest.raises(NotImplementedError, match="Bare.* does not implement mode"):
        _ = bare.mode


@pytest.mark.quick(8)
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", EXAMPLES)
def test_expanded_and_copied(name: str) -> None:
    ours, theirs = build(leafax, name), build(torch, name)
    value = theirs.sample((3,)).numpy()
    shape = (3, *theirs.batch_shape)
    wide, their_wide = ours.expand(shape), theirs.expand(shape)
    assert (wide.batch_shape, wide.event_shape) == (
        leafax.Size(their_wide.batch_shape), leafax.Size(their_wide.event_shape),
    )  # fmt: skip
    assert wide.sample().shape == tuple(their_wide.sample().shape)
    expected = ours.log_prob(leafax.tensor(value)).numpy()
    for same in (wide, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_allclose(same.log_prob(leafax.tensor(value)).numpy(), expected, 1e-6)


def test_a_subclass_with_a_constructor_of_its_own_expands_itself() -> None:
    def cls(D: Any) -> type:
        class Shifted(D.Normal):
            def __init__(self, loc: Any) -> None:
                super().__init__(loc, 1.0)

        return Shifted

    with pytest.raises(NotImplementedError) as theirs:
        cls(torch.distributions)(torch.zeros(1)).expand((2,))
    with pytest.raises(NotImplementedError) as ours:
        cls(D)(leafax.zeros(1)).expand((2,))
    assert str(ours.value) == str(theirs.value)


def test_ambiguous_divergences_are_warned_of() -> None:
    def ask(D: Any) -> Any:
        class A(D.Normal):
            pass

        class B(A):
            pass

        D.register_kl(A, D.Normal)(lambda p, q: "left")
        D.register_kl(D.Normal, A)(lambda p, q: "right")
        return D.kl_divergence(B(0.0, 1.0), B(0.0, 1.0)), B

    try:
        with pytest.warns(RuntimeWarning) as theirs:
            answer, _ = ask(torch.distributions)
        with pytest.warns(RuntimeWarning) as ours:
            assert ask(D)[0] == answer
        assert str(ours[0].message) == str(theirs[0].message)
    finally:
        for lib in (torch.distributions, D):
            registry = lib.kl._KL_REGISTRY
            for pair in [p for p in registry if "A" in (p[0].__name__, p[1].__name__)]:
                del registry[pair]
            lib.kl._KL_MEMOIZE.clear()


def test_all_names_are_there() -> None:
    assert set(torch.distributions.__all__) <= set(D.__all__)
    for module in ("constraints", "transforms", "utils", "constraint_registry"):
        for name in getattr(torch.distributions, module).__all__:
            assert hasattr(getattr(D, module), name), name
    assert DISTRIBUTIONS[leafax] is D
