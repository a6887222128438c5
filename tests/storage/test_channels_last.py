"""Channels last: strides of copies, of results, of gradients, as torch has them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax


def test_copies() -> None:
    @same
    def program(t: Any, log: Log) -> Any:
        last, rows, keep = t.channels_last, t.contiguous_format, t.preserve_format
        x = t.arange(120.0).reshape(2, 3, 4, 5).clone().requires_grad_()
        y = x.contiguous(memory_format=last)

        def see(made: Any) -> None:
            log(
                tuple(made.shape), made.stride(), made.is_contiguous(), made._is_view(),
                made.dim() == 4 and made.is_contiguous(memory_format=last), str(made.dtype),
                type(made.grad_fn).__name__,
            )  # fmt: skip

        log(
            y.contiguous(memory_format=last) is y, y.to(memory_format=last) is y,
            y.contiguous() is y, x.to(memory_format=rows) is x, y.to(memory_format=rows) is y,
            y.to(memory_format=keep) is y,
        )  # fmt: skip
        like = (t.zeros_like, t.rand_like, t.ones_like, t.empty_like)
        for made in (
            y, y.contiguous(), x.to(memory_format=last), x.to(t.float64, memory_format=last),
            y.to(t.float64), y.to(t.float64, memory_format=rows), x.double(memory_format=last),
            x.clone(memory_format=last), y.clone(), y.clone(memory_format=rows), y.detach().clone(),
            x.to(t.float32, copy=True, memory_format=last), x.detach().cpu(memory_format=last),
            t.empty(2, 3, 4, 5, memory_format=last), y + x, x + y, t.relu(y), y * y.exp(),
            *[f(x, memory_format=last) for f in like], *[f(y) for f in like],
            t.ones(1, 2, 3, 4, 5).contiguous(memory_format=t.channels_last_3d),
            t.ones(2, 1, 4, 5).contiguous(memory_format=last),
            t.ones(2, 1, 4, 5).clone(memory_format=last), t.ones(2, 3, 1, 1).to(memory_format=last),
            t.ones(2, 4, 5, 3).permute(0, 3, 1, 2).contiguous(memory_format=last),
            t.ones(2, 3).t().to(memory_format=rows), t.ones(0, 3, 4, 5).to(memory_format=last),
        ):  # fmt: skip
            see(made)
        z = y.detach().clone()
        z[0].mul_(2)
        log(z, z.as_strided((7,), (1,)), z.stride(), z[0].stride())
        log.attempt(z.view, 2, -1)
        t.ones(2).resize_(2, 3, 4, 5)
        for made in (
            t.ones(2).resize_(2, 3, 4, 5, memory_format=last), t.ones(2).resize_as_(z),
            t.ones(2).resize_as_(z, memory_format=keep), t.ones(2, 3, 4, 5).resize_as_(z),
            t.ones(2, 3, 4, 5).resize_(2, 3, 4, 5, memory_format=last), z.clone().resize_(z.shape),
            z.clone().resize_(2, 3, 4, 5, memory_format=rows),
        ):  # fmt: skip
            log(made.stride(), made._version)
        log(t.arange(120.0).resize_(2, 3, 4, 5, memory_format=last)[0, :, 0])

        (x.contiguous(memory_format=last) * z).sum().backward()
        log(x.grad.stride(), x.grad.tolist())
        w = z.clone().requires_grad_()
        (w * 2).sum().backward()
        log(w.grad.stride())
        log(t.autograd.grad((w.contiguous() * x).sum(), w)[0].stride())


REFUSED = {
    "contiguous": lambda t: t.ones(2, 3).contiguous(memory_format=t.channels_last),
    "to": lambda t: t.ones(2, 3).to(memory_format=t.channels_last),
    "clone": lambda t: t.ones(2, 3).clone(memory_format=t.channels_last),
    "empty": lambda t: t.empty(2, 3, memory_format=t.channels_last),
    "zeros_like": lambda t: t.zeros_like(t.ones(3), memory_format=t.channels_last_3d),
    "resize_": lambda t: t.ones(2).resize_(2, 3, memory_format=t.channels_last),
    "to preserve": lambda t: t.ones(2, 3).t().contiguous(memory_format=t.preserve_format),
    "empty preserve": lambda t: t.empty(2, memory_format=t.preserve_format),
    "resize_ preserve": lambda t: t.ones(2).resize_(3, memory_format=t.preserve_format),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    @same
    def program(t: Any, log: Log) -> Any:
        log.attempt(REFUSED[name], t)


def images(t: Any, f: Any) -> Any:
    y = t.rand(2, 4, 6, 6).contiguous(memory_format=t.channels_last)
    z = t.rand(1, 2, 4, 4, 4).contiguous(memory_format=t.channels_last_3d)
    out = f(t, t.nn.functional, y, z)
    return [o.stride() for o in (out if isinstance(out, tuple) else (out,))]


OPS: dict[str, Any] = {
    "conv2d": lambda t, f, y, z: f.conv2d(y, t.rand(3, 4, 3, 3)),
    "conv2d by its weight": lambda t, f, y, z: f.conv2d(
        y.contiguous(), t.rand(3, 2, 2, 4).permute(0, 3, 1, 2)
    ),
    "conv2d, groups": lambda t, f, y, z: f.conv2d(y, t.rand(4, 1, 3, 3), groups=4),
    "conv_transpose2d": lambda t, f, y, z: f.conv_transpose2d(y, t.rand(4, 3, 2, 2)),
    "conv3d": lambda t, f, y, z: f.conv3d(z, t.rand(3, 2, 2, 2, 2)),
    "max_pool2d": lambda t, f, y, z: f.max_pool2d(y, 2, return_indices=True),
    "max_pool3d": lambda t, f, y, z: f.max_pool3d(z, 2),
    "avg_pool2d": lambda t, f, y, z: f.avg_pool2d(y, 2),
    "avg_pool3d": lambda t, f, y, z: f.avg_pool3d(z, 2),
    "adaptive": lambda t, f, y, z: (f.adaptive_avg_pool2d(y, 2), f.adaptive_max_pool2d(y, 3)),
    "batch_norm": lambda t, f, y, z: f.batch_norm(y, None, None, training=True),
    "batch_norm 3d": lambda t, f, y, z: f.batch_norm(z, t.zeros(2), t.ones(2)),
    "group_norm": lambda t, f, y, z: (f.group_norm(y, 2), f.group_norm(z, 2)),
    "instance_norm": lambda t, f, y, z: f.instance_norm(y),
    "layer_norm": lambda t, f, y, z: f.layer_norm(y, (6,)),
    "interpolate": lambda t, f, y, z: (
        f.interpolate(y, scale_factor=2), f.interpolate(z, scale_factor=2, mode="trilinear"),
    ),
    "pad": lambda t, f, y, z: (f.pad(y, (1, 1)), f.pad(y, (1, 1, 1, 1), mode="reflect")),
    "pad circular": lambda t, f, y, z: f.pad(y, (1, 1, 1, 1), mode="circular"),
    "pixel_shuffle": lambda t, f, y, z: (f.pixel_shuffle(y, 2), f.pixel_unshuffle(y, 2)),
    "cat": lambda t, f, y, z: (t.cat([y, y], 1), t.cat([y, y.contiguous()]), t.cat([z, z])),
    "roll, flip": lambda t, f, y, z: (y.roll(1, 2), y.flip(2)),
    "softmax": lambda t, f, y, z: (f.softmax(y, 1), y.cumsum(1), y.sum(1, keepdim=True)),
    "a view of rows": lambda t, f, y, z: f.max_pool2d(t.rand(2, 6, 6, 4).permute(0, 3, 1, 2), 2),
    "ambiguous": lambda t, f, y, z: f.avg_pool2d(t.rand(3, 1, 1, 1), 1),
}  # fmt: skip


@pytest.mark.parametrize("name", OPS)
def test_results(name: str) -> None:
    assert images(leafax, OPS[name]) == images(torch, OPS[name])


GRADIENTS: dict[str, Any] = {
    "conv2d": lambda f, x, w: f.conv2d(x, w),
    "max_pool2d": lambda f, x, w: f.max_pool2d(x, 2),
    "batch_norm": lambda f, x, w: f.batch_norm(x, None, None, training=True),
    "interpolate": lambda f, x, w: f.interpolate(x, scale_factor=2),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    def program(t: Any) -> Any:
        x = t.rand(2, 4, 6, 6).contiguous(memory_format=t.channels_last).requires_grad_()
        w = t.rand(3, 4, 3, 3).requires_grad_()
        out = GRADIENTS[name](t.nn.functional, x, w)
        return [
            g.stride()
            for g in t.autograd.grad(out.sum(), (x, w), allow_unused=True)
            if g is not None
        ]

    assert program(leafax) == program(torch)
