"""PyTorch's `torch.nn.utils`."""

import typing as _typing

from ..._core import missing_names as _missing_names
from .._functional.clip_grad import clip_grad_norm as clip_grad_norm
from .._functional.clip_grad import clip_grad_norm_ as clip_grad_norm_
from .._functional.clip_grad import clip_grad_value_ as clip_grad_value_
from .._functional.clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from .._functional.clip_grad import get_total_norm as get_total_norm
from . import rnn as rnn
from .convert_parameters import parameters_to_vector as parameters_to_vector
from .convert_parameters import vector_to_parameters as vector_to_parameters
from .fusion import fuse_conv_bn_eval as fuse_conv_bn_eval
from .fusion import fuse_conv_bn_weights as fuse_conv_bn_weights
from .fusion import fuse_linear_bn_eval as fuse_linear_bn_eval
from .fusion import fuse_linear_bn_weights as fuse_linear_bn_weights
from .init import skip_init as skip_init
from .memory_format import (
    convert_conv2d_weight_memory_format as convert_conv2d_weight_memory_format,
)
from .memory_format import (
    convert_conv3d_weight_memory_format as convert_conv3d_weight_memory_format,
)
from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

if _typing.TYPE_CHECKING:
    from . import parametrizations as parametrizations
    from . import parametrize as parametrize
_LATER = "parametrizations", "parametrize", "prune", "stateless"
__getattr__ = _missing_names.missing("leafax.nn.utils", lambda name: None, _LATER)
__dir__ = _missing_names.listing("leafax.nn.utils", _LATER)
__all__ = _missing_names.public(globals(), _LATER)
