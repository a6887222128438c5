"""Values of the trie: all that is known for good of an op's results."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.meta import META
from leafax.functional.program.program import Aval

from ..dtypes import Size

# Where gradients that reach a value go.
NOWHERE, LEAF, NODE, EXTERNAL = range(4)


class Value:
    """A value in the trie, with all that is known of it for good.

    Attributes:
      index: its number in the program; -1 for `resting` values.
      aval: its abstract value, of which `shape`, `dtype` (NumPy's), `device` and `weak` are parts.
      requires_grad: PyTorch's flag of the tensor that holds it.
      role: `NOWHERE`, or how its gradient continues: into a leaf's `.grad` (LEAF), to the op
        that made it (NODE), to a graph that an earlier trace recorded (EXTERNAL).
      edge: the value at which `role` happened: a detached or overwritten tensor shares a number
        with another and yet has an edge of its own.
      state: the state that made it (the entry that computes it).
      out: which of the state's outputs it is.
      storage: number of the storage it lives in, and `version` of that storage then; both count
        from the trace's beginning.
      strides: how its elements lie in memory; None if row by row, see `_rules/strides`.
      apart: where a tensor was detached that has the number, and no edge either; 0 if none was.
      resting: the same facts for a tensor that has left the trace.
    """

    __slots__ = (
        "index", "aval", "shape", "dtype", "device", "requires_grad", "role", "edge", "state",
        "out", "storage", "version", "resting", "inference", "weak", "numel", "nbytes", "strides",
        "apart",
    )  # fmt: skip

    def __init__(
        self,
        index: int,
        aval: Aval,
        *,
        requires_grad: bool = False,
        role: int = NOWHERE,
        state: Any = None,
        out: int = 0,
        storage: int = -1,
        version: int = 0,
        inference: bool = False,
        strides: tuple[int, ...] | None = None,
    ) -> None:
        self.index = index
        self.aval = aval
        self.dtype = aval.dtype
        self.device = aval.device
        self.weak = aval.weak
        self.numel = aval.size
        self.nbytes = 0 if aval.device is META else aval.size * aval.dtype.itemsize
        self.requires_grad = requires_grad
        self.role = role
        self.edge: Value | None = self if role else None
        self.state = state
        self.out = out
        self.storage = index if storage == -1 else storage
        self.version = version
        self.inference = inference
        self.strides = strides
        self.apart = 0
        kind = (aval, requires_grad, role, inference, strides)
        self.resting = self if index < 0 else resting(*kind)
        self.shape: Size = Size(aval.shape) if index < 0 else self.resting.shape  # one a kind

    def __repr__(self) -> str:
        return f"<value {self.index} {self.dtype.name}{list(self.shape)} role={self.role}>"


_RESTING: dict[Any, Value] = {}


def resting(
    aval: Aval, requires_grad: bool = False, role: int = NOWHERE, inference: bool = False,
    strides: tuple[int, ...] | None = None,
) -> Value:  # fmt: skip
    """Return the value of tensors that rest on an array: one object a kind."""
    role = EXTERNAL if role == NODE else role
    key = (aval, requires_grad, role, inference, strides)
    value = _RESTING.get(key)
    if value is None:
        value = Value(
            -1, aval, requires_grad=requires_grad, role=role, inference=inference, strides=strides
        )
        _RESTING[key] = value
    return value
