"""PyTorch's `torch.nn.attention.bias`: causal biases."""

from ._causal_bias import CausalBias as CausalBias
from ._causal_bias import CausalVariant as CausalVariant
from ._causal_bias import causal_lower_right as causal_lower_right
from ._causal_bias import causal_upper_left as causal_upper_left

__all__ = ["causal_upper_left", "causal_lower_right", "CausalVariant", "CausalBias"]
