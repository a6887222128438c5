"""PyTorch's `torch.nn`."""

import typing as _typing

from .._core import missing_names as _missing_names
from . import attention as attention
from . import common_types as common_types
from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parameter as parameter
from . import utils as utils
from ._factory_kwargs import factory_kwargs as factory_kwargs
from ._functional.linear_cross_entropy import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from .modules import *  # noqa: F403
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

if _typing.TYPE_CHECKING:
    from . import parallel as parallel
    from .parallel import DataParallel as DataParallel
_LATER = {"DataParallel": "parallel"}
__getattr__ = _missing_names.missing("leafax.nn", _missing_names.layer, ("parallel",), _LATER)
__dir__ = _missing_names.listing("leafax.nn", ("parallel", *_LATER))
__all__ = _missing_names.public(globals(), ("parallel", *_LATER))
