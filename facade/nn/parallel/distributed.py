"""PyTorch's `torch.nn.parallel.distributed`: a model that several processes train together.

A rank is a process, which computes its part of the batch on all its devices: a module that was
moved to none is spread over them, whole on each, and so are batches that they divide.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

from ..._core.absent.stand_ins import Block
from ..._core.dtypes import device
from ..._core.processes.collectives import broadcast_arrays
from ..._core.processes.group import ProcessGroup, default_group
from ..._core.processes.objects import gather_objects
from ..._core.trie import local
from ..._runtime.observation import observe
from ..._tracing.inputs import from_array
from ..modules.module import Module
from ._gradient_average import GradientAverage
from ._local_devices import free_devices, map_tensors, mesh_of, place_everywhere, split_batch

__all__ = ["DistributedDataParallel"]

_BOTH = (
    "Both `broadcast_buffers` and `forward_sync_buffers` were specified. `broadcast_buffers` is "
    "deprecated and its value is ignored when `forward_sync_buffers` is provided."
)
_OLDER = (
    "`broadcast_buffers` is deprecated. Use `forward_sync_buffers` instead. IMPORTANT: unlike "
    "`broadcast_buffers=False`, `forward_sync_buffers=False` still syncs buffers at init. If you "
    "rely on buffers NOT being synced at init (e.g. rank-local buffers), keep using "
    "`broadcast_buffers=False` until `init_sync_buffers` is available."
)


class DistributedDataParallel(Module):
    """Call a module with this process's part of a batch, and average gradients over processes.

    Parameters and buffers begin as those of the group's first process. After each backward pass
    the gradients are averages over the processes; within `no_sync` they are this process's.

    Args:
      module: the module.
      device_ids: the GPU that inputs are moved to, in a list.
      dim: of the batch.
      broadcast_buffers: the older name of `forward_sync_buffers`; False holds at the start too.
      init_sync: parameters and buffers begin as those of the first process.
      process_group: the processes, all for None.
      find_unused_parameters, static_graph: parameters may go without a gradient.
      device_mesh: a mesh of one dimension, in place of `process_group`.
      forward_sync_buffers: each pass begins with the buffers of the first process.
      output_device, bucket_cap_mb, check_reduction, gradient_as_bucket_view, mixed_precision,
        delay_all_reduce_named_params, param_to_hook_all_reduce, skip_all_reduce_unused_params,
        bucket_cap_mb_list, batched_grad_copy: not used.

    Raises:
      ValueError: there is no process group, or `device_ids` do not fit.
      RuntimeError: nothing is trained, or processes have different parameters.
    """

    module: Any

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True,
        process_group: ProcessGroup | None = None, bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False,
        delay_all_reduce_named_params: Any = None, param_to_hook_all_reduce: Any = None,
        mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None, batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if process_group and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            if device_mesh.ndim != 1:
                raise RuntimeError(f"Only 1D device mesh is supported, but got {device_mesh}.")
            process_group = device_mesh.get_group()
        self.process_group = default_group() if process_group is None else process_group
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(n, p) for n, p in module.named_parameters() if n not in ignored]
        if not any(p.requires_grad for _, p in named):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter "
                "that requires a gradient."
            )
        self._check_devices([p for _, p in named], device_ids, output_device)
        self.module = module
        self.dim = dim
        at_first = self._sync_buffers_by(broadcast_buffers, forward_sync_buffers)
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.require_backward_grad_sync = True
        devices = free_devices(module) if self.device_ids is None else ()
        self._mesh: Any = mesh_of(devices) if len(devices) > 1 else None
        self._average: GradientAverage | None = None
        self._synced = [b for n, b in module.named_buffers() if n not in ignored]
        if self.process_group.size() > 1:
            params = [p for _, p in named]
            if init_sync:
                self._check_shapes(params)
                self._take_over([*params, *(self._synced if at_first else ())])
            trained = [p for p in params if p.requires_grad]
            self._average = GradientAverage(
                trained, self.process_group, find_unused_parameters or static_graph
            )
        if self._mesh is not None:
            place_everywhere(module, self._mesh)

    def _sync_buffers_by(self, older: bool | None, newer: bool | None) -> bool:
        """Set whether passes begin with the first process's buffers; tell whether training does."""
        if older is not None:
            warnings.warn(_BOTH if newer is not None else _OLDER, FutureWarning, stacklevel=3)
        if newer is not None:
            self.forward_sync_buffers = newer
            return True
        self.forward_sync_buffers = older is None or older
        return self.forward_sync_buffers

    def _check_devices(self, params: list[Any], device_ids: Any, output_device: Any) -> None:
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        places = {p.device for p in params}
        if len(kinds := {d.type for d in places}) != 1:
            raise ValueError(
                "DistributedDataParallel's input module must be on the same type of devices, but "
                f"input module parameters locate in {kinds}."
            )
        self.device = params[0].device
        self.device_type = self.device.type
        if not device_ids or self.device_type == "cpu" or len(places) > 1:
            if device_ids or output_device:
                raise ValueError(
                    "DistributedDataParallel device_ids and output_device arguments only work "
                    "with single-device/multiple-device GPU modules or CPU modules, but got "
                    f"device_ids {device_ids}, output_device {output_device}, and module "
                    f"parameters {places}."
                )
            self.device_ids = None
        else:
            self.device_ids = [x if isinstance(x, int) else device(x).index for x in device_ids]

    def _check_shapes(self, params: list[Any]) -> None:
        """Raise, in all processes, if one has other parameters than the first."""
        group = self.process_group
        all_shapes = gather_objects(group, [tuple(p.shape) for p in params], "DDP")
        first = all_shapes[0]
        for rank, shapes in zip(group.ranks, all_shapes, strict=True):
            if len(shapes) != len(first):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {group.ranks[0]} has "
                    f"{len(first)} params, while rank {rank} has inconsistent {len(shapes)} params."
                )
            for i, (shape, expected) in enumerate(zip(shapes, first, strict=True)):
                if shape != expected:
                    raise RuntimeError(
                        f"[{rank}]: params[{i}] in this process with sizes {list(shape)} appears "
                        "not to match sizes of the same param in process 0."
                    )

    def _take_over(self, tensors: list[Any]) -> None:
        """Write into tensors those of the group's first process."""
        if not tensors:
            return
        arrays = [observe(t, "jax()") for t in tensors]
        found = broadcast_arrays(self.process_group, arrays, 0, "DistributedDataParallel")
        for t, array in zip(tensors, found, strict=True):
            t.data = from_array(array)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        if self._average is not None and self.require_backward_grad_sync:
            if local.mode.grad:
                self._average.expect()
            if self.forward_sync_buffers:
                self._take_over(self._synced)
        if self.device_ids is not None:
            where = device(self.device_type, self.device_ids[0])
            inputs, kwargs = map_tensors(lambda t: t.to(where), (inputs, kwargs))
        elif self._mesh is not None:
            inputs, kwargs = split_batch((inputs, kwargs), self._mesh, self.dim)
        return self.module(*inputs, **kwargs)

    @property
    def broadcast_buffers(self) -> bool:
        """True if buffers are those of the first process at the beginning of each pass."""
        return self.forward_sync_buffers

    def register_comm_hook(self, state: Any, hook: Any) -> None:
        """Raise: gradients are averaged as they are.

        Raises:
          NotImplementedError: always.
        """
        raise NotImplementedError(
            "leafax averages gradients as they are, in one program: there are no buckets for a hook"
        )

    def join(self, *args: Any, **kwargs: Any) -> Any:
        """Return a block for processes with different numbers of batches, which one has not.

        Raises:
          NotImplementedError: there are several processes.
        """
        if self.process_group.size() > 1:
            raise NotImplementedError(
                "leafax cannot join processes with different numbers of batches: leave the last "
                "ones out, as DistributedSampler(drop_last=True) does"
            )
        return Block()

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Average no gradients within a block; they add up until the next pass outside of it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before
