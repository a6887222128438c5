"""PyTorch's `torch.utils` on JAX."""

from .. import _missing
from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import deterministic as deterministic
from . import dlpack as dlpack
from . import hooks as hooks

# `data` takes Python's `multiprocessing` along.
__getattr__ = _missing.missing("leafax.utils", _missing.UTILS.get, later=("data", "tensorboard"))
