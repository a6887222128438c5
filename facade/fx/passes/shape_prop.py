"""PyTorch's `torch.fx.passes.shape_prop`: shapes and dtypes of a graph's values, by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..._core.handle import Handle
from ..._core.memory_format import channels_last, channels_last_3d, contiguous_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """Facts of a tensor, in the notes of the node that makes it."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    layout = None
    if include_contiguity:
        for kind in (contiguous_format, channels_last, channels_last_3d):
            if result.is_contiguous(memory_format=kind):
                layout = kind
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), layout, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and notes of each node the facts of the tensors that it makes.

    Args:
      gm: the module of the graph.

    >>> import leafax as torch
    >>> from leafax.fx.passes.shape_prop import ShapeProp
    >>> traced = torch.fx.symbolic_trace(lambda x: x @ x)
    >>> _ = ShapeProp(traced).propagate(torch.ones(2, 2))
    >>> [n.meta["tensor_meta"].shape for n in traced.graph.nodes]
    [torch.Size([2, 2]), torch.Size([2, 2]), torch.Size([2, 2])]
    """

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)
        self.fake_mode = fake_mode

    def run_node(self, n: Node) -> Any:
        """Run one node and note what it made."""
        result = super().run_node(n)
        found = False

        def note(x: Any) -> Any:
            nonlocal found
            if isinstance(x, Handle):
                found = True
                return _extract_tensor_metadata(x)
            return x

        facts = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = facts
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these arguments and return its result."""
        return super().run(*args)
