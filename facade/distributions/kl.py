"""Kullback-Leibler divergences; importing this module fills the table."""

from . import _kl_cross as _kl_cross
from . import _kl_multivariate as _kl_multivariate
from . import _kl_same as _kl_same
from ._kl_cross import _infinite_like as _infinite_like
from ._kl_cross import _x_log_x as _x_log_x
from ._kl_multivariate import _batch_trace_XXT as _batch_trace_XXT
from ._kl_registry import _KL_MEMOIZE as _KL_MEMOIZE
from ._kl_registry import _KL_REGISTRY as _KL_REGISTRY
from ._kl_registry import _dispatch_kl as _dispatch_kl
from ._kl_registry import kl_divergence as kl_divergence
from ._kl_registry import register_kl as register_kl
from ._kl_same import _kl_expfamily_expfamily as _kl_expfamily_expfamily

__all__ = ["register_kl", "kl_divergence"]
