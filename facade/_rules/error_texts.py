"""Texts of PyTorch's errors about gradients that more than one layer raises."""

from __future__ import annotations

from typing import Any

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you "
    "call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is "
    "not supported, please use out-of-place `.detach()` instead"
)


OVERLAPS_ITSELF = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)


COMPLEX_FOR_REAL = (
    "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be "
    "true, but got false.  (Could this error message be improved?  If so, please report an "
    "enhancement request to PyTorch.)"
)


def invalid_gradient(name: str, place: int, have: Any, want: Any) -> str:
    """Word the engine's refusal of a gradient whose shape does not fit.

    Args:
      name: the function that returned it; "" for one that `backward` was called with.
      place: of the edge that it goes along, counted from 0.
    """
    whose = f"Function {name} returned an " if name else ""
    return (
        f"{whose}invalid gradient at index {place} - got {list(have)} "
        f"but expected shape compatible with {list(want)}"
    )


def short_name(name: str) -> str:
    """Shorten a node's name as errors do: without "Backward" and a zero after it."""
    head, found, number = name.rpartition("Backward")
    return head + number.removesuffix("0") if found and (number or "0").isdigit() else name
