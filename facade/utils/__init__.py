"""PyTorch's `torch.utils` on JAX."""

import typing as _typing

from .._core import missing_names as _missing_names
from . import checkpoint as checkpoint
from . import deterministic as deterministic
from . import dlpack as dlpack
from . import hooks as hooks

if _typing.TYPE_CHECKING:
    from . import _pytree as _pytree
# `data` takes Python's `multiprocessing` along.
__getattr__ = _missing_names.missing(
    "leafax.utils",
    _missing_names.UTILS.get,
    later=("_contextlib", "_device", "_foreach_utils", "_python_dispatch", "_pytree", "_triton")
    + ("collect_env", "cpp_extension", "data", "flop_counter", "mobile_optimizer", "model_zoo")
    + ("tensorboard", "weak"),
)
