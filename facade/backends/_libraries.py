"""Libraries of GPU kernels that PyTorch programs prefer; XLA chooses its own."""

from __future__ import annotations

from enum import Enum
from typing import Any


class _LinalgBackend(Enum):
    """Name the libraries of matrix decompositions that PyTorch has."""

    Default = 0
    Cusolver = 1
    Magma = 2


class _BlasBackend(Enum):
    """Name the libraries of matrix products that PyTorch has."""

    Default = 0
    Cublas = 1
    Cublaslt = 2
    Ck = 3


_LINALG = {kind.name.lower(): kind for kind in _LinalgBackend}
_BLAS = {
    "default": _BlasBackend.Cublas, "cublas": _BlasBackend.Cublas,
    "hipblas": _BlasBackend.Cublas, "cublaslt": _BlasBackend.Cublaslt,
    "hipblaslt": _BlasBackend.Cublaslt, "ck": _BlasBackend.Ck,
}  # fmt: skip
_preferred: dict[str, Any] = {"linalg": _LinalgBackend.Default, "blas": _BlasBackend.Cublas}


def _prefer(what: str, kinds: dict[str, Any], backend: Any) -> Any:
    if isinstance(backend, str):
        if backend not in kinds:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(kinds)}.")
        backend = kinds[backend]
    if backend is not None:
        if backend not in kinds.values():
            raise RuntimeError("Unknown input value type.")
        _preferred[what] = backend
    return _preferred[what]


def preferred_linalg_library(backend: Any = None) -> _LinalgBackend:
    """Remember which library matrix decompositions should take, and return it.

    Raises:
      RuntimeError: PyTorch knows no such library.
    """
    return _prefer("linalg", _LINALG, backend)  # type: ignore[no-any-return]


def preferred_blas_library(backend: Any = None) -> _BlasBackend:
    """Remember which library matrix products should take, and return it.

    Raises:
      RuntimeError: PyTorch knows no such library.
    """
    return _prefer("blas", _BLAS, backend)  # type: ignore[no-any-return]


for _function in (preferred_linalg_library, preferred_blas_library):
    _function.__module__ = "leafax.backends.cuda"
