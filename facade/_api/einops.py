"""einops on leafax's tensors: its backend is there as soon as einops is, whoever comes first.

einops looks for backends among the subclasses of a class of its own.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from .._core.dtypes import int64
from .._ops.creation.factories import arange
from .._ops.creation.from_arrays import from_numpy
from .._tensor.tensor import Tensor
from . import functions
from .when_imported import when_imported

_ops: Any = functions


def _make_backend(module: ModuleType) -> None:
    """Add a backend for leafax's tensors to einops."""
    base: Any = getattr(module, "AbstractBackend", None)
    if base is None:  # another version, which has its backends elsewhere
        return

    class LeafaxBackend(base):  # type: ignore[misc]
        framework_name = "leafax"

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Any:
            made = from_numpy(x)
            return made.requires_grad_() if made.is_floating_point() else made

        def to_numpy(self, x: Any) -> Any:
            return x.detach().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return arange(start, stop, dtype=int64)

        def reduce(self, x: Any, operation: str, reduced_axes: Any) -> Any:
            axes = tuple(reduced_axes)
            if operation in ("min", "max"):
                return getattr(x, f"a{operation}")(dim=axes)
            if operation in ("sum", "mean"):
                return getattr(x, operation)(dim=axes)
            if operation not in ("any", "all", "prod"):
                raise NotImplementedError("Unknown reduction ", operation)
            for axis in sorted(axes, reverse=True):
                x = getattr(x, operation)(dim=axis)
            return x

        def transpose(self, x: Any, axes: Any) -> Any:
            return x.permute(axes)

        def stack_on_zeroth_dimension(self, tensors: Any) -> Any:
            return _ops.stack(tensors)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            lengths = [-1] * n_axes
            for place, length in pos2len.items():
                x, lengths[place] = x.unsqueeze(place), length
            return x.expand(lengths)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def tile(self, x: Any, repeats: Any) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: Any, axis: int) -> Any:
            return _ops.cat(tensors, dim=axis)

        def is_float_type(self, x: Any) -> bool:
            return bool(x.is_floating_point())

        def einsum(self, pattern: str, *x: Any) -> Any:
            return _ops.einsum(pattern, *x)

    # einops asks the subclasses that there are: a class alone nobody would hold.
    module._leafax = LeafaxBackend  # type: ignore[attr-defined]


def watch() -> None:
    """Make einops take leafax's tensors, now or when it is imported."""
    when_imported("einops._backends", _make_backend)
