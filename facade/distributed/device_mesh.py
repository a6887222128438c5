"""PyTorch's `torch.distributed.device_mesh`: names to import; several devices are not used yet."""

from __future__ import annotations

from .._core.absent.stand_ins import refuse, refuse_class

__all__ = ["DeviceMesh", "init_device_mesh"]

_ONE = "one device computes so far"
DeviceMesh = refuse_class("distributed.device_mesh.DeviceMesh", _ONE)
init_device_mesh = refuse("distributed.device_mesh.init_device_mesh", _ONE)
