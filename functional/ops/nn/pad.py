"""Padding of the last dims."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ...program.dtypes import cast
from ...program.op import Decorator, ops_with
from .checks import size_list

op: Decorator = ops_with(moves=True)

Array = jax.Array

F = "nn.functional"

_LETTERS = {1: "W", 2: "HW", 3: "DHW"}


def _check_constant(input: Array, pad: tuple[int, ...]) -> None:
    if len(pad) // 2 > input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.ndim}"
        )
    for i in range(len(pad) // 2):
        left, right, size = pad[2 * i], pad[2 * i + 1], input.shape[-1 - i]
        # PyTorch crops by narrow() before it pads.
        if size + min(left, 0) < 0 or size + min(left, 0) + min(right, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")


def _check_other(input: Array, pad: tuple[int, ...], mode: str) -> None:
    dims = len(pad) // 2
    if len(pad) not in (2, 4, 6) or input.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor.\n"
            "Supported combinations for non-constant padding:\n"
            "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
            "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
            "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
        )
    inner = input.shape[1:] if input.ndim == dims + 2 else input.shape
    if 0 in inner and mode != "circular":
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {size_list(input.shape)}"
        )
    for i in range(dims):
        left, right, size = pad[2 * i], pad[2 * i + 1], input.shape[-1 - i]
        if mode == "reflect" and max(left, right) >= size:
            raise RuntimeError(
                f"Argument #{2 * i + 4}: Padding size should be less than the corresponding input "
                f"dimension, but got: padding ({left}, {right}) at dimension {input.ndim - 1 - i} "
                f"of input {size_list(input.shape)}"
            )
        if mode == "circular" and max(left, right) > size:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if mode != "circular" and size + left + right < 1:
            letters = _LETTERS[dims]
            sizes = " ".join(f"{c}: {n}" for c, n in zip(letters, input.shape[-dims:], strict=True))
            outs = " ".join(
                f"{c}: {input.shape[-dims + j] + pad[2 * (dims - 1 - j)] + pad[2 * (dims - j) - 1]}"
                for j, c in enumerate(letters)
            )
            raise RuntimeError(f"input ({sizes}) is too small. Calculated output {outs}")
        if mode == "circular" and size + min(left, 0) + min(right, 0) < 0:
            raise RuntimeError("Negative padding value is resulting in an empty dimension")


def _cropped(x: Array, axis: int, left: int, right: int) -> Array:
    if left >= 0 and right >= 0:
        return x
    stop = x.shape[axis] + min(right, 0)
    return jax.lax.slice_in_dim(x, max(-left, 0), stop, axis=axis)


def _padded(x: Array, axis: int, left: int, right: int, mode: str) -> Array:
    """Pad one dim by what is next to its borders."""
    if mode == "circular":
        x = _cropped(x, axis, left, right)
    size = x.shape[axis]
    lo, hi = max(left, 0), max(right, 0)

    def part(start: int, stop: int) -> Array:
        return jax.lax.slice_in_dim(x, start, stop, axis=axis)

    if mode == "reflect":
        before, after = part(1, lo + 1), part(size - 1 - hi, size - 1)
        before, after = jax.lax.rev(before, (axis,)), jax.lax.rev(after, (axis,))
    elif mode == "replicate":
        before = jnp.repeat(part(0, 1), lo, axis)
        after = jnp.repeat(part(size - 1, size), hi, axis)
    else:
        before, after = part(size - lo, size), part(0, hi)
    parts = ([before] if lo else []) + [x] + ([after] if hi else [])
    x = jnp.concatenate(parts, axis) if len(parts) > 1 else x
    return x if mode == "circular" else _cropped(x, axis, left, right)


@op(namespace=F, method=False, backward="ConstantPadNdBackward0", fits={"value": "any"})
def pad(input: Array, pad: tuple[int, ...], mode: str = "constant", value: Any = None) -> Array:
    """Pad (or with negative numbers crop) dims from the last one: (left, right, top, ...)."""
    pad = tuple(int(n) for n in pad)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.ndim or mode == "constant":
        _check_constant(input, pad)
    if mode == "constant":
        widths = [(0, 0, 0)] * (input.ndim - len(pad) // 2)
        widths += [(pad[i], pad[i + 1], 0) for i in range(len(pad) - 2, -1, -2)]
        filler = cast(0 if value is None else value, input.dtype)
        return jax.lax.pad(input, filler, widths)
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    _check_other(input, pad, mode)
    for i in range(len(pad) // 2):
        input = _padded(input, input.ndim - 1 - i, pad[2 * i], pad[2 * i + 1], mode)
    return input
