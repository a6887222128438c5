"""Checks of what is assigned to a leaf's `.grad` and `.grad_dtype`, in PyTorch's words."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.meta import META

from ..._core.dtypes import dtype, of
from ..._core.handle import Handle
from ..._core.python_data import name_of_type

# ScalarType's name, and the C++ type's, by NumPy's name.
_NAMES = {
    "float16": ("Half", "c10::Half"), "bfloat16": ("BFloat16", "c10::BFloat16"),
    "float32": ("Float", "float"), "float64": ("Double", "double"),
    "complex64": ("ComplexFloat", "c10::complex<float>"),
    "complex128": ("ComplexDouble", "c10::complex<double>"),
    "int8": ("Char", "signed char"), "int16": ("Short", "short int"), "int32": ("Int", "int"),
    "int64": ("Long", "long int"), "uint8": ("Byte", "unsigned char"), "bool": ("Bool", "bool"),
    "uint16": ("UInt16", "short unsigned int"), "uint32": ("UInt32", "unsigned int"),
    "uint64": ("UInt64", "long unsigned int"),
}  # fmt: skip


def wanted(leaf: Any) -> Any:
    """Get NumPy's dtype of gradients of `leaf`; None for any."""
    return leaf._v.dtype if leaf._grad_dtype is None else leaf._grad_dtype[0]


def get_grad_dtype(leaf: Any) -> Any:
    """Get `leaf.grad_dtype`."""
    if not leaf._leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    want = wanted(leaf)
    return None if want is None else of(want)


def set_grad_dtype(leaf: Any, value: Any) -> None:
    """Set `leaf.grad_dtype = value`."""
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(
            f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
        )
    grad = leaf.grad  # warns for a non-leaf, as in PyTorch
    if not leaf._leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    want = None if value is None else value.np
    if want is not None and grad is not None and grad._v.dtype != want:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{_NAMES[want.name][0]}' because there is already a "
            f"gradient with dtype '{_NAMES[grad._v.dtype.name][1]}'. Please clear the gradient "
            "(.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the "
            "existing gradient's dtype."
        )
    leaf._grad_dtype, leaf._eventful = (want,), True


def check(leaf: Any, grad: Any) -> None:
    """Raise if `grad` cannot be the gradient of `leaf`."""
    if not isinstance(grad, Handle):
        raise TypeError(
            f"assigned grad expected to be a Tensor or None but got grad of type "
            f"{name_of_type(grad)}"
        )
    if grad is leaf:
        raise RuntimeError("can't assign Variable as its own grad")
    want, have = wanted(leaf), grad._v.dtype
    if want is not None and have != want:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{_NAMES[have.name][1]}' to a tensor "
            f"with grad_dtype '{_NAMES[want.name][0]}'. The gradient must match the tensor's "
            "grad_dtype (defaults to the tensor's dtype). You can set the tensor's grad_dtype "
            "attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with "
            "caution. Diverging the dtypes of a tensor and its gradient may break downstream "
            "systems that assume they match."
        )
    here, there = leaf._v.device, grad._v.device
    if here is not there and (META in (here, there) or None not in (here, there)):
        if leaf.device.type == grad.device.type:
            raise RuntimeError(
                "attempting to assign a gradient located on device with index "
                f"'{grad.device.index or 0}' to a tensor located on device with index "
                f"'{leaf.device.index or 0}'. Please ensure that the gradient and the tensor are "
                "on the same device"
            )
        raise RuntimeError(
            f"attempting to assign a gradient with device type '{grad.device.type}' to a tensor "
            f"with device type '{leaf.device.type}'. Please ensure that the gradient and the "
            "tensor are on the same device"
        )
    if tuple(grad._v.shape) != tuple(leaf._v.shape):
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(grad._v.shape)}' to a tensor of size "
            f"'{list(leaf._v.shape)}'. Please ensure that the gradient and the tensor are the "
            "same size"
        )
