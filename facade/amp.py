"""PyTorch's `torch.amp`: autocast, the gradient scaler, and what custom functions need of them."""

from ._amp_functions import custom_bwd as custom_bwd
from ._amp_functions import custom_fwd as custom_fwd
from ._autocast_scope import autocast as autocast
from ._autocast_scope import compute_dtype as compute_dtype
from ._autocast_scope import is_autocast_available as is_autocast_available
from ._grad_scaler import GradScaler as GradScaler
