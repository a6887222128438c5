"""Pooling against live PyTorch: values, indices, gradients at ties, error texts."""

import pytest
import torch
import torch.nn.functional as F
from helpers.ops_nn import compare, same_error, to_jax

from leafax.functional.ops.nn import adaptive_pool, pool

G = torch.Generator().manual_seed(0)


def made(dims, ties=False):
    shape = (2, 2, *(7, 6, 5)[:dims])
    # Few distinct values make ties in most windows.
    return torch.randint(0, 3, shape, generator=G).float() if ties else torch.randn(
        shape, generator=G
    )  # fmt: skip


MAX = [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 1, "dilation": 2}, {"kernel_size": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
]  # fmt: skip


@pytest.mark.quick(3)
@pytest.mark.parametrize("kwargs", MAX, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_max_pool(dims, kwargs):
    if dims == 3 and "dilation" in kwargs:
        kwargs = {**kwargs, "dilation": (2, 2, 1)}
    reference = getattr(F, f"max_pool{dims}d")
    x = torch.cat((made(dims), made(dims, ties=True)))
    compare(getattr(pool, f"max_pool{dims}d"), reference, [x], (), **kwargs)
    compare(
        getattr(pool, f"max_pool{dims}d_with_indices"),
        lambda x, **k: reference(x, return_indices=True, **k),
        [x], (), **kwargs,
    )  # fmt: skip
    if dims > 1 and "dilation" not in kwargs:
        x = (made(dims) * 9).long()
        compare(getattr(pool, f"max_pool{dims}d"), reference, [x[0]], grad=False, **kwargs)


def test_max_pool_nan_and_lowest():
    x = made(2)
    x[0, 0, 1, 1] = float("nan")
    x[1, 0, :3, :3] = -float("inf")
    for body, indices in [(pool.max_pool2d, False), (pool.max_pool2d_with_indices, True)]:
        compare(
            lambda x, b=body: b(x, 3, 2, 1),
            lambda x, i=indices: F.max_pool2d(x, 3, 2, 1, return_indices=i),
            [x], grad=False,
        )  # fmt: skip


AVG = [
    {"kernel_size": 2}, {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False},
    {"kernel_size": 3, "stride": 2, "ceil_mode": True},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True},
    {"kernel_size": 2, "stride": 2, "ceil_mode": True, "count_include_pad": False},
]  # fmt: skip


@pytest.mark.quick(4)
@pytest.mark.parametrize("kwargs", AVG, ids=str)
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_avg_pool(dims, kwargs):
    name = f"avg_pool{dims}d"
    one = (torch.float32,)
    compare(getattr(pool, name), getattr(F, name), [made(dims)], one, **kwargs)
    if dims > 1:
        kwargs = {**kwargs, "divisor_override": 5}
        compare(getattr(pool, name), getattr(F, name), [made(dims)[0]], (), **kwargs)
    if dims < 3:
        half = (torch.bfloat16,)
        compare(getattr(pool, name), getattr(F, name), [made(dims)], half, grad=False, **kwargs)


@pytest.mark.quick(2)
@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive(dims, size):
    for x in (made(dims, ties=True), made(dims)[0]):
        for kind in ("avg", "max"):
            name = f"adaptive_{kind}_pool{dims}d"
            body, reference = getattr(adaptive_pool, name), getattr(F, name)
            compare(body, reference, [x], (), output_size=size)
        compare(
            getattr(adaptive_pool, f"adaptive_max_pool{dims}d_with_indices"),
            lambda x, output_size, r=reference: r(x, output_size, return_indices=True),
            [x], (torch.float32,), grad=False, output_size=size,
        )  # fmt: skip


o = torch.ones


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_errors(dims, kind):
    x, many = o(2, 4, *(6,) * dims), (2,) * (dims + 1)
    cases = [
        (o(4), 2), (o(1, 1, *x.shape), 2), (x, 0), (x, many), (x, 2, 0), (x, 2, many), (x, 2, 2, 2),
        (x, 2, 2, -1), (x[..., :1], 2), (x[:, :0], 2), (x, 2, 2, many), (x, -1),
    ]  # fmt: skip
    name = f"{kind}_pool{dims}d"
    for args in cases:
        same_error(
            lambda a=args: getattr(pool, name)(*map(to_jax, a)),
            lambda a=args: getattr(F, name)(*a),
        )
    if kind == "max":
        for dilation in (0, many, 9):
            same_error(
                lambda d=dilation: getattr(pool, name)(to_jax(x), 2, dilation=d),
                lambda d=dilation: getattr(F, name)(x, 2, dilation=d),
            )
    elif dims > 1:
        same_error(
            lambda: getattr(pool, name)(to_jax(x), 2, divisor_override=0),
            lambda: getattr(F, name)(x, 2, divisor_override=0),
        )


@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_adaptive_errors(dims, kind):
    x, name = o(2, 4, *(6,) * dims), f"adaptive_{kind}_pool{dims}d"
    for args in [(o(4), 2), (x, (2,) * (dims + 1)), (x, -1), (x[..., :0], 2), (x.long(), 2),
                 (o(1, 1, *x.shape), 2)]:  # fmt: skip
        same_error(
            lambda a=args: getattr(adaptive_pool, name)(*map(to_jax, a)),
            lambda a=args: getattr(F, name)(*a),
        )
