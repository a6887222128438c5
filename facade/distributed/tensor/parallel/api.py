"""PyTorch's `torch.distributed.tensor.parallel.api`: layers of a module, split by a plan."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh
from .style import ParallelStyle

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *,
    src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """Split layers of a module over a mesh of one dimension, as a plan says.

    Args:
      module: the module.
      device_mesh: the mesh, or one dimension of a mesh: `mesh["tp"]`.
      parallelize_plan: a style, or one for each pattern of paths of submodules.
      src_data_rank: not used: the tensors are whole before.

    Returns:
      The module.

    Raises:
      ValueError: there is no mesh, or it has several dimensions.
      TypeError: the plan is neither.
    """
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so "
            "this parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if not isinstance(device_mesh, DeviceMesh):
        raise ValueError("parallelize_module: give the mesh, as init_device_mesh makes it")
    if device_mesh.ndim > 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {device_mesh.ndim}D! If you "
            'have a 2-D or N-D device_mesh, consider passing in device_mesh["tp"]'
        )
    if isinstance(parallelize_plan, ParallelStyle):
        return parallelize_plan._apply(module, device_mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        _apply(module, device_mesh, path, style)
    return module


def _apply(module: Module, mesh: DeviceMesh, path: str, style: Any) -> None:
    if path == "":
        parallelize_module(module, mesh, style)
        return
    token, _, rest = path.partition(".")
    matched = [child for name, child in module.named_children() if fnmatch(name, token)]
    if not matched:
        warnings.warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token "
            f"'{token}' in module {module}, skipping this plan entry.",
            stacklevel=3,
        )
    for child in matched:
        _apply(child, mesh, rest, style)
