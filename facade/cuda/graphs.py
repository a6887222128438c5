"""PyTorch's `torch.cuda.graphs`: names to import; XLA launches a step's kernels by itself."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse, refuse_class

__all__ = [
    "CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing",
    "make_graphed_callables",
]  # fmt: skip

_STEP = "a training step is one program already; leave the graph out"

CUDAGraph = refuse_class("cuda.CUDAGraph", _STEP, module="leafax.cuda.graphs")
graph = refuse_class("cuda.graph", _STEP, module="leafax.cuda.graphs")
make_graphed_callables = refuse("cuda.make_graphed_callables", _STEP)
graph_pool_handle = refuse("cuda.graph_pool_handle", _STEP)


def is_current_stream_capturing() -> bool:
    """Return False: nothing captures graphs."""
    return False
