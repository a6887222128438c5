"""PyTorch's `torch.amp`."""

from ._grad_scaler import GradScaler as GradScaler
