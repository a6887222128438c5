"""PyTorch's `torch.__config__`: how the library was built."""

from __future__ import annotations

import jax

__all__ = ["parallel_info", "show"]


def show() -> str:
    """Describe what computes, in the form of PyTorch's text."""
    return (
        f"leafax on JAX {jax.__version__}, built with:\n"
        "  - Build settings: USE_CUDA=OFF, USE_MKL=OFF, USE_MKLDNN=OFF, USE_OPENMP=OFF, \n"
    )


def parallel_info() -> str:
    """Say who chooses the threads."""
    return "XLA chooses its threads\n"
