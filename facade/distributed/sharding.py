"""Tensors of a model, and batches, on a mesh of devices.

XLA splits the computation: a program whose inputs are split over a mesh runs on all its devices,
and moves data between them where that is needed. Nothing else is asked of a script.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from leafax.functional.execution.several_devices import refuse_explicit_mesh, several

from .._core.handle import Handle
from .._ops.creation.from_data import as_tensor
from .._runtime.observation import observe
from .._runtime.placing import in_auto_mode, place_all, shortened
from .._runtime.placing import sharding_of as sharding_of
from .._tracing.inputs import from_array


def sharding_for(mesh: Any, spec: Any, shape: Iterable[int], name: str) -> NamedSharding:
    """Return the sharding of one tensor, if its shape can be split so.

    Args:
      mesh: a `jax.sharding.Mesh`. One whose axes are explicit is taken as an automatic one.
      spec: a `PartitionSpec`: for each dimension the axis or axes that split it, or None; what it
        does not reach is whole on each device.
      shape: of the tensor.
      name: of the tensor, for the messages.

    Returns:
      The sharding, over a mesh in automatic mode.

    Raises:
      TypeError: `mesh` or `spec` is something else.
      ValueError: more entries than dimensions, an axis that the mesh does not have, that is
        named twice, or that does not divide the dimension.

    >>> import jax
    >>> from jax.sharding import PartitionSpec as P
    >>> from leafax.distributed.sharding import sharding_for
    >>> sharding_for(jax.make_mesh((1,), ("data",)), P("data"), (4, 3), "x").spec == P('data')
    True
    """
    check_mesh(mesh)
    shape = tuple(shape)
    if spec is None:
        spec = PartitionSpec()
    if not isinstance(spec, PartitionSpec):
        raise TypeError(
            f"`{name}`: expected a `jax.sharding.PartitionSpec`, got `{type(spec).__name__}`: "
            f"write P('axis', None) for it, one entry a dimension"
        )
    what = f"`{name}` of shape {shape}: {spec_text(spec)}"
    if len(spec) > len(shape):
        raise ValueError(
            f"{what} has {_count(len(spec), 'entry', 'entries')} for "
            f"{_count(len(shape), 'dimension')}: shorten it, or give such tensors a rule of their "
            f"own before this one"
        )
    sizes = dict(zip(mesh.axis_names, mesh.devices.shape, strict=True))
    taken: set[str] = set()
    for d, entry in enumerate(spec):
        axes = axes_of(entry)
        for axis in axes:
            if axis not in sizes:
                known = ", ".join(f"{n!r} of {size}" for n, size in sizes.items())
                raise ValueError(f"{what} names the axis {axis!r}, and the mesh has {known}")
            if axis in taken:
                raise ValueError(
                    f"{what} names the axis {axis!r} twice: it can split one dimension only"
                )
            taken.add(axis)
        parts = math.prod(sizes[axis] for axis in axes)
        if shape[d] % parts:
            raise ValueError(
                f"{what} splits dimension {d} of length {shape[d]} in {parts}, which does not "
                f"divide it: split another dimension, pad it to "
                f"{-(-shape[d] // parts) * parts}, or give such tensors P() by a rule before "
                f"this one"
            )
    made: NamedSharding = in_auto_mode(NamedSharding(mesh, shortened(spec)))
    return made


def check_mesh(mesh: Any) -> None:
    """Raise if something is no mesh of devices, or another one is in the way.

    Args:
      mesh: anything.

    Raises:
      TypeError: it is no `jax.sharding.Mesh`.
      RuntimeError: a mesh with explicit axes is set.

    >>> from leafax.distributed.sharding import check_mesh
    >>> check_mesh(8)
    Traceback (most recent call last):
    ...
    TypeError: expected a `jax.sharding.Mesh`, got `int`: make one by jax.make_mesh(...)
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(
            f"expected a `jax.sharding.Mesh`, got `{type(mesh).__name__}`: make one by "
            f"jax.make_mesh(({len(jax.devices())},), ('data',))"
        )
    refuse_explicit_mesh()


def place_tensors(tensors: Mapping[str, Any], mesh: Any, specs: Mapping[str, Any]) -> None:
    """Place named tensors on a mesh; their gradients and optimizers' state follow.

    All specs are checked before anything is moved.

    Args:
      tensors: by name.
      mesh: a `jax.sharding.Mesh`.
      specs: a `PartitionSpec` by name; what has none lies whole on each device.

    Raises:
      TypeError, ValueError: as of `sharding_for`; then nothing was moved.

    >>> import jax, leafax
    >>> from jax.sharding import PartitionSpec as P
    >>> from leafax.distributed.sharding import place_tensors
    >>> w = leafax.ones(4, 3)
    >>> place_tensors({"w": w}, jax.make_mesh((1,), ("data",)), {"w": P("data")})
    >>> w.jax().sharding.spec == P('data')
    True
    """
    check_mesh(mesh)
    shardings = {
        name: sharding_for(mesh, specs.get(name), t.shape, name) for name, t in tensors.items()
    }
    place_all([(t, shardings[name]) for name, t in tensors.items()])


def shard_batch(mesh: Any, spec: Any, *batch: Any) -> Any:
    """Split tensors over a mesh, usually a batch by its first dimension.

    In a run of several processes each gives its own part of the batch.

    Args:
      mesh: a `jax.sharding.Mesh`.
      spec: a `PartitionSpec`, `P("data")` for instance.
      batch: tensors, arrays, or lists, tuples and dicts of them.

    Returns:
      The same, of tensors on the mesh; a tuple if several were given.

    Raises:
      TypeError, ValueError: as of `sharding_for`.

    >>> import jax, leafax
    >>> from jax.sharding import PartitionSpec as P
    >>> from leafax.distributed.sharding import shard_batch
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> x, y = shard_batch(mesh, P("data"), leafax.ones(4, 3), leafax.zeros(4))
    >>> y.jax().sharding.spec == P('data')
    True
    """
    check_mesh(mesh)
    found = tuple([_split(mesh, spec, x, f"batch[{i}]") for i, x in enumerate(batch)])
    return found[0] if len(found) == 1 else found


def _split(mesh: Any, spec: Any, x: Any, name: str) -> Any:
    if isinstance(x, Mapping):
        parts = {k: _split(mesh, spec, v, f"{name}[{k!r}]") for k, v in x.items()}
        return parts if type(x) is dict else type(x)(parts)  # type: ignore[call-arg]
    if isinstance(x, (list, tuple)):
        items = [_split(mesh, spec, v, f"{name}[{i}]") for i, v in enumerate(x)]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if not isinstance(x, (Handle, jax.Array, np.ndarray)):
        return x
    t = as_tensor(x)
    several[:] = [True]
    with jax.enable_x64(True):
        if jax.process_count() > 1:
            whole = _over_processes(mesh, spec, t, name)
        else:
            sharding = sharding_for(mesh, spec, t.shape, name)
            whole = jax.device_put(observe(t, "jax()"), sharding)
    return from_array(whole, requires_grad=t.requires_grad)


def _over_processes(mesh: Any, spec: Any, t: Any, name: str) -> Any:
    """Join the parts of a batch that the processes of a run have."""
    array = observe(t, "numpy()")
    if isinstance(array, jax.Array) and not array.is_fully_addressable:
        return jax.device_put(array, sharding_for(mesh, spec, t.shape, name))
    sharding = in_auto_mode(NamedSharding(mesh, spec if spec is not None else PartitionSpec()))
    return jax.make_array_from_process_local_data(sharding, np.asarray(array))


def axes_of(entry: Any) -> tuple[str, ...]:
    """Return the axes of a mesh that an entry of a spec names.

    Args:
      entry: for one dimension: an axis, several in a tuple, or None.

    Returns:
      Their names, none for what nothing splits.

    >>> from leafax.distributed.sharding import axes_of
    >>> axes_of(None), axes_of("data"), axes_of(("data", "model"))
    ((), ('data',), ('data', 'model'))
    """
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def spec_text(sharding: Any) -> str:
    """Return how a sharding splits a tensor, in short.

    Args:
      sharding: a `NamedSharding`, or its spec, or any other sharding.

    Returns:
      A spec as it is written, or what the sharding calls itself.

    >>> from jax.sharding import PartitionSpec as P
    >>> from leafax.distributed.sharding import spec_text
    >>> spec_text(P("data", None))
    "P('data', None)"
    """
    spec = getattr(sharding, "spec", sharding)
    return f"P({', '.join(map(repr, spec))})" if isinstance(spec, PartitionSpec) else str(spec)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
