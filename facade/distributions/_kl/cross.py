"""Divergences of distributions of two families."""

from __future__ import annotations

import math
from typing import Any

from ... import erf, exp, full_like, ge, inf, le, log, log1p, where, xlogy
from ..bernoulli import Bernoulli
from ..beta import Beta
from ..binomial import Binomial
from ..continuous_bernoulli import ContinuousBernoulli
from ..exponential import Exponential
from ..gamma import Gamma
from ..gumbel import Gumbel
from ..laplace import Laplace
from ..normal import Normal
from ..pareto import Pareto
from ..poisson import Poisson
from ..uniform import Uniform
from ..utils import euler_constant as _euler_gamma
from .registry import register_kl


def _infinite_like(tensor: Any) -> Any:
    return full_like(tensor, inf)


def _x_log_x(tensor: Any) -> Any:
    return xlogy(tensor, tensor)


def _register_infinite(type_p: type, parameter: str, *types_q: type) -> None:
    """Register pairs where `p` is possible where `q` is not."""
    for type_q in types_q:

        @register_kl(type_p, type_q)
        def _infinite(p: Any, q: Any) -> Any:
            return _infinite_like(getattr(p, parameter))


_BOUNDED = (Beta, ContinuousBernoulli, Pareto, Uniform)
_HALVED = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_register_infinite(Beta, "concentration1", Pareto)
_register_infinite(ContinuousBernoulli, "probs", Pareto)
_register_infinite(Exponential, "rate", *_BOUNDED)
_register_infinite(Gamma, "concentration", *_BOUNDED)
_register_infinite(Gumbel, "loc", *_HALVED)
_register_infinite(Laplace, "loc", *_HALVED)
_register_infinite(Normal, "loc", *_HALVED)
_register_infinite(Pareto, "scale", Beta, ContinuousBernoulli, Uniform)
_register_infinite(Poisson, "rate", Bernoulli, Binomial)


def _log_norm(q: Any) -> Any:
    """The part of a gamma density that has no `x`, negated."""
    return q.concentration.lgamma() - q.concentration * q.rate.log()


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p: Any, q: Any) -> Any:
    total = p.concentration1 + p.concentration0
    mean_log = p.concentration1.digamma() - total.digamma()
    return -p.entropy() + _log_norm(q) - (q.concentration - 1) * mean_log + q.rate * p.mean


@register_kl(Beta, Normal)
def _kl_beta_normal(p: Any, q: Any) -> Any:
    mean, total = p.mean, p.concentration1 + p.concentration0
    var_normal = q.scale.pow(2)
    t2 = 0.5 * (var_normal * 2 * math.pi).log()
    t3 = (mean * (1 - mean) / (total + 1) + mean.pow(2)) * 0.5
    return -p.entropy() + t2 + (t3 - q.loc * mean + q.loc.pow(2) * 0.5) / var_normal


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return result.masked_fill((q.low > 0) | (q.high < 1), inf)


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - log(q.rate) + q.rate * p.mean


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p: Any, q: Any) -> Any:
    t2 = 0.5 * (math.log(2.0 * math.pi) + (q.loc / q.scale).square()) + log(q.scale)
    second = p.variance + p.mean.square() - 2.0 * q.loc * p.mean
    return -p.entropy() + t2 + second / (2.0 * q.scale.square())


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p: Any, q: Any) -> Any:
    result = -p.entropy() + (q.high - q.low).log()
    return where(ge(q.low, 0.0) | le(q.high, 1.0), full_like(result, inf), result)


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    t1 = -q.concentration * log(ratio) + ratio + q.concentration.lgamma()
    return t1 + q.concentration * _euler_gamma - (1 + _euler_gamma)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    product, ratio = p.rate * q.scale, q.loc / q.scale
    return product.log() - 1 - ratio + exp(ratio) * product / (product + 1) + product.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p: Any, q: Any) -> Any:
    var_normal, squared = q.scale.pow(2), p.rate.pow(2)
    t1 = 0.5 * log(squared * var_normal * 2 * math.pi)
    second = squared.reciprocal() - q.loc / p.rate + q.loc.pow(2) * 0.5
    return t1 - 1 + second / var_normal


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.concentration / p.rate


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    product, ratio, a = p.rate * q.scale, q.loc / q.scale, p.concentration
    t1 = (a - 1) * a.digamma() - a.lgamma() - a
    t2 = product.log() + a / product
    return t1 + t2 + exp(ratio) * (1 + product.reciprocal()).pow(-a) - ratio


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p: Any, q: Any) -> Any:
    var_normal, squared, a = q.scale.pow(2), p.rate.pow(2), p.concentration
    t1 = 0.5 * log(squared * var_normal * 2 * math.pi) - a - a.lgamma()
    second = 0.5 * (a.pow(2) + a) / squared - q.loc * a / p.rate + 0.5 * q.loc.pow(2)
    return t1 + (a - 1) * a.digamma() + second / var_normal


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p: Any, q: Any) -> Any:
    ratio = p.scale / q.scale
    t1 = (ratio / math.sqrt(2 * math.pi)).log()
    t2 = (math.pi * ratio * 0.5).pow(2) / 3
    t3 = ((p.loc + p.scale * _euler_gamma - q.loc) / q.scale).pow(2) * 0.5
    return -t1 + t2 + t3 - (_euler_gamma + 1)


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p: Any, q: Any) -> Any:
    var_normal = q.scale.pow(2)
    ratio = p.scale.pow(2) / var_normal
    second = 0.5 * p.loc.pow(2) - p.loc * q.loc + 0.5 * q.loc.pow(2)
    return -0.5 * log(2 * ratio / math.pi) + ratio + second / var_normal - 1


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    of_p, of_q, ratio = p.loc / q.scale, q.loc / q.scale, (p.scale / q.scale).pow(2)
    t3 = exp(-of_p + 0.5 * ratio + of_q)
    return -ratio.log() * 0.5 + of_p - of_q + t3 - 0.5 * (1 + math.log(2 * math.pi))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    apart = p.loc - q.loc
    z = apart / p.scale
    t2 = math.sqrt(2 / math.pi) * p.scale * exp(-0.5 * z.pow(2))
    t3 = apart * erf(math.sqrt(0.5) * z)
    constant = 0.5 * (1 + math.log(0.5 * math.pi))
    return -log(p.scale / q.scale) + (t2 + t3) / q.scale - constant


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p: Any, q: Any) -> Any:
    product = p.scale * q.rate
    t1 = (p.alpha / product).log()
    result = t1 - p.alpha.reciprocal() + p.alpha * product / (p.alpha - 1) - 1
    return result.masked_fill(p.alpha <= 1, inf)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p: Any, q: Any) -> Any:
    mean_log = p.scale.log() + p.alpha.reciprocal()
    t3 = (1 - q.concentration) * mean_log
    t4 = q.rate * p.alpha * p.scale / (p.alpha - 1)
    result = p.alpha.log() - mean_log + _log_norm(q) + t3 + t4 - 1
    return result.masked_fill(p.alpha <= 1, inf)


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p: Any, q: Any) -> Any:
    common = p.scale / (p.alpha - 1)
    t1 = (math.sqrt(2 * math.pi) * q.scale * p.alpha / p.scale).log()
    t3 = p.alpha * common.pow(2) / (p.alpha - 2)
    t4 = (p.alpha * common - q.loc).pow(2)
    result = t1 - p.alpha.reciprocal() + (t3 + t4) / (2 * q.scale.pow(2)) - 1
    return result.masked_fill(p.alpha <= 2, inf)


def _mean_log(p: Any) -> Any:
    """The mean logarithm of a uniform number."""
    width = p.high - p.low
    return (_x_log_x(p.high) - _x_log_x(p.low) - width) / width


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    width = p.high - p.low
    a, b = q.concentration1, q.concentration0
    of_rest = (_x_log_x(1 - p.high) - _x_log_x(1 - p.low) + width) / width
    t4 = a.lgamma() + b.lgamma() - (a + b).lgamma()
    result = (b - 1) * of_rest + t4 - log(width) - (a - 1) * _mean_log(p)
    return result.masked_fill((p.high > 1) | (p.low < 0), inf)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    result = -p.entropy() - p.mean * q.logits - log1p(-q.probs) - q._cont_bern_log_norm()
    return where(ge(p.high, 1.0) | le(p.low, 0.0), full_like(result, inf), result)


@register_kl(Uniform, Exponential)
def _kl_uniform_exponetial(p: Any, q: Any) -> Any:
    result = q.rate * (p.high + p.low) / 2 - ((p.high - p.low) * q.rate).log()
    return result.masked_fill(p.low < 0, inf)


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    t3 = (1 - q.concentration) * _mean_log(p)
    result = -(p.high - p.low).log() + _log_norm(q) + t3 + q.rate * (p.high + p.low) / 2
    return result.masked_fill(p.low < 0, inf)


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    ratio = q.scale / (p.high - p.low)
    high, low = (p.high - q.loc) / q.scale, (p.low - q.loc) / q.scale
    return ratio.log() + 0.5 * (high + low) - ratio * (exp(-high) - exp(-low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p: Any, q: Any) -> Any:
    width = p.high - p.low
    t1 = (math.sqrt(math.pi * 2) * q.scale / width).log()
    off = ((p.high + p.low - 2 * q.loc) / 2).pow(2)
    return t1 + 0.5 * (width.pow(2) / 12 + off) / q.scale.pow(2)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    t1 = (q.alpha * q.scale.pow(q.alpha) * (p.high - p.low)).log()
    result = _mean_log(p) * (q.alpha + 1) - t1
    return result.masked_fill(p.low < q.scale, inf)
