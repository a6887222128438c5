"""PyTorch's `torch.amp.grad_scaler`."""

from .._api.grad_scaler import GradScaler as GradScaler
