"""PyTorch's `torch.nn.parallel.data_parallel`: a batch on several devices."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ..._core.dtypes import device
from ..._core.jax_devices import list_gpus as _list_gpus
from ..modules.module import Module
from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

_ONE = (
    "A program of leafax runs on one device: DataParallel computes the whole batch on {}, and the "
    "other devices are not used."
)


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


class DataParallel(Module):
    """Call a module with a batch; the result is the module's.

    Without a GPU it only calls the module, as PyTorch's. On GPUs the whole batch is computed on the
    first device, because a program runs on one device; with more than one, a warning says so.

    Args:
      module: what is called.
      device_ids: the GPUs, all if None.
      output_device: where results are put, the first GPU if None.
      dim: of the batch.
    """

    module: Any

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
        if not _list_gpus():
            return
        self.dim = dim
        self.device_ids = _numbers(device_ids)
        first = self.device_ids[0]
        self.output_device = first if output_device is None else _numbers([output_device])[0]
        self.src_device_obj = device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)
        else:
            warnings.warn(_ONE.format(self.src_device_obj), stacklevel=2)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        args, named = self.scatter(inputs, kwargs, self.device_ids[:1])
        if not args and not named:
            return self.module()
        output = self.module(*args[0], **named[0])
        if self.output_device == self.device_ids[0]:
            return output
        return self.gather([output], self.output_device)

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
