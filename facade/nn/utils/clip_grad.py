"""PyTorch's `torch.nn.utils.clip_grad`."""

from .._functional.clip_grad import clip_grad_norm as clip_grad_norm
from .._functional.clip_grad import clip_grad_norm_ as clip_grad_norm_
from .._functional.clip_grad import clip_grad_value_ as clip_grad_value_
from .._functional.clip_grad import clip_grads_with_norm_ as _clip_grads_with_norm_  # noqa: F401
from .._functional.clip_grad import get_total_norm as _get_total_norm  # noqa: F401

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_"]
