"""PyTorch's `torch.distributed.tensor`: classes for `isinstance`; a tensor is on one device."""

from ..._core.absent.stand_ins import refuse, refuse_class
from ..._tensor.tensor import Tensor as _Tensor
from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "init_device_mesh",
]  # fmt: skip

_ONE = "one device computes so far"
DTensor = refuse_class("distributed.tensor.DTensor", _ONE, _Tensor)
distribute_tensor = refuse("distributed.tensor.distribute_tensor", _ONE)
distribute_module = refuse("distributed.tensor.distribute_module", _ONE)
