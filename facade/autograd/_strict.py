"""Checks of strict mode in `autograd.functional`, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from .._autograd.graph.fit_gradient import zeros
from .._core.handle import Handle

_KIND = {
    "hessian": (
        "The hessian of the user-provided function with respect to input {i} is independent of the "
        "input. This is not allowed in strict mode. You should ensure that your function is thrice "
        "differentiable and that the hessian depends on the inputs."
    ),
    "jacobian": (
        "While computing the hessian, found that the jacobian of the user-provided function with "
        "respect to input {i} is independent of the input. This is not allowed in strict mode. You "
        "should ensure that your function is twice differentiable and that the jacobian depends on "
        "the inputs (this would be violated by a linear function for example)."
    ),
    "grad_inputs": (
        "The gradient with respect to input {i} is independent of the inputs of the user-provided "
        "function. This is not allowed in strict mode."
    ),
    "outputs": (
        "Output {i} of the user-provided function does not require gradients. The outputs must be "
        "computed in a differentiable manner from the input when running in strict mode."
    ),
}
_NONE = (
    "The output of the user-provided function is independent of input {i}. This is not allowed in "
    "strict mode."
)
_STAGE = {
    "back": _NONE,
    "back_trick": (
        "The gradient with respect to the input is independent of entry {i} in the grad_outputs "
        "when using the double backward trick to compute forward mode gradients. This is not "
        "allowed in strict mode."
    ),
    "double_back": (
        "The jacobian of the user-provided function is independent of input {i}. This is not "
        "allowed in strict mode."
    ),
    "double_back_trick": (
        "The hessian of the user-provided function is independent of entry {i} in the "
        "grad_jacobian. This is not allowed in strict mode as it prevents from using the double "
        "backward trick to replace forward mode AD."
    ),
}


def check_requires_grad(tensors: Any, kind: str, strict: bool) -> None:
    """Raise in strict mode for a tensor that nothing can be differentiated through."""
    if not strict:
        return
    for i, t in enumerate(tensors):
        if t is None:
            raise RuntimeError(_NONE.format(i=i))
        if not t.requires_grad:
            raise RuntimeError(_KIND[kind].format(i=i))


def fill_in_zeros(grads: Any, like: Any, strict: bool, create_graph: bool, stage: str) -> Any:
    """Fill in zeros for the gradients that are None; raise in strict mode."""
    found = []
    for i, (g, t) in enumerate(zip(grads, like, strict=True)):
        if g is None:
            if strict:
                raise RuntimeError(_STAGE[stage].format(i=i))
            g = zeros(t._v)
        elif strict and create_graph and not g.requires_grad:
            what = "hessian" if "double" in stage else "jacobian"
            raise RuntimeError(
                f"The {what} of the user-provided function is independent of input {i}. This is "
                "not allowed in strict mode when create_graph=True."
            )
        found.append(g)
    return tuple(found)


def _as_tuple(x: Any, arg: str, fn: str | None) -> tuple[bool, tuple[Any, ...]]:
    many = isinstance(x, tuple)
    xs = x if many else (x,)
    for i, el in enumerate(xs):
        if not isinstance(el, Handle):
            start = f"The {arg} given to {fn} must be either a Tensor or a tuple of Tensors but the"
            if many:
                raise TypeError(f"{start} value at index {i} has type {type(el)}.")
            raise TypeError(f"{start} given {arg} has type {type(el)}.")
    return many, xs
