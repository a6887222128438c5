"""Moving and casting the tensors of a module, which stay the same objects."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

from leafax.functional.program.meta import NO_DATA

from .... import __future__ as futures
from ...._core import grad_modes
from ...._core.dtypes import as_dtype
from ...._core.dtypes import dtype as dtype_class
from ...._ops.creation.factories import empty_like
from ...._ops.creation.to import _given
from ...._ops.creation.written_at_once import let_rest, values_of
from ...parameter import Parameter
from .members import Members

_COMPLEX = (
    "Complex modules are a new feature under active development whose design may change, and some "
    "modules might not work as expected when using complex tensors as parameters or buffers. "
    "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
    "if a complex module does not work as expected."
)
_TO_EMPTY = (
    "Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from "
    "meta to a different device."
)
_CAST = "a module that is cast or moved"


class Moving(Members):
    """Methods that change the memory of all parameters and buffers."""

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Any:
        """Set parameters, gradients and buffers to what `fn` makes of them; return the module.

        Parameters and gradients stay the objects that they are, unless
        `leafax.__future__` says otherwise; buffers are replaced.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        overwrites = futures.get_overwrite_module_params_on_conversion()
        for name, param in self._parameters.items():
            if param is None:
                continue
            grad = param.grad
            with grad_modes.no_grad():
                made = fn(param)
                if overwrites or made.is_meta != param.is_meta:
                    self._parameters[name] = new = Parameter(made, param.requires_grad)
                    if grad is not None:
                        new.grad = fn(grad).requires_grad_(grad.requires_grad)
                    continue
                param.data = made
                del made  # nobody else may hold what it returns: it would be shared
                if grad is not None:
                    grad.data = fn(grad)
            if grad is not None and param.grad is not grad:
                param.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def cuda(self, device: Any = None) -> Any:
        """Move all parameters and buffers to the GPU; return the module."""
        return self._convert(lambda t: t.cuda(device))

    def cpu(self) -> Any:
        """Move all parameters and buffers to the CPU; return the module."""
        return self._convert(lambda t: t.cpu())

    def ipu(self, device: Any = None) -> Any:
        """Move all parameters and buffers to an IPU; return the module."""
        return self._convert(lambda t: t.ipu(device))

    def xpu(self, device: Any = None) -> Any:
        """Move all parameters and buffers to an XPU; return the module."""
        return self._convert(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Any:
        """Move all parameters and buffers to an MTIA; return the module."""
        return self._convert(lambda t: t.mtia(device))

    def type(self, dst_type: Any) -> Any:
        """Cast all parameters and buffers; return the module."""
        return self._convert(lambda t: t.type(dst_type))

    def float(self) -> Any:
        """Cast what is floating point to float32; return the module."""
        return self._convert(lambda t: t.float() if t.is_floating_point() else t)

    def double(self) -> Any:
        """Cast what is floating point to float64; return the module."""
        return self._convert(lambda t: t.double() if t.is_floating_point() else t)

    def half(self) -> Any:
        """Cast what is floating point to float16; return the module."""
        return self._convert(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self) -> Any:
        """Cast what is floating point to bfloat16; return the module."""
        return self._convert(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Any:
        """Move all parameters and buffers to a device without their values; return the module."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Any:
        """Move all parameters and buffers to shared memory; return the module."""
        return self._apply(lambda t: t.share_memory_())

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Move all parameters and buffers, and cast those that are floating point or complex.

        Called as `to(device)`, `to(dtype)`, `to(device, dtype)` or `to(tensor)`; `memory_format`
        is for tensors of 4 and 5 dims.
        """
        given = _given(args, kwargs)
        where, dtype, layout = (given.get(k) for k in ("device", "dtype", "memory_format"))
        if "tensor" in given:
            where, dtype = given["tensor"].device, given["tensor"].dtype
        if dtype is not None:
            if not isinstance(dtype, dtype_class):
                dtype = as_dtype("to", dtype)
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(
                    "nn.Module.to only accepts floating point or complex dtypes, but got desired "
                    f"dtype={dtype}"
                )
            if dtype.is_complex:
                warnings.warn(_COMPLEX, stacklevel=2)

        def convert(t: Any) -> Any:
            cast = dtype if t.is_floating_point() or t.is_complex() else None
            try:
                if layout is not None and t.dim() in (4, 5):
                    return t.to(where, cast, memory_format=layout)
                return t.to(where, cast)
            except NotImplementedError as error:
                if str(error) != NO_DATA:
                    raise
                raise NotImplementedError(f"{NO_DATA} {_TO_EMPTY}") from None

        return self._convert(convert)

    def _convert(self, fn: Callable[[Any], Any]) -> Any:
        """Do `_apply` in a program of its own, where `fn` sees the values of a tensor alone.

        Nothing that is recorded before or after is compiled in another way for it.
        """
        let_rest(itertools.chain(self.parameters(), self.buffers()), _CAST)

        def convert(t: Any) -> Any:
            values = values_of(t)
            if values is None:
                return fn(t)
            made = fn(values)
            return t if made is values else made

        self._apply(convert)
        let_rest(itertools.chain(self.parameters(), self.buffers()), _CAST)
        return self
