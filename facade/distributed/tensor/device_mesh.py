"""PyTorch's `torch.distributed.tensor.device_mesh`."""

from ..device_mesh import DeviceMesh as DeviceMesh
from ..device_mesh import init_device_mesh as init_device_mesh
