"""PyTorch's `torch.utils` on JAX."""

from importlib import import_module
from typing import Any

from .. import _missing
from . import _pytree as _pytree
from . import checkpoint as checkpoint
from . import deterministic as deterministic
from . import dlpack as dlpack
from . import hooks as hooks

_say = _missing.missing("leafax.utils", _missing.UTILS.get)


def __getattr__(name: str) -> Any:
    if name == "data":  # as late as it is used: it takes Python's `multiprocessing` along
        return import_module(".data", __name__)
    return _say(name)
