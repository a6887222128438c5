"""PyTorch's `torch.amp.autocast_mode`."""

from .._ops.autocast.custom_fwd import custom_bwd as custom_bwd
from .._ops.autocast.custom_fwd import custom_fwd as custom_fwd
from .._ops.autocast.scope import autocast as autocast
from .._ops.autocast.scope import is_autocast_available as is_autocast_available
