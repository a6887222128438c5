"""PyTorch's `torch.autograd.function`: writing one's own differentiable functions."""

from ._context import FunctionCtx as FunctionCtx
from ._function import Function as Function
from ._function import FunctionMeta as FunctionMeta
from ._function import InplaceFunction as InplaceFunction
from ._function import once_differentiable as once_differentiable
from ._nested_io import NestedIOFunction as NestedIOFunction

BackwardCFunction = FunctionCtx
