"""Descriptions of the gradients that a node takes, and its edges."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.dtypes import default_float

from ..._core.dtypes import device, of


class InputMetadata:
    """One gradient that a node takes, as the engine knows it.

    Attributes:
      shape (a list), dtype, device: of the output that it belongs to; no dims and the default
        dtype for one that is no tensor.
      is_nested_tensor, is_cpp_nested_tensor: False, leafax has no nested tensors.
    """

    is_nested_tensor = is_cpp_nested_tensor = False

    def __init__(self, value: Any) -> None:
        self.shape = [] if value is None else list(value.shape)
        self.dtype = of(default_float() if value is None else value.dtype)
        self.device = device("cpu")


class Edges(list[Any]):
    """A node's edges, with the place in order of what recorded them.

    Attributes:
      serial: the number of the trace.
      depth: its place in the trace, if the node's state does not tell.
    """

    serial: int = 0
    depth: float = 0
