"""Samples put together into a batch, whose tensors are one input each of the program they go to.

Arrays of NumPy are stacked by NumPy, in memory that XLA takes as it is: no tensor is made of a
sample, and no program runs.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ...._core.dtypes import float64
from ...._core.grad_modes import is_inference_mode_enabled
from ...._core.handle import Handle
from ...._core.host_transfer import LARGEST_BATCH, room
from ...._core.overrides.state import finds_override
from ...._ops.calls.functions import function
from ...._ops.creation.from_arrays import check_array
from ...._ops.creation.from_data import as_tensor, tensor
from ...._tensor.tensor import Tensor
from ...._tracing.inputs import from_array
from ._containers import rebuilt_mapping, rebuilt_sequence

stack = function(TABLE["stack"])

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)
_Map = dict[Any, Callable[..., Any]] | None


def default_convert(data: Any) -> Any:
    """Make tensors of the NumPy arrays and numbers in a sample; the rest stays as it is.

    >>> import numpy, leafax
    >>> leafax.utils.data.default_convert([numpy.array([0, 1]), "a"])
    [tensor([0, 1]), 'a']
    """
    kind = type(data)
    if isinstance(data, Handle):
        return data
    if kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_"):
        if kind is np.ndarray and np_str_obj_array_pattern.search(data.dtype.str):
            return data
        return as_tensor(data)
    if isinstance(data, Mapping):
        return rebuilt_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        found = [default_convert(item) for item in data]
        return kind(*found) if hasattr(data, "_fields") else found
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return rebuilt_sequence(data, map(default_convert, data))
    return data


def collate(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Put samples together, as a map from types to functions says.

    Args:
      batch: the samples, alike.
      collate_fn_map: the function of a type takes the samples, and the map by its name.

    Returns:
      One object like a sample, whose leaves are batches.

    Raises:
      RuntimeError: if sequences have different lengths.
      TypeError: for a sample of a type that is neither in the map nor a container.

    >>> import leafax
    >>> from leafax.utils.data._utils.collate import collate
    >>> collate([(1, 2), (3, 4)], collate_fn_map={int: lambda batch, collate_fn_map: sum(batch)})
    [4, 6]
    """
    elem = batch[0]
    kind = type(elem)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known in collate_fn_map:
            if isinstance(elem, known):
                return collate_fn_map[known](batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, Mapping):
        columns = {key: [sample[key] for sample in batch] for key in elem}
        content = {key: collate(x, collate_fn_map=collate_fn_map) for key, x in columns.items()}
        return rebuilt_mapping(elem, content)
    if isinstance(elem, tuple) and hasattr(elem, "_fields"):
        return kind(*[collate(x, collate_fn_map=collate_fn_map) for x in zip(*batch, strict=False)])
    if isinstance(elem, Sequence):
        if any(len(sample) != len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        found = [collate(x, collate_fn_map=collate_fn_map) for x in zip(*batch, strict=True)]
        return found if isinstance(elem, tuple) else rebuilt_sequence(elem, found)
    raise TypeError(default_collate_err_msg_format.format(kind))


def collate_tensor_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Stack tensors."""
    if finds_override(batch):  # as a program would
        return sys.modules["leafax"].stack(batch, 0)
    return stack(batch, 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Stack arrays of NumPy; of strings and objects there is no tensor."""
    elem = batch[0]
    if np_str_obj_array_pattern.search(elem.dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(elem.dtype))
    if (collate_fn_map or {}).get(Tensor) is collate_tensor_fn:
        found = _stacked(batch)
        if found is not None:
            return found
    return collate([as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def _stacked(batch: Sequence[Any]) -> Any:
    """Arrays that are alike stacked by NumPy; None for others."""
    elem = batch[0]
    shape, dtype = elem.shape, elem.dtype
    for array in batch:
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            return None
        flags = array.flags
        if not flags.writeable:
            return None
        if not flags.c_contiguous:
            check_array(array)
    check_array(elem)
    out = room((len(batch), *shape), dtype, LARGEST_BATCH)
    np.stack(batch, out=out)
    return from_array(out, inference=is_inference_mode_enabled())


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Make a tensor of numbers of NumPy."""
    return as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Make a tensor of Python's floats: in double precision, as they are."""
    return tensor(batch, dtype=float64)


def collate_int_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Make a tensor of Python's integers or bools."""
    return tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: _Map = None) -> Any:
    """Leave strings as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch: Any) -> Any:
    """Put samples together into a batch: tensors, arrays and numbers become tensors.

    >>> import leafax
    >>> leafax.utils.data.default_collate([{"x": 0, "name": "a"}, {"x": 1, "name": "b"}])
    {'x': tensor([0, 1]), 'name': ['a', 'b']}
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)
