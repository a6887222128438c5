"""PyTorch's `torch.distributed.tensor.experimental`: tensors of a mesh beside others."""

from __future__ import annotations

from ...._core.absent.stand_ins import Block, refuse

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


def implicit_replication() -> Block:
    """Return a block that changes nothing: other tensors are whole on each device anyway."""
    return Block()


_BY_JAX = (
    "XLA splits each op by itself; for code of each device's own part use `jax.shard_map` within "
    "`leafax.call_jax`"
)
context_parallel, local_map, register_sharding = [
    refuse(f"distributed.tensor.experimental.{name}", _BY_JAX)
    for name in ("context_parallel", "local_map", "register_sharding")
]
