"""PyTorch's `torch.distributed.tensor.parallel.style`: how layers are split over devices.

A style says where the parameters lie. XLA follows them: it splits the products, and adds or gathers
what is split where the next layer needs all of it. So layouts of inputs and outputs are hints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.sharding import NamedSharding

from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ...device_mesh import DeviceMesh
from ...sharding import sharding_for
from .._dtensor import distribute_tensors, is_on_mesh, redistributed
from ..placement_types import Placement, Replicate, Shard, spec_of

__all__ = [
    "ColwiseParallel", "ParallelStyle", "PrepareModuleInput", "PrepareModuleInputOutput",
    "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel",
]  # fmt: skip


class ParallelStyle:
    """Base of the ways that a module lies on several devices; packages have tables of them.

    Args:
      options: what PyTorch's class takes, kept as attributes.
    """

    src_data_rank: int | None = 0

    def __init__(self, **options: Any) -> None:
        vars(self).update(options)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Place the module's tensors."""
        return _placed(module, device_mesh, {})


class ColwiseParallel(ParallelStyle):
    """A linear layer whose outputs are split, or an embedding whose columns are.

    Args:
      input_layouts, output_layouts: hints; XLA finds where inputs and outputs lie.
      use_local_output: not used, since a tensor on several devices is a tensor.
    """

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if isinstance(module, Linear):
            return _placed(module, device_mesh, {"weight": Shard(0), "bias": Shard(0)})
        if isinstance(module, Embedding):
            return _placed(module, device_mesh, {"weight": Shard(1)})
        raise NotImplementedError(
            "ColwiseParallel currently only support nn.Linear and nn.Embedding!"
        )


class RowwiseParallel(ParallelStyle):
    """A linear layer whose inputs are split, or an embedding whose rows are.

    Args:
      input_layouts, output_layouts: hints; XLA finds where inputs and outputs lie.
      use_local_output: not used, since a tensor on several devices is a tensor.
    """

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if isinstance(module, Linear):
            return _placed(module, device_mesh, {"weight": Shard(1)})
        if isinstance(module, Embedding):
            return _placed(module, device_mesh, {"weight": Shard(0)})
        raise NotImplementedError(
            "RowwiseParallel currently only support nn.Linear and nn.Embedding!"
        )


class SequenceParallel(ParallelStyle):
    """A layer whose inputs are split along the sequence, and whose parameters are whole.

    Args:
      sequence_dim: that dimension.
      use_local_output: not used.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        super().__init__(sequence_dim=sequence_dim, use_local_output=use_local_output)
        self.sequence_sharding = (Shard(sequence_dim),)

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        _placed(module, device_mesh, {})
        layouts = self.sequence_sharding
        module.register_forward_pre_hook(lambda m, args: _laid_out(args, layouts, device_mesh))
        return module


class PrepareModuleInput(ParallelStyle):
    """A module whose inputs are brought to where layouts say.

    Args:
      input_layouts: not used: inputs lie where they lie.
      desired_input_layouts: a placement for each input, or one; None leaves it.
    """

    desired_input_layouts: Any = None

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        wanted = self.desired_input_layouts
        if wanted is not None:
            module.register_forward_pre_hook(
                lambda m, args: _laid_out(args, _as_tuple(wanted), device_mesh)
            )
        return module


class PrepareModuleOutput(ParallelStyle):
    """A module whose outputs are brought to where layouts say.

    Args:
      output_layouts: not used: outputs lie where they lie.
      desired_output_layouts: a placement for each output, or one; None leaves it.
    """

    desired_output_layouts: Any = None

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        wanted = self.desired_output_layouts
        if wanted is not None:
            module.register_forward_hook(
                lambda m, args, out: _outputs_laid_out(out, _as_tuple(wanted), device_mesh)
            )
        return module


class PrepareModuleInputOutput(ParallelStyle):
    """A module whose inputs and outputs are brought to where layouts say.

    Args:
      desired_input_layouts, desired_output_layouts: see the two other classes.
    """

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        PrepareModuleInput(**vars(self))._apply(module, device_mesh)
        return PrepareModuleOutput(**vars(self))._apply(module, device_mesh)


def _placed(module: Module, mesh: DeviceMesh, placements: dict[str, Placement]) -> Module:
    """Place the tensors of a module by name, whole on each device by default."""
    found: list[tuple[Any, NamedSharding]] = []
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        asked = placements.get(name)
        if asked is None and is_on_mesh(t):
            continue
        where = [asked if asked is not None else Replicate()]
        spec = spec_of(mesh, where, t.dim())
        found.append((t, sharding_for(mesh.jax, spec, t.shape, name)))
    distribute_tensors(found)
    return module


def _as_tuple(layouts: Any) -> tuple[Any, ...]:
    return layouts if isinstance(layouts, tuple) else (layouts,)


def _outputs_laid_out(out: Any, layouts: Sequence[Any], mesh: DeviceMesh) -> Any:
    if isinstance(out, tuple):
        return _laid_out(out, layouts, mesh)
    return _laid_out((out,), layouts, mesh)[0]


def _laid_out(values: tuple[Any, ...], layouts: Sequence[Any], mesh: DeviceMesh) -> tuple[Any, ...]:
    found = list(values)
    for i, (x, layout) in enumerate(zip(values, layouts, strict=False)):
        if layout is not None:
            spec = spec_of(mesh, [layout], x.dim())
            found[i] = redistributed(x, sharding_for(mesh.jax, spec, x.shape, f"input {i}"))
    return tuple(found)
