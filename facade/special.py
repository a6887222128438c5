"""PyTorch's `torch.special`: special functions, some under two names."""

from __future__ import annotations

from functools import wraps as _wraps
from typing import Any as _Any

from leafax.functional.program.op import TABLE as _TABLE

from ._ops.calls.functions import function as _function
from ._ops.calls.functions import in_namespace as _in_namespace
from ._ops.writes.write_out import check_out as _check_out
from ._ops.writes.write_out import write_out as _write_out

_OTHER_NAMES = {
    "expit": "sigmoid", "digamma": "digamma", "psi": "digamma", "gammaln": "lgamma",
    "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expm1": "expm1",
    "log1p": "log1p", "logit": "logit", "logsumexp": "logsumexp", "multigammaln": "mvlgamma",
    "gammainc": "igamma", "gammaincc": "igammac", "i0": "i0", "sinc": "sinc",
    "softmax": "softmax", "log_softmax": "log_softmax", "xlogy": "xlogy",
}  # fmt: skip


def _decimal(round_: _Any) -> _Any:
    """`special.round`, which always asks for decimals, if none: not so for whole numbers."""

    @_wraps(round_)
    def round(*args: _Any, **kwargs: _Any) -> _Any:
        return round_(*args, **{"decimals": 0, **kwargs})

    return round


_made = _in_namespace("special")
_made |= {name: _function(_TABLE[other], f"special.{name}") for name, other in _OTHER_NAMES.items()}
_made["round"] = _decimal(_function(_TABLE["round"], "special.round"))
globals().update(_made)


def polygamma(n: int, input: _Any, *, out: _Any = None) -> _Any:
    """Return the n-th derivative of `digamma`."""
    if out is None:
        return input.polygamma(n)
    op = _TABLE["polygamma"]
    _check_out(op, out, (input,))
    return _write_out(op, input.polygamma(n), out, (input,))


__all__ = [*_made, "polygamma"]  # noqa: PLE0604
