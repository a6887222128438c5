"""Kullback-Leibler divergences; importing this module fills the table."""

from ._kl import cross as _cross  # noqa: F401
from ._kl import multivariate as _multivariate  # noqa: F401
from ._kl import same as _same  # noqa: F401
from ._kl.cross import _infinite_like as _infinite_like
from ._kl.cross import _x_log_x as _x_log_x
from ._kl.multivariate import _batch_trace_XXT as _batch_trace_XXT
from ._kl.registry import _KL_MEMOIZE as _KL_MEMOIZE
from ._kl.registry import _KL_REGISTRY as _KL_REGISTRY
from ._kl.registry import _dispatch_kl as _dispatch_kl
from ._kl.registry import kl_divergence as kl_divergence
from ._kl.registry import register_kl as register_kl
from ._kl.same import _kl_expfamily_expfamily as _kl_expfamily_expfamily

__all__ = ["register_kl", "kl_divergence"]
