"""`torch.backends`: switches that PyTorch programs set; XLA chooses kernels by itself.

Each is a module that can be imported by its own name, as PyTorch's are.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import mha as mha
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import nnpack as nnpack
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import quantized as quantized
from ._float32_precision import get_fp32_precision, set_fp32_precision
from ._module_properties import give_properties

if TYPE_CHECKING:
    fp32_precision: str
give_properties(
    __name__,
    fp32_precision=(
        partial(get_fp32_precision, "generic", "all"),
        partial(set_fp32_precision, "generic", "all"),
    ),
)


def set_flags(_fp32_precision: str | None = "none") -> tuple[str]:
    """Set the precision unless it is None, and return what it was."""
    before = get_fp32_precision("generic", "all")
    if _fp32_precision is not None:
        set_fp32_precision("generic", "all", _fp32_precision)
    return (before,)


@contextmanager
def flags(fp32_precision: str = "none") -> Iterator[None]:
    """Set the precision within the block."""
    before = set_flags(fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
