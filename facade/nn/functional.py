"""PyTorch's `torch.nn.functional`."""
from .._table import in_namespace
globals().update(in_namespace("nn.functional"))
