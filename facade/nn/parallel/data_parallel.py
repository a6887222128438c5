"""PyTorch's `torch.nn.parallel.data_parallel`: a batch on several devices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import jax

from ..._core.dtypes import device
from ..._core.jax_devices import list_gpus as _list_gpus
from ..modules.module import Module
from ._local_devices import map_tensors, mesh_of, place_everywhere, split_batch
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _numbers(device_ids: Sequence[Any] | None) -> list[int]:
    """Return the numbers of the GPUs that are asked for, all for None."""
    if device_ids is None:
        return list(range(len(_list_gpus())))
    return [x if isinstance(x, int) else device(x).index or 0 for x in device_ids]


def _check_place(module: Any, where: Any) -> None:
    for t in chain(module.parameters(), module.buffers()):
        if t.device != where:
            raise RuntimeError(
                "module must have its parameters and buffers "
                f"on device {where} (device_ids[0]) but found one of "
                f"them on device: {t.device}"
            )


def _devices(device_ids: Sequence[int] | None) -> tuple[Any, ...]:
    """List the devices that a batch is split over; where there is no GPU, those that JAX has."""
    found = _list_gpus() or jax.local_devices()
    numbers = range(len(found)) if device_ids is None else device_ids
    return tuple(found[i] for i in numbers) if all(i < len(found) for i in numbers) else ()


class DataParallel(Module):
    """Call a module with a batch that is split over the devices of this process.

    Parameters lie whole on each device. XLA computes each part of the batch on its device, within
    the one program of a step, and sums the gradients: unlike PyTorch's, layers such as batch
    normalization see the whole batch. A batch that the devices do not divide is computed on each.

    Args:
      module: what is called.
      device_ids: the GPUs, all if None.
      output_device: where results are put; by default they stay where they are.
      dim: of the batch.
    """

    module: Any
    dim = 0
    _spread: list[int] | None = None  # numbers of devices that were asked for

    def __init__(
        self,
        module: Any,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids: list[int] = []
        gpus = _list_gpus()
        if gpus:
            self.device_ids = _numbers(device_ids)
            first = self.device_ids[0]
            self.output_device = first if output_device is None else _numbers([output_device])[0]
            self.src_device_obj = device("cuda", first)
        if device_ids is not None:
            self._spread = _numbers(device_ids)
        devices = _devices(self._spread)
        if gpus or len(devices) > 1:  # as PyTorch, which has no such field without GPUs
            self.dim = dim
        if len(devices) > 1:
            place_everywhere(module, mesh_of(devices))
        elif gpus:
            module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        devices = _devices(self._spread)
        if self.device_ids:
            _check_place(self.module, self.src_device_obj)
        if len(devices) > 1:
            inputs, kwargs = split_batch((inputs, kwargs), mesh_of(devices), self.dim)
        elif self.device_ids:
            where = self.src_device_obj
            inputs, kwargs = map_tensors(lambda t: t.to(where), (inputs, kwargs))
        output = self.module(*inputs, **kwargs)
        if not self.device_ids or self.output_device == self.device_ids[0]:
            return output
        return map_tensors(lambda t: t.to(device("cuda", self.output_device)), output)

    def replicate(self, module: Any, device_ids: Sequence[Any]) -> list[Any]:
        """Copy the module to each device."""
        return replicate(module, device_ids)

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Sequence[Any]) -> Any:
        """Split the arguments, a part for each device."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas: Sequence[Any], inputs: Any, kwargs: Any) -> list[Any]:
        """Call each copy with its part."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """Join the results."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Any,
    inputs: Any,
    device_ids: Sequence[Any] | None = None,
    output_device: Any = None,
    dim: int = 0,
    module_kwargs: Any = None,
) -> Any:
    """Call `module` with a batch on GPUs, as `DataParallel` does.

    Raises:
      RuntimeError: there is no GPU, or the module is not on the first.
    """
    if not isinstance(inputs, tuple):
        inputs = () if inputs is None else (inputs,)
    if not _list_gpus():
        raise RuntimeError("device type could not be determined")
    _check_place(module, device("cuda", _numbers(device_ids)[0]))
    made = DataParallel(module, device_ids, output_device, dim)
    return made(*inputs, **({} if module_kwargs is None else module_kwargs))
