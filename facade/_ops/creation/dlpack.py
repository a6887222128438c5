"""Tensors from other libraries' memory: `frombuffer` and DLPack.

PyTorch shares the memory. JAX's arrays are immutable, so what others may write to is copied.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.dtypes import as_dtype
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.warn_once import warn_once
from .from_arrays import as_leaf, from_numpy, wrap

_INVALID = (
    "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
    "once, so you might have already constructed a tensor from it once."
)


def frombuffer(
    buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False
) -> Any:
    """Return a vector with a copy of the bytes of `buffer`, taken for elements of `dtype`.

    Args:
      buffer: an object with Python's buffer protocol.
      count: how many elements; all if negative.
      offset: how many bytes to skip.

    Raises:
      ValueError: if the bytes do not suffice, or are no whole number of elements.

    >>> import leafax
    >>> leafax.frombuffer(bytearray([1, 0, 2, 0]), dtype=leafax.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    np_dtype = as_dtype("frombuffer", dtype).np
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    if not view.c_contiguous:
        raise RuntimeError("could not retrieve buffer from object")
    size, each = view.nbytes, np_dtype.itemsize
    if size == 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({size} bytes) minus 1"
        )
    if count < 0:
        if (size - offset) % each:
            raise ValueError(
                f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a "
                f"multiple of element size ({each})"
            )
        count = (size - offset) // each
    if offset + count * each > size:
        raise ValueError(
            f"requested buffer length ({count} * {each} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({size} bytes)"
        )
    found = np.frombuffer(buffer, np_dtype, count, offset)
    if not found.flags.writeable:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. "
            "This means you can write to the underlying (supposedly non-writable) buffer using the "
            "tensor. You may want to copy the buffer to protect its data or make it writable "
            "before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program."
        )
    out = from_numpy(found.copy())
    return as_leaf(out) if requires_grad else out


class _Capsule:
    """A bare DLPack capsule as the objects that JAX takes."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> Any:
        return jnp.zeros(()).__dlpack_device__()  # type: ignore[attr-defined]


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """Return a tensor of another library's tensor.

    A JAX array is held as it is, a leafax tensor shared; of anything else, and of capsules, the
    memory is copied.

    Args:
      ext_tensor: an object with `__dlpack__`, or a capsule.
      copy: True to copy in any case; False to never do, which others' memory cannot be had with.

    Raises:
      ValueError: for `copy=False` where the memory is not leafax's or JAX's.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        if type(ext_tensor).__name__ != "PyCapsule":
            raise RuntimeError(_INVALID)
        ext_tensor = _Capsule(ext_tensor)
    out = _taken(ext_tensor, copy)
    return out if device is None else out.to(device)


def _taken(x: Any, copy: bool | None) -> Any:
    if isinstance(x, Handle):
        if x._tracked:  # type: ignore[attr-defined]
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return x.clone() if copy else x.detach()  # type: ignore[attr-defined]
    if isinstance(x, jax.Array):
        return wrap(jnp.array(x, copy=True) if copy else x)
    if copy is False:
        raise ValueError(
            "from_dlpack(): others may write to their memory, which immutable arrays of JAX must "
            "not share: it is copied. Leave `copy` out"
        )
    if isinstance(x, np.ndarray):
        return from_numpy(x.copy(order="K"))
    with jax.enable_x64(True):
        try:
            return wrap(jnp.array(jax.dlpack.from_dlpack(x), copy=True))
        except (RuntimeError, ValueError) as error:
            if isinstance(x, _Capsule):
                raise RuntimeError(_INVALID) from error
            raise


def to_dlpack(data: Any) -> Any:
    """Return a DLPack capsule of the tensor's memory; runs the program."""
    if not isinstance(data, Handle):
        raise TypeError(
            f"_to_dlpack(): argument 'data' (position 1) must be Tensor, not {name_of_type(data)}"
        )
    return data.jax().__dlpack__()  # type: ignore[attr-defined]


def exported(t: Any, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """Export `t.__dlpack__()`, a capsule of the array that JAX holds; run the program.

    Args:
      stream: of a GPU, which waits for the data; None and -1 are for the processor.

    Raises:
      BufferError: if `t` has what a capsule cannot say.
    """
    if t.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if t.is_conj():
        raise BufferError("Can't export tensors with the conjugate bit set")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream == -1:
        stream = None
    if stream is not None and t.device.type == "cpu":
        raise AssertionError("stream should be None on cpu.")
    return t.jax().__dlpack__(
        stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
    )


FUNCTIONS = {f.__name__: f for f in (frombuffer, from_dlpack, to_dlpack)}
