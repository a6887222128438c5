"""A weak reference to a tensor that says whether the tensor is gone."""

from __future__ import annotations

from typing import Any
from weakref import ref

from .._runtime.gc_support import drop_unreached


class WeakTensorRef:
    """`torch._C._WeakTensorRef`: `expired()` is True once the tensor is gone."""

    def __init__(self, tensor: Any) -> None:
        self._ref = ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor is gone."""
        if self._ref() is not None:
            drop_unreached()  # a leaf of the pending program that nobody else holds is gone
        return self._ref() is None
