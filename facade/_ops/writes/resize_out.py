"""`out=` tensors of another shape than the result: resized, with PyTorch's warning."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from leafax.functional.program.dtypes import scalar_name

from ..._core.trie import local
from ..._core.warn_once import warn
from ..._dispatch.resize import resize_storage


def resize_output(
    out: Any, shape: tuple[int, ...], silent: bool = False, strides: tuple[int, ...] | None = None
) -> None:
    """Give an `out=` tensor the shape of the result, with a warning if it had elements.

    Args:
      silent: without the warning.
      strides: how it is to lie in memory; None is row by row.
    """
    if tuple(out.shape) == shape:
        return
    if not silent:
        warn_of_resize(out, shape)
    resize_storage(out, shape, strides)


def warn_of_resize(out: Any, shape: tuple[int, ...]) -> None:
    """Warn that an `out=` tensor with elements gets another shape."""
    if out.numel():
        warn(
            "An output with one or more elements was resized since it had shape "
            f"{list(out.shape)}, which does not match the required output shape "
            f"{list(shape)}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements. You can explicitly reuse "
            "an out tensor t by resizing it, inplace, to zero elements with t.resize_(0)."
        )


def write_tensordot(out: Any, made: Any) -> Any:
    """Write a contraction into `out` in sight of autograd, and return `out`."""
    shape = tuple(made.shape)
    if out.requires_grad and local.mode.grad and tuple(out.shape) != shape:
        raise RuntimeError(
            "tensordot(): the 'out' tensor was specified and requires gradients, and its shape "
            "does not match the expected result. Either remove the 'out' argument, ensure it does "
            "not require gradients, or make sure its shape matches the expected output."
        )
    if made._v.dtype != out._v.dtype:
        names = scalar_name(made._v.dtype), scalar_name(out._v.dtype)
        raise RuntimeError(
            f"tensordot: Expected the output tensor to have dtype {names[0]}, but got an output "
            f"tensor with dtype {names[1]}"
        )
    resize_output(out, shape)
    return out.copy_(made)


def resizes_its_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make `ldexp` warn: PyTorch makes its result as the input is, and resizes it then."""

    @functools.wraps(fn)
    def ldexp(input: Any, other: Any, **kwargs: Any) -> Any:
        result = fn(input, other, **kwargs)
        if kwargs.get("out") is None and input.is_floating_point() and other._v.dtype.kind in "iu":
            if result.shape != input.shape:
                warn_of_resize(input, tuple(result.shape))
        return result

    return ldexp
