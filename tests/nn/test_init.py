"""`nn.init`, `nn.utils` of vectors, and generators of in-place draws, against torch."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = call(lib)
            if isinstance(made, (torch.Tensor, leafax.Tensor)):
                made = tuple(made.shape), made.tolist(), made.requires_grad
        except Exception as e:
            made = type(e).__name__, str(e)
    return made, [(w.category.__name__, str(w.message)) for w in caught]


GAINS = "linear conv1d conv_transpose3d sigmoid tanh relu leaky_relu selu none".split()
CASES: dict[str, Callable[[Any], Any]] = {
    **{f"gain {n}": lambda t, n=n: t.nn.init.calculate_gain(n) for n in GAINS},
    "gain 0.2": lambda t: t.nn.init.calculate_gain("leaky_relu", 0.2),
    "gain a": lambda t: t.nn.init.calculate_gain("leaky_relu", "a"),
    "eye": lambda t: t.nn.init.eye_(t.ones(2, 3)),
    "eye of a vector": lambda t: t.nn.init.eye_(t.ones(3)),
    "dirac": lambda t: t.nn.init.dirac_(t.ones(4, 2, 3)),
    "dirac by groups": lambda t: t.nn.init.dirac_(t.ones(4, 2, 3, 3), groups=2),
    "dirac of a matrix": lambda t: t.nn.init.dirac_(t.ones(3, 3)),
    "dirac of 3 groups": lambda t: t.nn.init.dirac_(t.ones(4, 2, 3), groups=3),
    "constant": lambda t: t.nn.init.constant_(t.ones(2, requires_grad=True), 3.0),
    "zeros": lambda t: t.nn.init.zeros_(t.ones(2)),
    "ones": lambda t: t.nn.init.ones_(t.zeros(2)),
    "xavier of a vector": lambda t: t.nn.init.xavier_uniform_(t.ones(3)),
    "kaiming of a vector": lambda t: t.nn.init.kaiming_normal_(t.ones(3)),
    "kaiming by x": lambda t: t.nn.init.kaiming_uniform_(t.ones(3, 3), mode="x"),
    "kaiming of nothing": lambda t: t.nn.init.kaiming_uniform_(t.ones(0, 3)),
    "xavier of nothing": lambda t: t.nn.init.xavier_normal_(t.ones(0, 3)),
    "orthogonal of a vector": lambda t: t.nn.init.orthogonal_(t.ones(3)),
    "orthogonal of nothing": lambda t: t.nn.init.orthogonal_(t.ones(0, 3)),
    "sparse of a vector": lambda t: t.nn.init.sparse_(t.ones(3), 0.1),
    "sparse": lambda t: (t.nn.init.sparse_(t.ones(10, 3), 0.35) == 0).sum(0),
    "far from the mean": lambda t: t.nn.init.trunc_normal_(t.ones(3), mean=9.0).shape[0],
    "old name": lambda t: t.nn.init.kaiming_normal(t.ones(3, 3)).shape[0],
    "vector of a number": lambda t: t.nn.utils.vector_to_parameters(3, []),
}


@pytest.mark.parametrize("case", CASES)
def test_as_in_torch(case: str) -> None:
    ours, expected = (outcome(CASES[case], lib) for lib in (leafax, torch))
    assert ours == expected


FILLS: dict[str, tuple[Callable[[Any], Any], float]] = {
    "kaiming_uniform_": (lambda w: leafax.nn.init.kaiming_uniform_(w, a=1), 1 / math.sqrt(300)),
    "kaiming_normal_": (
        lambda w: leafax.nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"),
        math.sqrt(2 / 400),
    ),
    "xavier_uniform_": (lambda w: leafax.nn.init.xavier_uniform_(w, 2.0), 2 * math.sqrt(2 / 700)),
    "xavier_normal_": (leafax.nn.init.xavier_normal_, math.sqrt(2 / 700)),
    "trunc_normal_": (leafax.nn.init.trunc_normal_, 0.8796),
    "normal_": (lambda w: leafax.nn.init.normal_(w, 0.0, 3.0), 3.0),
    "uniform_": (lambda w: leafax.nn.init.uniform_(w, -1.0, 1.0), 1 / math.sqrt(3)),
}


@pytest.mark.parametrize("name", FILLS)
def test_standard_deviations(name: str) -> None:
    leafax.manual_seed(0)
    fill, std = FILLS[name]
    w = leafax.ones(400, 300, dtype=leafax.float64, requires_grad=True)
    assert fill(w) is w and w.is_leaf and w.requires_grad
    values = w.detach().numpy()
    assert abs(values.std() / std - 1) < 0.01  # 120,000 draws: five standard errors
    assert abs(values.mean()) < 5 * std / math.sqrt(values.size)
    bound = {"kaiming_uniform_": math.sqrt(3) * std, "trunc_normal_": 2}.get(name)
    if bound is not None:
        assert 0.99 * bound < abs(values).max() <= bound


@pytest.mark.parametrize("shape", [(4, 6), (6, 2, 2), (5, 5)])
def test_orthogonal(shape: tuple[int, ...]) -> None:
    w = leafax.nn.init.orthogonal_(leafax.ones(shape, dtype=leafax.float64), gain=2.0).numpy()
    flat = w.reshape(shape[0], -1)
    flat = flat if flat.shape[0] <= flat.shape[1] else flat.T
    np.testing.assert_allclose(flat @ flat.T, 4 * np.eye(len(flat)), atol=1e-12)


def test_parameters_as_a_vector() -> None:
    for t in (torch, leafax):
        a, b = t.arange(6.0).view(2, 3).requires_grad_(), t.ones(2, requires_grad=True)
        vector = t.nn.utils.parameters_to_vector([a, b])
        assert vector.tolist() == [0, 1, 2, 3, 4, 5, 1, 1] and vector.requires_grad
        t.nn.utils.vector_to_parameters(vector.detach() * 2, [a, b])
        assert a.tolist() == [[0, 2, 4], [6, 8, 10]] and b.tolist() == [2, 2]
        assert a.is_leaf and a.requires_grad


DRAWS = {
    "uniform_": (), "normal_": (), "exponential_": (), "cauchy_": (), "log_normal_": (),
    "geometric_": (0.5,), "bernoulli_": (0.5,), "random_": (),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_draws_in_place_take_a_generator(name: str) -> None:
    def draw(seed: int) -> Any:
        generator = leafax.Generator().manual_seed(seed)
        return getattr(leafax.zeros(50), name)(*DRAWS[name], generator=generator)

    assert leafax.equal(draw(1), draw(1))
    assert not leafax.equal(draw(1), draw(2))


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_one_write_fills_with_the_identity_or_with_draws(kind: str) -> None:
    for t in (torch, leafax):
        a, b = (t.ones(5, 3, dtype=getattr(t, kind)).requires_grad_() for _ in range(2))
        assert t.nn.init.eye_(a) is a and t.nn.init.trunc_normal_(b, std=0.02) is b
        assert (a._version, b._version) == (1, 1) and a.is_leaf and b.requires_grad
        assert a.tolist() == torch.eye(5, 3).tolist() and b.abs().max() < 0.3


def test_integers_are_not_drawn_from_the_truncated_normal_distribution() -> None:
    for t in (torch, leafax):
        with pytest.raises((NotImplementedError, RuntimeError)):
            t.nn.init.trunc_normal_(t.zeros(3, dtype=t.int64))
