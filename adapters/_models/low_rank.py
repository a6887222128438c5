"""Low-rank terms in the output of a linear layer, without building their kernel.

A layer is linear in its kernel, so with `a @ b` for a kernel it is the layer with `a` for a kernel
and `rank` outputs, then a product with `b`. The layers' settings have the same names in linen and
nnx.
"""

from __future__ import annotations

import string
from math import prod
from typing import Any

import jax.numpy as jnp


def added(
    kind: str, layer: Any, shape: tuple[int, ...], x: Any, a: Any, b: Any, equation: str | None
) -> Any:
    """Compute what `x` gives for the kernel `a @ b`; None if these factors do not fit this layer.

    Args:
      kind: `"dense"`, `"general"`, `"conv"` or `"einsum"`.
      layer: the module, for its settings.
      shape: of its kernel.
      a: `(inputs, rank)`, `inputs` being the product of the kernel's first dimensions.
      b: `(rank, outputs)`.
      equation: of an einsum.
    """
    n = _inputs(kind, layer, shape, a)
    if n is None or (prod(shape[:n]), prod(shape[n:])) != (a.shape[0], b.shape[1]):
        return None
    narrow = a.reshape(*shape[:n], -1)
    if kind == "einsum":
        return _einsum(equation, x, narrow, b.reshape(-1, *shape[n:]), n)
    if kind == "conv":
        return _conv(layer, x, narrow) @ b
    if kind == "general":
        axes = layer.axis if isinstance(layer.axis, (tuple, list)) else (layer.axis,)
        y = jnp.tensordot(x, narrow, (tuple(axes), tuple(range(n)))) @ b
        return y.reshape(*y.shape[:-1], *shape[n:])
    return x @ narrow @ b


def _inputs(kind: str, layer: Any, shape: tuple[int, ...], a: Any) -> int | None:
    """Return how many of the kernel's dimensions the layer sums over."""
    if kind == "general":
        if getattr(layer, "batch_dims", ()) or getattr(layer, "batch_axis", ()):
            return None
        return len(layer.axis) if isinstance(layer.axis, (tuple, list)) else 1
    if kind == "conv":
        plain = layer.feature_group_count == 1 and layer.mask is None
        return len(shape) - 1 if plain else None
    if kind == "einsum":
        sizes = [prod(shape[:n]) for n in range(len(shape))]
        return sizes.index(a.shape[0]) if a.shape[0] in sizes[1:] else None
    return 1 if len(shape) == 2 else None


def _einsum(equation: str | None, x: Any, a: Any, b: Any, n: int) -> Any:
    if equation is None:
        return None
    operands, out = equation.replace(" ", "").split("->")
    lhs, kernel = operands.split(",")
    free = [c for c in string.ascii_letters if c not in equation]
    if "." in kernel or not free:
        return None
    r = free[0]
    return jnp.einsum(f"{lhs},{kernel[:n]}{r},{r}{kernel[n:]}->{out}", x, a, b)


def _conv(layer: Any, x: Any, a: Any) -> Any:
    from flax import linen as nn

    narrow = nn.Conv(
        a.shape[-1], layer.kernel_size, layer.strides, layer.padding, layer.input_dilation,
        layer.kernel_dilation, use_bias=False, dtype=a.dtype, precision=layer.precision,
        parent=None,
    )  # fmt: skip
    return narrow.apply({"params": {"kernel": a}}, x)
