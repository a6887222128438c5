"""PyTorch's `torch.optim.lbfgs`."""

from ._lbfgs import LBFGS as LBFGS

__all__ = ["LBFGS"]
