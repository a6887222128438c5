"""Grid sampling against live PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same_error, to_jax

from leafax.functional.ops.nn import grid as ours

G = torch.Generator().manual_seed(0)


@pytest.mark.quick(4)
@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize(
    ("mode", "dims"),
    [("bilinear", 2), ("bilinear", 3), ("nearest", 2), ("nearest", 3), ("bicubic", 2)],
)
def test_grid_sample(dims, mode, padding, align):
    x = torch.randn(2, 3, *(5, 4, 3)[:dims], generator=G)
    grid = torch.rand(2, *(3, 4, 2)[:dims], dims, generator=G) * 3.1 - 1.55
    kwargs = {"mode": mode, "padding_mode": padding, "align_corners": align}
    compare(ours.grid_sample, F.grid_sample, [x, grid], (), **kwargs)


@pytest.mark.parametrize("align", [True, False])
@pytest.mark.parametrize("size", [(2, 1, 3, 4), (2, 1, 3, 4, 2)])
def test_affine_grid(size, align):
    dims = len(size) - 2
    theta = torch.randn(2, dims, dims + 1, generator=G)
    compare(ours.affine_grid, F.affine_grid, [theta], (), size=size, align_corners=align)


def test_errors():
    x, grid = torch.ones(2, 3, 4, 4), torch.zeros(2, 3, 3, 2)
    cases = [
        (x, grid[0]), (x, grid[:1]), (x, grid[..., :1]), (x, grid, "foo"),
        (x, grid, "nearest", "foo"), (x[None], torch.zeros(1, 2, 3, 3, 3), "bicubic"),
        (x.long(), grid.long()), (x, grid.double()),
    ]  # fmt: skip
    for args in cases:
        same_error(
            lambda a=args: ours.grid_sample(*map(to_jax, a), align_corners=True),
            lambda a=args: F.grid_sample(*a, align_corners=True),
        )
