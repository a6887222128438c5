"""Methods that call Python functions on elements, and what NumPy asks of a tensor."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from .._core.dtypes import tensor_string
from .._core.handle import Handle
from .._dispatch.conj_neg_bits import held
from .._dispatch.record import apply
from .._ops.creation.from_arrays import from_numpy
from .._ops.creation.legacy_constructors import of_class
from .tensor import Tensor


def _values(self: Any, name: str, others: tuple[tuple[str, int, Any], ...]) -> list[np.ndarray]:
    """Return the arrays of a tensor that may be written to and of the others, in its shape."""
    if any(x.requires_grad for x in (self, *(x for *_, x in others)) if isinstance(x, Handle)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() "
            "instead."
        )
    arrays = [held(self)]
    for said, at, x in others:
        if not isinstance(x, Handle):
            raise TypeError(
                f"{name}(): argument '{said}' (position {at}) must be Tensor, not "
                f"{type(x).__name__}"
            )
        if x._v.dtype != self._v.dtype:
            what = f"argument '{said}'" if name == "map2_" else f"'{said}'"
            raise TypeError(
                f"{name}: expected {tensor_string(self._v.dtype)} for {what} (got "
                f"{tensor_string(x._v.dtype)})"
            )
        arrays.append(held(x.expand(tuple(self.shape))))  # type: ignore[attr-defined]
    return arrays


def _number(kind: str, made: Any) -> Any:
    """Convert what a function made of an element to a number of a dtype of this kind."""
    if kind in "biu":
        plain = isinstance(made, float) or kind == "b" and isinstance(made, complex)
        return made if plain else operator.index(made)
    if kind == "c" and isinstance(made, complex):
        return made
    if not hasattr(made, "__float__") and not hasattr(made, "__index__"):
        raise TypeError(f"must be real number, not {type(made).__name__}")
    return float(made)


def numbers(fn: Callable[..., Any], arrays: list[np.ndarray]) -> np.ndarray:
    """Call a Python function on the elements of arrays of one shape."""
    dtype = arrays[0].dtype
    kind = "f" if dtype.kind == "V" else dtype.kind  # bfloat16
    rows = zip(*[a.reshape(-1).tolist() for a in arrays], strict=True)
    made = [_number(kind, fn(*row)) for row in rows]
    return np.array(made, dtype).reshape(arrays[0].shape)


def _write(self: Any, fn: Callable[..., Any], arrays: list[np.ndarray]) -> Any:
    self.data.copy_(from_numpy(numbers(fn, arrays)))  # no version counts it
    return self


def apply_(self: Any, fn: Any) -> Any:
    """Apply a Python function to each element, in place; runs the program."""
    if self.requires_grad:
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."
        )
    if not callable(fn):
        raise TypeError(f"'{type(fn).__name__}' object is not callable")
    values = self.detach().resolve_conj().resolve_neg().numpy()
    self.data.copy_(from_numpy(numbers(fn, [values])))  # no version counts it
    return self


def map_(self: Any, other: Any, callable: Callable[[Any, Any], Any]) -> Any:
    """Set each element to what `callable` makes of it and that of `other`; runs the program.

    Raises:
      RuntimeError: if this tensor requires grad.
      TypeError: if `other` has another dtype.
    """
    return _write(self, callable, _values(self, "map_", (("other", 1, other),)))


def map2_(self: Any, x: Any, y: Any, callable: Callable[[Any, Any, Any], Any]) -> Any:
    """Apply `map_` with two other tensors."""
    return _write(self, callable, _values(self, "map2_", (("x", 1, x), ("y", 2, y))))


def __reversed__(self: Any) -> Any:  # noqa: N807
    """Return the tensor from its last slice to its first."""
    return self.flip(0) if self.dim() else self


def __array_wrap__(self: Any, array: np.ndarray) -> Any:  # noqa: N807
    """Make what NumPy's functions return for a tensor: a tensor (bools as uint8, as in PyTorch).

    NumPy would pass more, and warns that PyTorch's method does not take it; so it does of this.
    """
    return from_numpy(array.astype("uint8") if array.dtype == bool else array)


def as_subclass(self: Any, cls: type) -> Any:
    """Return this tensor as one of a class derived from `Tensor`, sharing its data and history."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    return of_class(apply(TABLE["alias"], self), cls)


def module_load(self: Any, other: Any, assign: bool = False) -> Any:
    """Return what `load_state_dict` makes of `other`: itself, or a copy into this tensor."""
    return other.detach() if assign else self.copy_(other).detach()


METHODS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (apply_, map_, map2_, __reversed__, __array_wrap__, as_subclass, module_load)
}
