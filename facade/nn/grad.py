"""PyTorch's `torch.nn.grad`: gradients of convolutions, given the shape of what they are of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._functional.convolution_backward import convolution_backward


def _by_input(dims: int) -> Callable[..., Any]:
    def by_input(
        input_size: Sequence[int], weight: Any, grad_output: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        input = grad_output.new_empty(1).expand(input_size)
        return _gradient(0, dims, grad_output, input, weight, (stride, padding, dilation), groups)

    return _named(by_input, f"conv{dims}d_input", dims, "input", "input_size")


def _by_weight(dims: int) -> Callable[..., Any]:
    def by_weight(
        input: Any, weight_size: Sequence[int], grad_output: Any, stride: Any = 1,
        padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Any:  # fmt: skip
        weight = grad_output.new_empty(1).expand(weight_size)
        return _gradient(1, dims, grad_output, input, weight, (stride, padding, dilation), groups)

    return _named(by_weight, f"conv{dims}d_weight", dims, "weight", "weight_size")


def _gradient(
    place: int, dims: int, grad_output: Any, input: Any, weight: Any, settings: Sequence[Any],
    groups: int,
) -> Any:  # fmt: skip
    """Compute the gradient of the input (place 0) or the weight (1), whose values do not matter."""
    mask = (place == 0, place == 1, False)
    stride, padding, dilation = (_each(value, dims) for value in settings)
    return convolution_backward(
        grad_output, input, weight, None, stride, padding, dilation, False, [0], groups, mask
    )[place]


def _each(value: Any, dims: int) -> tuple[int, ...]:
    return tuple(value) if hasattr(value, "__iter__") else (value,) * dims


def _named(fn: Callable[..., Any], name: str, dims: int, of: str, size: str) -> Any:
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = f"""The gradient of `conv{dims}d` by its {of}.

    Args:
      {size}: the shape of the gradient.
      grad_output: the gradient of the convolution's result.
      stride, padding, dilation, groups: as the convolution had them.
    """
    return fn


conv1d_input, conv2d_input, conv3d_input = map(_by_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_by_weight, (1, 2, 3))
