"""Models and batches on a mesh of devices, for an `nn.Module` as for a Flax model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafax.distributed.sharding import shard_batch as shard_batch
from leafax.functional.execution.tracebacks import end_at_callers

from ._modules.module import model_of


def shard(model: Any, mesh: Any, rules: Mapping[Any, Any] | None = None) -> Any:
    """Place a model's tensors on a mesh of devices, split as rules say; return the model.

    Gradients, the state of optimizers that exist or will be made, and whatever is written into
    these tensors lie as they do. Steps stay one program, which XLA splits over the devices: it
    sums the gradients of what lies whole on each, and gathers what is split where it is needed.

    Args:
      model: a `leafax.nn.Module`, or a model of `adapters.linen` or `adapters.nnx`.
      mesh: a `jax.sharding.Mesh`. One whose axes are explicit, as `jax.make_mesh` makes it, is
        taken as an automatic one.
      rules: for each pattern of those that `freeze` takes (or a tuple of them) a
        `jax.sharding.PartitionSpec`, or a function `(path, tensor) -> PartitionSpec`. The first
        that selects a tensor counts. A tensor that none selects lies whole on each device.

    Returns:
      The model itself.

    Raises:
      TypeError: `model` is neither, `mesh` is no mesh, or a spec is none.
      ValueError: a pattern that matches nothing, or nothing that is left, and specs that do not
        fit a tensor's shape or the mesh, with its path; then nothing was moved.

    >>> import jax
    >>> from jax.sharding import PartitionSpec as P
    >>> from leafax import nn
    >>> from leafax.adapters.sharding import shard
    >>> mesh = jax.make_mesh((1,), ("data",))
    >>> net = shard(nn.Linear(4, 2), mesh, {"weight": P(None, "data")})
    >>> net.weight.detach().jax().sharding.spec == P(None, 'data')
    True
    """
    model_of(model).shard(mesh, rules)
    return model


end_at_callers(__name__)
