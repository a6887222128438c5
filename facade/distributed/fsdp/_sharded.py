"""Modules whose parameters are split over devices, and called with batches that are split.

Without a mesh the devices are those of this process: each process has a whole model over its own
devices, takes its own part of a batch, and gradients are averaged over the processes (PyTorch's
`HYBRID_SHARD`). A mesh over the devices of several processes splits the model over all of them; its
batches are those of all processes together then, as `leafax.adapters.shard_batch` makes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ..._core.handle import Handle
from ..._core.processes.group import default_group, is_initialized
from ..._core.trie import local
from ..._runtime.placing import shortened
from ...nn.modules.module import Module
from ...nn.parallel._gradient_average import GradientAverage
from ...nn.parallel._local_devices import map_tensors, mesh_of, split_batch
from ..device_mesh import DeviceMesh
from ..sharding import axes_of
from ..tensor._dtensor import distribute_tensors, is_on_mesh, sharding_at_rest

_FOREIGN = (
    "the module lies on devices of several processes, and is called with a tensor of this one: "
    "give all processes' parts as one batch, by `leafax.adapters.shard_batch(mesh.jax, P({}), x)`, "
    "and the targets too"
)


class Sharded:
    """The parameters of one module on a mesh.

    Args:
      module: the module.
      mesh: one dimension splits parameters; of two the second does, and the first has copies. None
        for the devices of this process.
      split: False leaves the parameters whole on each device.
      dim_of: tells by which dimension a parameter is split; the first that can be for None.
      ignored: parameters that stay where they are.

    Attributes:
      is_root: no other module that is split has this one.
      syncs: gradients are averaged over processes.
    """

    def __init__(
        self,
        module: Module,
        mesh: DeviceMesh | None,
        split: bool = True,
        dim_of: Callable[[Any], Any] | None = None,
        ignored: Iterable[Any] = (),
    ) -> None:
        if mesh is not None and mesh.ndim > 2:
            raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
        self.mesh = mesh or DeviceMesh.from_jax(mesh_of(tuple(jax.local_devices())))
        own = jax.process_index(self.mesh.jax.devices.flat[0].client)
        self.spans_processes = any(d.process_index != own for d in self.mesh.jax.devices.flat)
        self.is_root = True
        self.syncs = True
        self._module = module
        self._average: GradientAverage | None = None
        left = {id(p) for p in ignored}
        placed = []
        for p in module.parameters():
            if id(p) not in left and not self._splits(p):
                dim = None if dim_of is None else dim_of(p)
                placed.append((p, self._sharding(p, getattr(dim, "dim", dim), split)))
        whole = NamedSharding(self.mesh.jax, PartitionSpec())
        placed += [(b, whole) for b in module.buffers() if not is_on_mesh(b)]
        distribute_tensors(placed)
        for part in module.modules():
            inner = vars(part).get("_fsdp")
            if inner is not None:
                inner.is_root = False

    def _splits(self, p: Any) -> bool:
        """Tell whether the mesh splits a parameter already: that of an inner module."""
        found = sharding_at_rest(p)
        if found is None or found.mesh != self.mesh.jax:
            return False
        return any(self.mesh.axes[-1] in axes_of(entry) for entry in found.spec)

    def _sharding(self, p: Any, dim: int | None, split: bool) -> NamedSharding:
        """Return where a parameter goes: split along a dimension that the devices divide."""
        found, mesh = sharding_at_rest(p), self.mesh.jax
        shape, axis = tuple(p.shape), self.mesh.axes[-1]
        spec: list[tuple[str, ...]] = [()] * len(shape)
        if found is not None and found.mesh == mesh:
            for i, entry in enumerate(found.spec):
                spec[i] = axes_of(entry)
        longest = sorted(range(1, len(shape)), key=lambda i: -shape[i])
        dims = [*range(len(shape))[:1], *longest] if dim is None else [dim]
        for d in dims if split else ():
            parts = math.prod(mesh.shape[a] for a in (*spec[d], axis))
            if shape[d] and shape[d] % parts == 0:
                spec[d] = (*spec[d], axis)
                break
        return NamedSharding(mesh, shortened(PartitionSpec(*spec)))

    def before_call(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of a call of the module, its batch split; only for the outermost."""
        if not self.is_root:
            return args, kwargs
        if self.spans_processes:
            map_tensors(self._check, (args, kwargs))
            return args, kwargs
        if local.mode.grad and self.syncs and is_initialized() and default_group().size() > 1:
            if self._average is None:
                trained = [p for p in self._module.parameters() if p.requires_grad]
                self._average = GradientAverage(trained, default_group(), unused=True)
            self._average.expect()
        found: tuple[Any, Any] = split_batch((args, kwargs), self.mesh.jax, 0, self.mesh.axes)
        return found

    def _check(self, t: Handle) -> Handle:
        if not is_on_mesh(t) and t.dim():
            raise ValueError(_FOREIGN.format(", ".join(map(repr, self.mesh.axes))))
        return t
