"""`grid_sample` and `affine_grid`: what PyTorch asks and warns of before its kernels run."""

from __future__ import annotations

import warnings
from typing import Any

from leafax.functional.program.op import TABLE

from ..._ops.calls.functions import function

_grid_sample = function(TABLE["nn.functional.grid_sample"])
_grid_sample3d = function(TABLE["nn.functional._grid_sample3d"])
_affine_grid = function(TABLE["nn.functional.affine_grid"])

_DEFAULT = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
    "Please specify align_corners=True if the old behavior is desired. See the documentation of "
    "grid_sample for details."
)
_UNIT = (
    "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
    "align_corners=True. This is not an intended use case of affine_grid. See the documentation of "
    "affine_grid for details."
)
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Any:  # fmt: skip
    """Take the input's values at the points of `grid`, whose last dim is (x, y[, z]).

    Args:
      input: `(N, C, H, W)` or `(N, C, D, H, W)`.
      grid: `(N, *out, 2 or 3)`, in [-1, 1].
      align_corners: whether -1 and 1 are the centers of the pixels at the corners.
    """
    if align_corners is None:
        if mode in _MODES and padding_mode in _PADDINGS:
            warnings.warn(_DEFAULT, stacklevel=2)
        align_corners = False
    sample = _grid_sample3d if input.dim() == 5 else _grid_sample
    return sample(input, grid, mode, padding_mode, align_corners)


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Any:
    """Make the grid `(N, *spatial, dims)` of the affine maps `theta` `(N, dims, dims + 1)`.

    Args:
      size: of the images, `(N, C, *spatial)`.
      align_corners: as `grid_sample` is to take it.
    """
    if align_corners is None:
        warnings.warn(_DEFAULT, stacklevel=2)
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    dims = len(size) - 2
    if dims not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[1:]) != (dims, dims + 1):
        raise ValueError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(_UNIT, stacklevel=2)
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _affine_grid(theta, size, align_corners)
