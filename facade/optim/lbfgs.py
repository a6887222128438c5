"""PyTorch's `torch.optim.lbfgs`."""

from ._rules.lbfgs import LBFGS as LBFGS

__all__ = ["LBFGS"]
