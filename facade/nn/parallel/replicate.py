"""PyTorch's `torch.nn.parallel.replicate`: a module on each of several devices."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

__all__ = ["replicate"]


def replicate(network: Any, devices: Sequence[Any], detach: bool = False) -> list[Any]:
    """Copy a module to each device; gradients reach the parameters that it has.

    Args:
      devices: devices, or numbers of GPUs.
      detach: cut the copies off.
    """
    return [_copied(network, where, detach) for where in devices]


def _copied(network: Any, where: Any, detach: bool) -> Any:
    moved: dict[int, Any] = {}  # a tied parameter is copied once

    def move(t: Any) -> Any:
        made = moved.get(id(t))
        if made is None:
            made = t.detach() if detach or not t.requires_grad else t.view_as(t)
            made = moved[id(t)] = made.to(where)
        return made

    modules = list(network.modules())
    copies = {module: module._replicate_for_data_parallel() for module in modules}
    for module, copy in copies.items():
        copy._former_parameters = OrderedDict()
        for name, child in module._modules.items():
            copy._modules[name] = None if child is None else copies[child]
        for name, param in module._parameters.items():
            if param is None:
                copy._parameters[name] = None
            else:  # a plain attribute: it is no leaf
                copy._former_parameters[name] = move(param)
                setattr(copy, name, copy._former_parameters[name])
        for name, buffer in module._buffers.items():
            if buffer is not None:
                copy._buffers[name] = move(buffer)
    return copies[network]
