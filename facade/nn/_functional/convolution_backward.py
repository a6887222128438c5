"""`aten.convolution_backward`: the gradients of a convolution as an op to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ..._autograd.backward import grad
from ..._core.grad_modes import enable_grad, is_grad_enabled
from .. import functional

_PLAIN: tuple[Callable[..., Any], ...] = (
    functional.conv1d, functional.conv2d, functional.conv3d,
)  # fmt: skip
_TRANSPOSED: tuple[Callable[..., Any], ...] = (
    functional.conv_transpose1d, functional.conv_transpose2d, functional.conv_transpose3d,
)  # fmt: skip


def convolution_backward(
    grad_output: Any, input: Any, weight: Any, bias_sizes: Sequence[int] | None,
    stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int], transposed: bool,
    output_padding: Sequence[int], groups: int, output_mask: Sequence[bool],
) -> tuple[Any, Any, Any]:  # fmt: skip
    """Gradients of a convolution of `input` `(N, C, ...)`, differentiable in turn.

    Args:
      grad_output: the gradient of the result, of its shape.
      weight: `(out, in / groups, ...)`, with the first two the other way round if `transposed`.
      bias_sizes: the bias' shape, None without one.
      output_mask: which of the gradients of input, weight and bias are wanted.

    Returns:
      The three gradients, None where not wanted.

    Raises:
      RuntimeError: for operands that do not fit together.
    """
    dims = input.dim() - 2
    if transposed:
        settings: dict[str, Any] = {"output_padding": tuple(output_padding)}
        forward = _TRANSPOSED[dims - 1]
    else:
        settings, forward = {}, _PLAIN[dims - 1]
    convolve = partial(
        forward, stride=tuple(stride), padding=tuple(padding), dilation=tuple(dilation),
        groups=groups, **settings,
    )  # fmt: skip
    wanted = tuple(output_mask)
    by_input = by_weight = by_bias = None
    if wanted[0]:
        by_input = _pulled(lambda x: convolve(x, weight), input, grad_output, weight)
    if wanted[1]:
        by_weight = _pulled(lambda w: convolve(input, w), weight, grad_output, input)
    if wanted[2] and bias_sizes is not None:
        by_bias = grad_output.sum((0, *range(2, dims + 2)))
    return by_input, by_weight, by_bias


def _pulled(linear: Callable[[Any], Any], x: Any, grad_output: Any, other: Any) -> Any:
    """Return the gradient by `x` of what is linear in it, so that its value does not matter."""
    records = is_grad_enabled() and (grad_output.requires_grad or other.requires_grad)
    with enable_grad():
        at = x.detach().requires_grad_()
        out = linear(at)
        _check_shape(out.shape, grad_output.shape)
        return grad(out, at, grad_output, create_graph=records)[0]


def _check_shape(out: Sequence[int], given: Sequence[int]) -> None:
    for d in range(2, len(out)):
        if len(given) != len(out) or given[d] != out[d]:
            have = given[d] if d < len(given) else 0
            raise RuntimeError(
                f"Expected a tensor of dimension {len(out)} and tensor.size[{d}] == {out[d]} but "
                f"got: dimension {len(given)} and tensor.size[{d}] = {have}"
            )
