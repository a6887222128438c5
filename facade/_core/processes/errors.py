"""PyTorch's errors of processes that compute together."""

from __future__ import annotations


class DistError(RuntimeError):
    """Errors of processes that compute together."""


class DistBackendError(DistError):
    """Errors of what sends data between processes."""


class DistNetworkError(DistError):
    """Errors of the network between processes."""


class DistStoreError(DistError):
    """Errors of what processes find each other by."""


for _kind in (DistError, DistBackendError, DistNetworkError, DistStoreError):
    _kind.__module__ = "leafax.distributed"
