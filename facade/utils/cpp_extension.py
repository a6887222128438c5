"""PyTorch's `torch.utils.cpp_extension`: names to import; nothing is compiled against PyTorch."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse, refuse_class

__all__ = [
    "BuildExtension", "CUDAExtension", "CUDA_HOME", "CppExtension", "ROCM_HOME",
    "include_paths", "is_ninja_available", "library_paths", "load", "load_inline",
]  # fmt: skip

CUDA_HOME: str | None = None
ROCM_HOME: str | None = None

_WHY = (
    "compiled extensions for PyTorch need PyTorch's own libraries; `leafax.call_jax` makes an op "
    "of any JAX function"
)
load = refuse("utils.cpp_extension.load", _WHY)
load_inline = refuse("utils.cpp_extension.load_inline", _WHY)
CppExtension = refuse("utils.cpp_extension.CppExtension", _WHY)
CUDAExtension = refuse("utils.cpp_extension.CUDAExtension", _WHY)
include_paths = refuse("utils.cpp_extension.include_paths", _WHY)
library_paths = refuse("utils.cpp_extension.library_paths", _WHY)
BuildExtension = refuse_class("utils.cpp_extension.BuildExtension", _WHY)


def is_ninja_available() -> bool:
    """Return False: there is nothing to build."""
    return False
