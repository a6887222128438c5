"""PyTorch's `torch.nn`."""

from . import functional as functional
from . import utils as utils
