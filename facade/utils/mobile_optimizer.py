"""PyTorch's `torch.utils.mobile_optimizer`: a name to import."""

from .._core.absent.stand_ins import refuse

__all__ = ["optimize_for_mobile"]

optimize_for_mobile = refuse(
    "utils.mobile_optimizer.optimize_for_mobile",
    "`leafax.functional.lower` exports what was recorded as a JAX function",
)
