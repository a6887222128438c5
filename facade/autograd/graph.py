"""PyTorch's `torch.autograd.graph`: the graph's nodes and edges."""

from .._graph import Node as Node
from ._backward import GradientEdge as GradientEdge
from ._edges import get_gradient_edge as get_gradient_edge
from ._edges import increment_version as increment_version
