"""PyTorch's `torch.nn`."""

from .. import _missing
from . import attention as attention
from . import functional as functional
from . import grad as grad
from . import init as init
from . import utils as utils
from ._linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions

__getattr__ = _missing.missing("leafax.nn", _missing.layer)
