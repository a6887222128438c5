"""`autograd.Variable`, from before tensors could require gradients themselves."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from leafax.functional.program.dtypes import default_float

from .._core.handle import Handle
from .._core.python_data import name_of_type
from .._core.trie import local
from .._storage.shared_storage import detach
from .._tracing.inputs import from_array


class ImperativeEngine:
    """Answer what code for PyTorch asks of its engine, `Variable._execution_engine`."""

    def queue_callback(self, callback: Callable[[], Any], /) -> None:
        """Call `callback` when the innermost backward pass of this thread is over.

        Raises:
          RuntimeError: outside of a backward pass.
        """
        if not local.autograd.tasks:
            raise RuntimeError("Final callbacks can only be installed during backward pass.")
        local.autograd.tasks[-1].callbacks.append(callback)

    def is_checkpoint_valid(self) -> bool:
        """Tell if a reentrant checkpoint may run: not within `grad` or `backward(inputs=...)`."""
        return all(task.captures is None for task in local.autograd.tasks)


class _VariableMeta(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Handle)


class Variable(metaclass=_VariableMeta):
    """Return a tensor on the same data; `volatile` is ignored with a warning, as in PyTorch."""

    _execution_engine = ImperativeEngine()

    def __new__(cls, data: Any = None, requires_grad: bool = False, volatile: Any = None) -> Any:
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                UserWarning,
                stacklevel=2,
            )
            if requires_grad:
                raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            data = from_array(jnp.zeros((0,), default_float()))
        if not isinstance(data, Handle):
            raise TypeError(f"Variable data has to be a tensor, but got {name_of_type(data)}")
        out: Any = detach(data)
        if requires_grad and not (out.is_floating_point() or out.is_complex()):
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        return out._set_requires_grad(True) if requires_grad else out
