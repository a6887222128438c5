"""PyTorch's `torch.amp`: autocast, the gradient scaler, and what custom functions need of them."""

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .._api.grad_scaler import GradScaler as GradScaler
from .._ops.autocast.custom_fwd import custom_bwd as custom_bwd
from .._ops.autocast.custom_fwd import custom_fwd as custom_fwd
from .._ops.autocast.scope import autocast as autocast
from .._ops.autocast.scope import compute_dtype as compute_dtype
from .._ops.autocast.scope import is_autocast_available as is_autocast_available
from . import autocast_mode as autocast_mode
from . import grad_scaler as grad_scaler

_end_at_callers(__name__)
