"""The functions that checkpoints call: they make tensors of the memory of a file.

Their names are PyTorch's, since files name them: `torch._utils._rebuild_tensor_v2`.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.meta import MetaArray

from .._core.dtypes import dtype as dtype_class
from .._core.handle import Handle
from .._dispatch.conj_neg_bits import _neg_view
from .._ops.creation.from_arrays import from_numpy, wrap
from .._storage.lay_out import lay_out
from .._storage.write import written
from ..nn.parameter import Parameter
from ._memory import ArrayMemory, FileMemory


def _memory_of(storage: Any) -> Any:
    if not isinstance(storage, (FileMemory, ArrayMemory)):
        raise RuntimeError(f"a tensor of the file has no storage, but a {type(storage).__name__}")
    return storage


def _finished(made: Any, requires_grad: Any, metadata: Any) -> Any:
    if metadata:
        made = _with_bits(made, metadata)
    if isinstance(made, Handle) and requires_grad:
        made.requires_grad_()  # type: ignore[attr-defined]
    return made


def _with_bits(made: Any, metadata: Any) -> Any:
    """Return a tensor that is conjugated or negated lazily, as the file says."""
    if not isinstance(made, Handle):
        raise NotImplementedError(
            f"a tensor of the file carries metadata {metadata!r}; resolve it in torch "
            "(`resolve_conj`, `resolve_neg`) before saving"
        )
    if metadata.get("conj"):
        made = made.conj()  # type: ignore[attr-defined]
    if metadata.get("neg"):
        made = _neg_view(made)
    return written(made.data)  # type: ignore[attr-defined]


def _rebuild_tensor(storage: Any, storage_offset: Any, size: Any, stride: Any) -> Any:
    memory = _memory_of(storage)
    return memory.make(memory.kind, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, metadata: Any = None,
) -> Any:  # fmt: skip
    made = _rebuild_tensor(storage, storage_offset, size, stride)
    return _finished(made, requires_grad, metadata)


def _rebuild_tensor_v3(
    storage: Any, storage_offset: Any, size: Any, stride: Any, requires_grad: Any,
    backward_hooks: Any, dtype: Any, metadata: Any = None,
) -> Any:  # fmt: skip
    memory = _memory_of(storage)
    if not isinstance(dtype, dtype_class):
        raise RuntimeError(f"a tensor of the file has no dtype, but {dtype!r}")
    made = memory.make(dtype.np, storage_offset, size, stride)
    return _finished(made, requires_grad, metadata)


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Any:
    if isinstance(data, np.ndarray):
        return data
    return Parameter(data, bool(requires_grad))


def _rebuild_parameter_with_state(
    data: Any, requires_grad: Any, backward_hooks: Any, state: Any
) -> Any:
    return _with_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _with_state(made: Any, state: Any) -> Any:
    """`made` with the attributes that it had; arrays have none."""
    if isinstance(made, Handle):
        slots = {}
        if isinstance(state, tuple):
            state, slots = state
        for name, value in {**(state or {}), **(slots or {})}.items():
            setattr(made, name, value)
    return made


def _rebuild_from_type_v2(func: Any, new_type: Any, args: Any, state: Any) -> Any:
    made = func(*args)
    if isinstance(made, Handle) and type(made) is not new_type:
        made.__class__ = new_type
    if hasattr(new_type, "__setstate__") and isinstance(made, new_type):
        made.__setstate__(state)
        return made
    return _with_state(made, state)


def _rebuild_device_tensor_from_numpy(
    data: Any, dtype: Any, device: Any, requires_grad: Any
) -> Any:
    return _finished(from_numpy(data).to(dtype), requires_grad, None)


def _rebuild_device_tensor_from_cpu_tensor(
    data: Any, dtype: Any, device: Any, requires_grad: Any
) -> Any:
    return _finished(data.to(dtype) if isinstance(data, Handle) else data, requires_grad, None)  # type: ignore[attr-defined]


def _rebuild_meta_tensor_no_storage(dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
    made = wrap(MetaArray(size, dtype.np))
    if tuple(stride) != contiguous_strides(tuple(size)):
        made = lay_out(made, tuple(stride))
    return _finished(made, requires_grad, None)


def _refusing(name: str, kind: str) -> Any:
    def refuse(*args: Any) -> NoReturn:
        raise NotImplementedError(
            f"the file holds a {kind} tensor ({name}): there are no {kind} tensors in leafax"
        )

    return refuse


REFUSED = {
    name: _refusing(name, kind)
    for name, kind in {
        "_rebuild_qtensor": "quantized",
        "_rebuild_sparse_tensor": "sparse",
        "_rebuild_nested_tensor": "nested",
        "_rebuild_wrapper_subclass": "wrapper",
    }.items()
}
UTILS = {
    f.__name__: f
    for f in (
        _rebuild_parameter, _rebuild_parameter_with_state, _rebuild_tensor, _rebuild_tensor_v2,
        _rebuild_tensor_v3, _rebuild_device_tensor_from_numpy,
        _rebuild_device_tensor_from_cpu_tensor, _rebuild_meta_tensor_no_storage,
    )
}  # fmt: skip
