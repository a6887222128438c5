"""PyTorch's `torch._subclasses.fake_tensor`: no tensor is a fake."""

from __future__ import annotations

from typing import Any

from .._core.absent.stand_ins import refuse_class
from .._tensor.tensor import Tensor as _Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]

_SHAPES = "`leafax.eval_shape` tells the shapes of a function's results"
FakeTensor = refuse_class("_subclasses.fake_tensor.FakeTensor", _SHAPES, _Tensor)
FakeTensorMode = refuse_class("_subclasses.fake_tensor.FakeTensorMode", _SHAPES)


def is_fake(x: Any) -> bool:
    """Return False: a tensor that is recorded has data once somebody looks."""
    return False
