"""Strides that PyTorch's kernels leave: of attention, transforms, factorizations, gradients.

They show in `stride()`, and in what `view` refuses. Each module adds its rules to those of views
and of elementwise ops, in `_rules/strides`, which do not know of them.
"""

from . import attention, columns, fft, gradients, moved

__all__ = ["attention", "columns", "fft", "gradients", "moved"]
