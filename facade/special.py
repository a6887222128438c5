"""PyTorch's `torch.special`: special functions, some under two names."""

from __future__ import annotations

from leafax.functional import TABLE as _TABLE

from ._table import function as _function
from ._table import in_namespace as _in_namespace

_OTHER_NAMES = {
    "expit": "sigmoid", "digamma": "digamma", "psi": "digamma", "gammaln": "lgamma",
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expm1": "expm1",
    "log1p": "log1p", "logit": "logit", "logsumexp": "logsumexp", "multigammaln": "mvlgamma",
    "gammainc": "igamma", "gammaincc": "igammac", "i0": "i0", "round": "round", "sinc": "sinc",
    "softmax": "softmax", "log_softmax": "log_softmax", "xlogy": "xlogy",
}  # fmt: skip
_made = _in_namespace("special")
_made |= {name: _function(_TABLE[other], f"special.{name}") for name, other in _OTHER_NAMES.items()}
globals().update(_made)


def polygamma(n: int, input: object) -> object:
    """The n-th derivative of `digamma`."""
    return input.polygamma(n)  # type: ignore[attr-defined]


__all__ = [*_made, "polygamma"]  # noqa: PLE0604
