"""PyTorch's `torch.types`: names of types for annotations."""

from __future__ import annotations

import os
from builtins import bool as _bool
from builtins import bytes as _bytes
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

from ._core.dtypes import Size as Size
from ._core.dtypes import device as _device
from ._core.dtypes import dtype as _dtype
from ._core.memory_format import layout as _layout
from ._ops.creation.storage_objects import UntypedStorage as Storage
from ._tensor.tensor import Tensor as Tensor

__all__ = ["Device", "FileLike", "Number", "Storage"]

_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
_TensorOrOptionalTensors: TypeAlias = Tensor | Sequence[Tensor | None]
_TensorOrTensorsOrGradEdge: TypeAlias = Any  # a tensor, an edge of the graph, or several
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = Size | Sequence[int]

# A number that a program is compiled for is an int, a float or a bool here.
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
py_sym_types: tuple[type, ...] = ()

Number: TypeAlias = int | float | bool
_Number = (int, float, bool)
FileLike: TypeAlias = str | os.PathLike[str] | IO[bytes]
Device: TypeAlias = _device | str | int | None

_NAMED = (_bool, _bytes, _complex, _float, _int, _str, _dtype, _layout)
