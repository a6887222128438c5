"""PyTorch's `torch.nn.utils`."""

from ... import _missing
from .._clip_grad import clip_grad_norm as clip_grad_norm
from .._clip_grad import clip_grad_norm_ as clip_grad_norm_
from .._clip_grad import clip_grad_value_ as clip_grad_value_
from .._clip_grad import clip_grads_with_norm_ as clip_grads_with_norm_
from .._clip_grad import get_total_norm as get_total_norm
from .._vectors import parameters_to_vector as parameters_to_vector
from .._vectors import vector_to_parameters as vector_to_parameters
from . import rnn as rnn

__getattr__ = _missing.missing("leafax.nn.utils", lambda name: None, ("stateless",))
