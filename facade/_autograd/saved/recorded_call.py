"""A recorded call as its node sees it, and how PyTorch's nodes hold its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from leafax.functional.program.program import Slot

from ..._rules.saved_columns import slots_of, static_argument

ALIASES = {
    ("embedding", "indices"): "input", ("masked_select", "self"): "input",
}  # fmt: skip


_SEVERAL = frozenset({  # whose `dim` may be several
    "sum", "mean", "var", "std", "amax", "amin", "logsumexp", "var_mean", "std_mean", "nansum",
    "norm", "vector_norm",
})  # fmt: skip


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


_SPATIAL = frozenset({"kernel_size", "stride", "padding", "dilation", "output_padding"})


_UNSIGNED = frozenset({"ignore_index", "index", "start", "padding_idx", "source_dim"})


class RecordedCall:
    """A recorded call as its node sees it.

    Args:
      shapes, strides: of the operands; None for the strides that what was saved has.
      unpack: gives the tensor of an operand.
    """

    def __init__(
        self, call: Any, shapes: Sequence[Any], unpack: Callable[[int], Any],
        strides: Sequence[Any] | None,
    ) -> None:  # fmt: skip
        self.call, self.shapes, self.unpack = call, shapes, unpack
        self.strides = strides
        self.op = call.op.name
        self.slots = slots_of(call)

    def parameter(self, name: str) -> str | None:
        """Get the op's own name for PyTorch's `name`."""
        name = ALIASES.get((self.op, name), name)
        if name == "self":
            return self.call.op.parameters[1 if self.call.op.random else 0]  # type: ignore[no-any-return]
        return name if name in self.call.op.parameters else None

    def static(self, name: str) -> Any:
        """Get an argument as given; a number that became an input is a number again."""
        value = static_argument(self.call, name)
        if isinstance(value, Slot):
            if self.shapes[value.index] or name == self.call.op.parameters[0] != "exponent":
                raise KeyError(name)  # a tensor that the gradient does not read
            return self.unpack(value.index).item()
        if isinstance(value, (tuple, list)) and any(isinstance(v, Slot) for v in value):
            raise KeyError(name)  # tensors that the gradient does not read
        return value

    def shape(self, name: str) -> tuple[int, ...] | None:
        parameter = self.parameter(name)
        places = self.slots.get(parameter or "")
        return tuple(self.shapes[places[0]]) if places else None


def unpacked_stride(kept: RecordedCall, name: str) -> tuple[int, ...]:
    index = kept.slots[kept.parameter(name) or ""][0]
    return tuple(kept.unpack(index).stride() if kept.strides is None else kept.strides[index])


def as_kept(kept: RecordedCall, name: str, value: Any) -> Any:
    """Convert an argument to the form that PyTorch's node has it in."""
    if name == "reduction" and isinstance(value, str):
        return _REDUCTIONS[value]
    if name in _SPATIAL and (spatial := count_spatial_dims(kept.op, kept)):
        if value is None:
            return ()
        return (value,) * spatial if isinstance(value, int) else tuple(value)
    if name == "dim" and kept.op in _SEVERAL and isinstance(value, int):
        return (unsigned(value),)
    if name in ("shifts", "dims") and isinstance(value, int):
        return (unsigned(value),)
    if name in ("dims", "shifts") and value is None:
        return ()
    if name.startswith("dim") or name == "shifts" or name in _UNSIGNED:
        return unsigned(value)
    if name == "p" and isinstance(value, int) and kept.op in ("pdist", "cdist"):
        return float(value)
    return value


def unsigned(value: Any) -> Any:
    """Convert a negative number as C++ prints it without its sign; sequences by element."""
    if isinstance(value, (tuple, list)):
        return tuple(unsigned(v) for v in value)
    if isinstance(value, int) and not isinstance(value, bool) and value < 0:
        return value + 2**64
    return value


def count_spatial_dims(op: str, kept: RecordedCall) -> int:
    """Count the spatial dimensions of an op, 0 for ops without."""
    digit = re.search(r"(\d)d", op)
    if digit is not None:
        return int(digit[1])
    return 2 if op in ("unfold", "fold") and "kernel_size" in kept.call.op.parameters else 0
