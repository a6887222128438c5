"""Distributions with parameters, by name: what each of the tests compares with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

import leafax
import leafax.distributions

DISTRIBUTIONS = {torch: torch.distributions, leafax: leafax.distributions}

_SPD = [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]]
_TRIL = [[1.2, 0.0, 0.0], [0.3, 0.9, 0.0], [-0.4, 0.2, 1.1]]

# Lists are tensors in double precision, everything else is given as it is. The class is what
# stands before the first space.
EXAMPLES: dict[str, dict[str, Any]] = {
    "Bernoulli": {"probs": [0.7, 0.2]},
    "Bernoulli logits": {"logits": [[0.3, -1.2]]},
    "Bernoulli number": {"probs": 0.3},
    "Beta": {"concentration1": [0.4, 2.5], "concentration0": [1.3, 3.0]},
    "Beta number": {"concentration1": 1.5, "concentration0": 2.5},
    "Binomial": {"total_count": 4, "probs": [0.7, 0.2]},
    "Binomial counts": {"total_count": [3.0, 6.0], "logits": [0.4, -0.2]},
    "Categorical": {"probs": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]},
    "Categorical logits": {"logits": [0.3, -0.4, 1.0]},
    "Cauchy": {"loc": [0.0, 1.0], "scale": [1.0, 2.5]},
    "Chi2": {"df": [0.8, 3.5]},
    "ContinuousBernoulli": {"probs": [0.7, 0.4999]},
    "ContinuousBernoulli logits": {"logits": [0.3, -1.2]},
    "Dirichlet": {"concentration": [[0.5, 2.0, 3.0], [0.3, 0.4, 0.8]]},
    "Exponential": {"rate": [0.7, 2.0]},
    "FisherSnedecor": {"df1": [1.5, 3.0], "df2": [5.0, 2.5]},
    "Gamma": {"concentration": [0.5, 2.5], "rate": [1.0, 0.3]},
    "GeneralizedPareto": {"loc": [0.5, 1.0], "scale": [1.0, 2.0], "concentration": [0.2, -0.3]},
    "GeneralizedPareto zero": {"loc": 0.5, "scale": 1.0, "concentration": [0.0, 0.7]},
    "Geometric": {"probs": [0.7, 0.2]},
    "Geometric logits": {"logits": [0.4, -0.3]},
    "Gumbel": {"loc": [0.0, 1.0], "scale": [1.0, 2.5]},
    "HalfCauchy": {"scale": [1.0, 2.5]},
    "HalfNormal": {"scale": [1.0, 2.5]},
    "InverseGamma": {"concentration": [1.5, 2.5], "rate": [1.0, 0.3]},
    "Kumaraswamy": {"concentration1": [0.8, 2.0], "concentration0": [1.5, 3.0]},
    "LKJCholesky": {"dim": 3, "concentration": [0.5, 2.0]},
    "Laplace": {"loc": [0.0, 1.0], "scale": [1.0, 2.5]},
    "LogNormal": {"loc": [0.0, 1.0], "scale": [1.0, 0.5]},
    "LogisticNormal": {"loc": [0.0, 1.0], "scale": [1.0, 0.5]},
    "LowRankMultivariateNormal": {
        "loc": [0.1, 0.2, -0.3],
        "cov_factor": [[1.0], [0.5], [-0.2]],
        "cov_diag": [0.7, 1.2, 0.4],
    },
    "Multinomial": {"total_count": 5, "probs": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]},
    "MultivariateNormal": {"loc": [[0.1, 0.2, -0.3], [1.0, 0.0, 0.5]], "covariance_matrix": _SPD},
    "MultivariateNormal precision": {"loc": [0.1, 0.2, -0.3], "precision_matrix": _SPD},
    "MultivariateNormal tril": {"loc": [0.1, 0.2, -0.3], "scale_tril": [_TRIL, _TRIL]},
    "NegativeBinomial": {"total_count": [3.0, 6.5], "probs": [0.7, 0.2]},
    "NegativeBinomial logits": {"total_count": 4, "logits": [0.4, -0.2]},
    "Normal": {"loc": [0.0, 1.0], "scale": [1.0, 2.5]},
    "Normal mixed": {"loc": [0.0, 1.0], "scale": 0.5},
    "OneHotCategorical": {"probs": [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]},
    "OneHotCategoricalStraightThrough": {"logits": [0.3, -0.4, 1.0]},
    "Pareto": {"scale": [1.0, 0.5], "alpha": [2.5, 3.5]},
    "Poisson": {"rate": [0.7, 4.0]},
    "RelaxedBernoulli": {"temperature": [0.7], "probs": [0.7, 0.2]},
    "RelaxedOneHotCategorical": {"temperature": [0.7], "probs": [[0.1, 0.2, 0.7]]},
    "StudentT": {"df": [0.7, 1.5, 5.0], "loc": [0.1, 0.2, 0.3], "scale": [1.0, 2.0, 0.5]},
    "Uniform": {"low": [0.0, -1.0], "high": [1.0, 2.0]},
    "VonMises": {"loc": [0.2, -1.0], "concentration": [0.5, 4.0]},
    "Weibull": {"scale": [1.0, 0.5], "concentration": [2.0, 1.5]},
    "Wishart": {"df": [4.0, 5.0], "covariance_matrix": _SPD},
    "Wishart tril": {"df": 4.0, "scale_tril": _TRIL},
}


def parameters(lib: Any, name: str, grad: bool = False) -> dict[str, Any]:
    """The arguments of an example, tensors being leaves that require gradients if `grad`."""
    found = {}
    for key, value in EXAMPLES[name].items():
        if isinstance(value, list):
            value = lib.tensor(value, dtype=lib.float64, requires_grad=grad)
        found[key] = value
    return found


def build(lib: Any, name: str, **more: Any) -> Any:
    """The distribution of an example."""
    cls = getattr(DISTRIBUTIONS[lib], name.split(" ")[0])
    return cls(**parameters(lib, name), **more)


def samples(name: str, *shape: int) -> np.ndarray:
    """Draws by PyTorch, always the same ones."""
    torch.manual_seed(0)
    return build(torch, name).sample(shape).numpy()


def mixtures(lib: Any) -> dict[str, Any]:
    """Distributions that are made of other ones."""
    D = DISTRIBUTIONS[lib]

    def vector(*values: Any) -> Any:
        return lib.tensor(list(values), dtype=lib.float64)

    weights = D.Categorical(vector(0.3, 0.7))
    normals = D.Normal(vector(0.0, 1.0), vector(1.0, 0.5))
    grid = D.Normal(vector([0.0, 1.0], [0.5, 0.2]), vector([1.0, 0.5], [0.3, 2.0]))
    return {
        "independent": D.Independent(grid, 1),
        "mixture": D.MixtureSameFamily(weights, normals),
        "mixture of vectors": D.MixtureSameFamily(weights, D.Independent(grid, 1)),
        "transformed": D.TransformedDistribution(
            normals, [D.ExpTransform(), D.AffineTransform(1.0, vector(2.0, -3.0))]
        ),
        "broadcast by a transform": D.TransformedDistribution(
            D.Normal(vector(0.0), vector(1.0)), D.AffineTransform(vector(1.0, 2.0, 3.0), 2.0)
        ),
    }
