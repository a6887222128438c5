"""PyTorch's `torch.cuda.comm`: copies between GPUs, which one process of leafax does not make."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse

__all__ = ["broadcast", "gather", "reduce_add", "scatter"]

_ONE = "one device computes: `Tensor.to` moves a tensor"
broadcast = refuse("cuda.comm.broadcast", _ONE)
reduce_add = refuse("cuda.comm.reduce_add", _ONE)
scatter = refuse("cuda.comm.scatter", _ONE)
gather = refuse("cuda.comm.gather", _ONE)
