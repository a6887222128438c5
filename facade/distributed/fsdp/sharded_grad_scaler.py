"""PyTorch's `torch.distributed.fsdp.sharded_grad_scaler`: of one process, a plain scaler."""

from ...amp import GradScaler


class ShardedGradScaler(GradScaler):
    """Scale a loss and unscale its gradients, see `GradScaler`."""
