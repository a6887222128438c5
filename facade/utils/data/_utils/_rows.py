"""Batches of rows of tensors, gathered by NumPy at once instead of row by row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._core.host_transfer import LARGEST_BATCH, room
from ...._core.run_log import LOADER
from ...._host.rule import is_free, is_plain
from ...._runtime.observation import observe
from ...._storage.host_arrays import data_of
from ...._tensor.tensor import Tensor
from ...._tracing.inputs import from_array
from ..dataset import Subset, TensorDataset
from .collate import collate_tensor_fn, default_collate, default_collate_fn_map


def rows_of(dataset: Any, keys: Any, collate_fn: Any) -> list[Any] | None:
    """Return the batch of a `TensorDataset`, or a subset of one, at these keys; None for others."""
    if collate_fn is not default_collate or type(keys) is not list:
        return None
    if default_collate_fn_map.get(Tensor) is not collate_tensor_fn:
        return None
    while type(dataset) is Subset and type(dataset.indices) in (list, range):
        if not _are_keys(keys, len(dataset.indices)):
            return None
        keys, dataset = [dataset.indices[key] for key in keys], dataset.dataset
    if type(dataset) is not TensorDataset or not _are_keys(keys, len(dataset)) or not is_free():
        return None
    found = []
    for tensor in dataset.tensors:
        if not is_plain(tensor) or tensor.requires_grad or tensor._v.inference:
            return None
        array = data_of(tensor, wait=True)
        if array is None:
            if tensor._array is None and not tensor._shares:
                observe(tensor, LOADER)  # it was not computed yet: else each row would be
                array = data_of(tensor, wait=True)
            if array is None:
                return None
        out = room((len(keys), *array.shape[1:]), array.dtype, LARGEST_BATCH)
        # Keys that are negative count from the end: what clips does not take them as they are.
        np.take(array, keys, 0, out=out, mode="clip" if min(keys) >= 0 else "wrap")
        found.append(from_array(out))
    return found


def _are_keys(keys: list[Any], size: int) -> bool:
    if not keys or not {int}.issuperset(map(type, keys)):
        return False
    return -size <= min(keys) and max(keys) < size
