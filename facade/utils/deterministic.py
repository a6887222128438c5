"""PyTorch's `torch.utils.deterministic`."""

import sys
import types

from .._ops.creation import fill_deterministic as _fill_deterministic


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Tell whether `empty` and its like fill memory in deterministic mode."""
        return _fill_deterministic.fill_uninitialized_memory[0]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
        _fill_deterministic.fill_uninitialized_memory[0] = mode


sys.modules[__name__].__class__ = _Deterministic
