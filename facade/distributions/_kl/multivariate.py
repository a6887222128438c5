"""Divergences of multivariate normal distributions."""

from __future__ import annotations

from typing import Any

from ... import broadcast_shapes, diag_embed, linalg
from ..lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from ..multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .registry import register_kl


def _batch_trace_XXT(bmat: Any) -> Any:  # noqa: N802
    """The trace of `X X.T`."""
    return bmat.pow(2).sum((-2, -1))


def _need_same_event(p: Any, q: Any, kind: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(
            f"KL-divergence between two {kind}Multivariate Normals with"
            "                          different event shapes cannot be computed"
        )


def _solve(factor: Any, other: Any) -> Any:
    """`factor^-1 @ other` for a lower triangular factor."""
    return linalg.solve_triangular(factor, other, upper=False)


def _logdet(p: Any) -> Any:
    W, D = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag  # noqa: N806
    return _batch_lowrank_logdet(W, D, p._capacitance_tril)


def _apart(p: Any, q: Any) -> Any:
    """The squared distance of the means, in the metric of a `q` of low rank."""
    W, D = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag  # noqa: N806
    return _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, q._capacitance_tril)


def _weighted(q: Any) -> Any:
    """`L^-1 W.T D^-1` of a `q` of low rank, by the Woodbury identity."""
    of_q = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return _solve(q._capacitance_tril, of_q)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _need_same_event(p, q, "Low Rank ")
    A, D = _weighted(q), p._unbroadcasted_cov_diag  # noqa: N806
    inverse = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = (
        (D / q._unbroadcasted_cov_diag).sum(-1)
        + _batch_trace_XXT(p._unbroadcasted_cov_factor * inverse)
        - _batch_trace_XXT(A * D.sqrt().unsqueeze(-2))
        - _batch_trace_XXT(A.matmul(p._unbroadcasted_cov_factor))
    )
    return 0.5 * (_logdet(q) - _logdet(p) + trace + _apart(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _need_same_event(p, q, "(Low Rank) ")
    A, factor = _weighted(q), p._unbroadcasted_scale_tril  # noqa: N806
    inverse = q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
    trace = _batch_trace_XXT(factor * inverse) - _batch_trace_XXT(A.matmul(factor))
    log_ratio = _logdet(q) - 2 * p._log_diagonal()
    return 0.5 * (log_ratio + trace + _apart(p, q) - p.event_shape[0])


def _expanded(p: Any, q: Any, *matrices: Any) -> list[Any]:
    """`q`'s factor and matrices of `p`, in the shape that their batches have together."""
    factor = q._unbroadcasted_scale_tril
    shapes = [x.shape[:-2] for x in (factor, *matrices)]
    batch: Any = broadcast_shapes(*shapes)
    return [x.expand(batch + x.shape[-2:]) for x in (factor, *matrices)]


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _need_same_event(p, q, "(Low Rank) ")
    diagonal = diag_embed(p._unbroadcasted_cov_diag.sqrt())
    factor, low, diagonal = _expanded(p, q, p._unbroadcasted_cov_factor, diagonal)
    trace = _batch_trace_XXT(_solve(factor, low)) + _batch_trace_XXT(_solve(factor, diagonal))
    apart = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    log_ratio = 2 * q._log_diagonal() - _logdet(p)
    return 0.5 * (log_ratio + trace + apart - p.event_shape[0])


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _need_same_event(p, q, "")
    factor, own = _expanded(p, q, p._unbroadcasted_scale_tril)
    trace = _batch_trace_XXT(_solve(factor, own))
    apart = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    half_log_ratio = q._log_diagonal() - p._log_diagonal()
    return half_log_ratio + 0.5 * (trace + apart - p.event_shape[-1])
