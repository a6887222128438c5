"""Tensors where JAX's functions take arrays: `jnp.sin(t)`, `jax.jit(f)(t)`, `jax.device_put(t)`.

JAX asks a table what its functions may be given, and how to bring it to a device. A tensor is its
array there, which is no longer part of what autograd records; so one whose gradient is recorded is
refused.
"""

from __future__ import annotations

from typing import Any

import jax
from jax._src import core, dtypes  # JAX has no public way to say that a class is an array
from jax._src.interpreters import mlir, pxla

from leafax.functional.program.transformation import outside

from .._core.trie import local
from .._tracing.tracer_checks import refuse_constant

_NARROW = {
    "int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64",
}  # fmt: skip


def array_of(t: Any) -> Any:
    """Return the array of a tensor that a function of JAX is given.

    Raises:
      RuntimeError: its gradient is recorded, and would end here.
    """
    refuse_constant()
    if local.mode.grad and t.requires_grad:
        raise RuntimeError(
            "a function of JAX is given a tensor that requires grad, and would cut it from its "
            "history: record the function with `leafax.call_jax(f, t)`, or take the value with "
            "`t.detach().jax()`"
        )
    array = t.jax()
    if jax.config.jax_enable_x64 or not (narrow := _NARROW.get(array.dtype.name)):  # type: ignore[attr-defined]
        return array
    with outside():  # 64-bit types stop at the door of JAX's functions, as in `call_jax`
        return array.astype(narrow)


def _abstract(t: Any) -> Any:
    return core.shaped_abstractify(array_of(t))


def _put(tensors: Any, shardings: Any, layouts: Any, semantics: Any) -> Any:
    arrays = [array_of(t) for t in tensors]
    return pxla.shard_args(shardings, layouts, semantics, arrays)


def _constant(val: Any, aval: Any) -> Any:
    array = array_of(val)
    return mlir.get_constant_handler(type(array))(array, aval)


def register(cls: type) -> None:
    """Tell JAX that objects of this class are arrays."""
    core.pytype_aval_mappings[cls] = _abstract
    dtypes.register_canonicalize_value_handler(cls, array_of)
    pxla.shard_arg_handlers[cls] = _put
    mlir.register_constant_handler(cls, _constant)
