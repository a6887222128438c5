"""Tensors on several devices, by PyTorch's names for them.

Any tensor may lie on a mesh; it is a `DTensor` then, which is no class of its own. What is computed
of one lies as XLA decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leafax.functional.execution.several_devices import alone, several

from ..._core.handle import Handle
from ..._core.processes.collectives import broadcast_arrays
from ..._core.processes.group import default_group, is_initialized
from ..._core.trie import local
from ..._dispatch.jax_call import call_jax
from ..._runtime.observation import observe
from ..._runtime.placing import place_all
from ..._tensor.tensor import Tensor
from ..._tracing.inputs import from_array
from ..device_mesh import DeviceMesh
from ..sharding import sharding_for
from .placement_types import Placement, placements_of, spec_of


def sharding_at_rest(t: Any) -> NamedSharding | None:
    """Return a tensor's sharding over a mesh, None if it has none or is not computed yet."""
    array = t._array if t._array is not None or t._store is None else t._store.cell._array
    sharding = getattr(array, "sharding", None)
    return sharding if isinstance(sharding, NamedSharding) else None


def is_on_mesh(t: Any) -> bool:
    """Tell whether a tensor lies on a mesh, or will when it is computed."""
    return sharding_at_rest(t) is not None or isinstance(t._v.device, tuple)


def _sharding(t: Any, name: str) -> NamedSharding:
    if not is_on_mesh(t):
        raise AttributeError(f"'{type(t).__name__}' object has no attribute '{name}'")
    found = sharding_at_rest(t)
    if found is None:
        observe(t, "jax()")
        found = sharding_at_rest(t)
    if found is None:
        raise AttributeError(f"'{type(t).__name__}' object has no attribute '{name}'")
    return found


class _OnMesh:
    """An attribute or method of tensors on a mesh, which others do not have."""

    def __init__(self, name: str, read: Callable[[Any, NamedSharding], Any], method: bool) -> None:
        self.name, self.read, self.method = name, read, method

    def __get__(self, t: Any, cls: Any = None) -> Any:
        if t is None:
            if self.method and cls is DTensor:
                return lambda t, *args, **kwargs: self.__get__(t)(*args, **kwargs)
            raise AttributeError(f"type object '{cls.__name__}' has no attribute '{self.name}'")
        sharding = _sharding(t, self.name)
        if not self.method:
            return self.read(t, sharding)

        def method(*args: Any, **kwargs: Any) -> Any:
            return self.read(t, sharding)(*args, **kwargs)

        method.__name__ = self.name
        return method


_relaid: dict[NamedSharding, Callable[[Any], Any]] = {}  # the same function for the same step


def redistributed(t: Any, sharding: NamedSharding) -> Any:
    """Record that a tensor's data are brought to where a sharding says."""
    relay = _relaid.get(sharding)
    if relay is None:

        def relay(x: Any) -> Any:
            return jax.lax.with_sharding_constraint(x, sharding)

        _relaid[sharding] = relay
    return call_jax(relay, t)


def _full_tensor(t: Any, sharding: NamedSharding) -> Callable[..., Any]:
    def full_tensor(*, grad_placements: Sequence[Placement] | None = None) -> Any:
        """Return all of the tensor, on this process's first device, or whole on each if it has a
        graph. All processes call this.
        """
        whole = redistributed(t, NamedSharding(sharding.mesh, PartitionSpec()))
        if whole.requires_grad and local.mode.grad:
            return whole
        return from_array(alone(observe(whole, "jax()")))

    return full_tensor


def _to_local(t: Any, sharding: NamedSharding) -> Callable[..., Any]:
    def to_local(*, grad_placements: Sequence[Placement] | None = None) -> Any:
        """Return the part that this process's devices have: all of it in a run of one process."""
        array = observe(t, "jax()")
        if array.is_fully_addressable:
            return t
        part = multihost_utils.global_array_to_host_local_array(
            array, _mesh_of(sharding), sharding.spec
        )
        return from_array(part)

    return to_local


def _redistribute(t: Any, sharding: NamedSharding) -> Callable[..., Any]:
    def redistribute(
        device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
        *, async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> Any:  # fmt: skip
        """Return the tensor split as placements say; gradients go back."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        mesh = device_mesh or DeviceMesh.from_jax(_mesh_of(sharding))
        spec = spec_of(mesh, placements, len(t.shape))
        return redistributed(t, sharding_for(mesh.jax, spec, t.shape, "redistribute"))

    return redistribute


def _device_mesh(t: Any, sharding: NamedSharding) -> DeviceMesh:
    return DeviceMesh.from_jax(_mesh_of(sharding))


def _mesh_of(sharding: NamedSharding) -> Mesh:
    assert isinstance(sharding.mesh, Mesh)  # arrays lie on devices
    return sharding.mesh


_ATTRIBUTES: dict[str, tuple[Callable[[Any, NamedSharding], Any], bool]] = {
    "full_tensor": (_full_tensor, True), "to_local": (_to_local, True),
    "redistribute": (_redistribute, True), "device_mesh": (_device_mesh, False),
    "placements": (lambda t, sharding: placements_of(sharding), False),
}  # fmt: skip
for _name, (_read, _is_method) in _ATTRIBUTES.items():
    setattr(Tensor, _name, _OnMesh(_name, _read, _is_method))


class _IsOnMesh(type(Tensor)):  # type: ignore[misc]
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Handle) and is_on_mesh(x)


class DTensor(Tensor, metaclass=_IsOnMesh):
    """A tensor on several devices, for `isinstance`; `distribute_tensor` makes them."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Raise: there are no instances of this class alone.

        Raises:
          TypeError: always.
        """
        raise TypeError("DTensors are made by `distribute_tensor` and `DTensor.from_local`")

    @staticmethod
    def from_local(
        local_tensor: Any, device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None, *, run_check: bool = False,
        shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> Any:  # fmt: skip
        """Return the tensor of which each process has a part, that of its devices.

        Args:
          local_tensor: this process's part: all of it in a run of one process.
          device_mesh: the mesh; of all devices for None.
          placements: how it is split.
        """
        mesh = _mesh_or_all(device_mesh)
        spec = spec_of(mesh, placements, local_tensor.dim())
        if jax.process_count() == 1:
            sharding = sharding_for(mesh.jax, spec, local_tensor.shape, "local_tensor")
            if local_tensor.requires_grad:
                return redistributed(local_tensor, sharding)
            return from_array(placed(observe(local_tensor, "jax()"), sharding))
        several[:] = [True]
        array = np.asarray(observe(local_tensor, "numpy()"))
        with jax.enable_x64(True):
            joined = multihost_utils.host_local_array_to_global_array(array, mesh.jax, spec)
        return from_array(joined, requires_grad=local_tensor.requires_grad)


def distribute_tensor(
    tensor: Any, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None, *, src_data_rank: int | None = 0,
) -> Any:  # fmt: skip
    """Return a leaf tensor split over a mesh.

    Args:
      tensor: the whole tensor; that of process `src_data_rank` counts.
      device_mesh: the mesh; of all devices for None.
      placements: one for each dimension of the mesh, whole on each device for None.
      src_data_rank: None takes that all processes have the same.

    Returns:
      A tensor of the same shape.

    Raises:
      ValueError: not as many placements as the mesh has dimensions, or a length that the devices do
        not divide.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "`distribute_tensor` should be used to distribute leaf tensors! but found non-leaf "
            "tensor!"
        )
    mesh = _mesh_or_all(device_mesh)
    spec = spec_of(mesh, placements, tensor.dim())
    sharding = sharding_for(mesh.jax, spec, tensor.shape, "tensor")
    array = placed(observe(tensor, "jax()"), sharding, src_data_rank)
    return from_array(array, requires_grad=tensor.requires_grad)


def placed(array: Any, sharding: NamedSharding, source: int | None = 0) -> Any:
    """Return an array that all processes have on a mesh; that of one of them counts."""
    several[:] = [True]
    with jax.enable_x64(True):
        if jax.process_count() == 1:
            return jax.device_put(array, sharding, may_alias=False)
        if source is not None and is_initialized():
            (array,) = broadcast_arrays(default_group(), [array], source, "distribute_tensor")
        data = np.asarray(array)
        return jax.make_array_from_callback(data.shape, sharding, lambda at: data[at])


def distribute_tensors(tensors: Sequence[tuple[Any, NamedSharding]]) -> None:
    """Bring tensors to where shardings say; they stay the same, and optimizers' state follows."""
    if jax.process_count() > 1:
        for t, sharding in tensors:
            t.data = from_array(placed(observe(t, "jax()"), sharding))
    place_all(tensors)


def _mesh_or_all(mesh: DeviceMesh | None) -> DeviceMesh:
    if mesh is not None:
        return mesh
    devices = jax.devices()
    return DeviceMesh.from_jax(jax.make_mesh((len(devices),), ("dim_0",), devices=devices))


def distribute_module(
    module: Any, device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[..., Any] | None = None, output_fn: Callable[..., Any] | None = None,
) -> Any:  # fmt: skip
    """Place a module's tensors on a mesh: by a function, and whole on each device where it did not.

    Args:
      partition_fn: called with the name of each submodule, itself and the mesh; it places
        parameters by `register_parameter`.
      input_fn: called with the module, its inputs and the mesh before it is called.
      output_fn: called with the module, its outputs and the mesh after it was called.
    """
    mesh = _mesh_or_all(device_mesh)
    if partition_fn is not None:
        for name, part in module.named_modules():
            partition_fn(name, part, mesh)
    whole = NamedSharding(mesh.jax, PartitionSpec())
    left = [t for t in (*module.parameters(), *module.buffers()) if not is_on_mesh(t)]
    distribute_tensors([(t, whole) for t in left])
    if input_fn is not None:
        module.register_forward_pre_hook(lambda m, inputs: input_fn(m, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda m, inputs, outputs: output_fn(m, outputs, mesh))
    return module
