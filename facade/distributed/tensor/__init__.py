"""PyTorch's `torch.distributed.tensor`: tensors on several devices."""

from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
from ._dtensor import DTensor as DTensor
from ._dtensor import distribute_module as distribute_module
from ._dtensor import distribute_tensor as distribute_tensor
from .placement_types import Partial as Partial
from .placement_types import Placement as Placement
from .placement_types import Replicate as Replicate
from .placement_types import Shard as Shard

__all__ = [
    "DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
    "distribute_tensor", "init_device_mesh",
]  # fmt: skip
