"""`Tensor`: what users hold. Methods come from the op table; here is what is not an op."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.meta import NO_DATA, MetaArray
from leafax.functional.program.op import TABLE

from .._core.faults import check_faults
from .._core.handle import Handle
from .._core.host_transfer import on_host, raw, to_device
from .._core.trie import local
from .._core.vmap_checks import hides_grad
from .._core.warn_once import drops_imaginary, warn_once
from .._dispatch import record
from .._dispatch.conj_neg_bits import check_numpy
from .._dispatch.export import function_of
from .._dispatch.record import register
from .._dispatch.tangents import get_tangent
from .._host.compute import INTEGER
from .._host.looks import MOST
from .._host.rule import is_free, memory_of
from .._ops.creation.dlpack import exported
from .._ops.creation.from_data import tensor
from .._ops.creation.legacy_constructors import legacy_tensor
from .._ops.creation.to import brought_to, to
from .._ops.indexing import getitem
from .._ops.writes.apply_inplace import apply_inplace
from .._runtime.host.loop_over_integers import items_of
from .._runtime.observation import observe
from .._storage.shared_storage import share_views
from .._tracing.tracer_checks import refuse_constant
from . import as_jax, copying
from .autograd_methods import AutogradMixin
from .device_methods import DeviceMixin, device_of, refusal
from .operators import install
from .printing import format_shape, format_tensor
from .shape_methods import FactsMixin

_TO_SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)


class Tensor(FactsMixin, DeviceMixin, AutogradMixin):
    """An array with PyTorch's behaviour, recorded and run as JAX programs.

    Reading a value (`item()`, `print`, `bool()`, NumPy) runs what it takes; all else records.

    >>> import leafax
    >>> x = leafax.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __module__ = "leafax"  # where users find it, and messages say it is

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return legacy_tensor(cls, args, kwargs)

    # ------------------------------------------------------------ values

    def _value(self, reason: str) -> np.ndarray:
        try:
            return on_host(observe(self, reason))
        except NotImplementedError as error:
            raise refusal(self, reason, error) from None

    def item(self) -> Any:
        """Return the value of a tensor of one element, as a Python number; runs the program."""
        if self._v.numel != 1:
            if local.vmap is not None:
                observe(self, "item()")  # `vmap` refuses it whatever its size is
            raise RuntimeError(
                f"a Tensor with {self._v.numel} elements cannot be converted to Scalar"
            )
        try:
            return np.frombuffer(raw(observe(self, "item()")), self._v.dtype).item()
        except NotImplementedError as error:
            raise refusal(self, "item()", error) from None

    def tolist(self) -> Any:
        """Return nested lists of Python numbers; run the program."""
        return self._value("tolist()").tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the values as a NumPy array; runs the program."""
        if force:
            return self.detach().resolve_conj().resolve_neg().numpy()  # type: ignore[no-any-return]
        if self.requires_grad and local.mode.enabled and not hides_grad(self):
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if self._lens:
            check_numpy(self)
        array = self._value("numpy()")
        return array.copy() if not array.flags.writeable else array

    def __array__(self, dtype: Any = None) -> np.ndarray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def jax(self) -> Any:
        """Return the values as the JAX array that holds them; runs the program.

        It is a copy only of small data that lie on the host, which stay there.
        """
        if self._v.numel <= MOST and is_free() and (found := memory_of(self)) is not None:
            return to_device(found)
        found = observe(self, "jax()")
        if type(found) is MetaArray:
            raise NotImplementedError(NO_DATA)
        return found

    def __jax_array__(self) -> Any:
        refuse_constant()
        return self.jax()

    def __dlpack__(
        self, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        return exported(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> Any:
        return self.jax().__dlpack_device__()  # of the JAX array

    def __bool__(self) -> bool:
        if self.numel() == 1:
            return bool(self._value("bool()").reshape(()))
        if local.vmap is not None:
            observe(self, "bool()")
        if self.numel() == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __float__(self) -> float:
        return float(_real(self._scalar("float"), "double"))

    def __int__(self) -> int:
        return int(_real(self._scalar("int"), "int64_t"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if self._v is INTEGER and type(self._array) is np.ndarray:  # most: of a loop over indices
            check_faults()
            return int(self._array)
        if self.numel() != 1 or self._v.dtype.kind not in "iub":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def _scalar(self, kind: str) -> Any:
        warned = self.requires_grad and local.mode.enabled and kind != "int"
        if warned and not hides_grad(self):
            warn_once(_TO_SCALAR)
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __len__(self) -> int:
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return int(self._v.shape[0])

    def __iter__(self) -> Any:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        items = items_of(self) if type(self) is Tensor else None
        return iter(self.unbind(0) if items is None else items)

    def __contains__(self, x: Any) -> bool:
        if not isinstance(x, (Handle, Number)):
            raise RuntimeError(
                "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                f"{type(x)}."
            )
        return bool(self.eq(x).any().item())  # type: ignore[attr-defined]

    __hash__ = object.__hash__  # not Python's `id`: optimizers look their state up every step

    def __repr__(self) -> str:
        return _repr(self)

    def __format__(self, spec: str) -> str:
        if self.dim() == 0 and type(self) is Tensor and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __getitem__(self, index: Any) -> Any:
        return getitem.get(self, index)

    def __setitem__(self, index: Any, value: Any) -> None:
        getitem.put(self, index, value)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    # ------------------------------------------------------------ copies

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Return this tensor with another dtype or on another device; itself if nothing changes."""
        return to(self, *args, **kwargs)

    def __lower__(self, outs: Any, ins: Any) -> Any:
        """Return the protocol of `leafax.functional.lower`."""
        return function_of(outs, ins)

    __deepcopy__, __copy__ = copying.__deepcopy__, copying.__copy__
    __reduce_ex__ = copying.__reduce_ex__

    def copy_(self, other: Any, non_blocking: bool = False) -> Any:
        """Copy the values of `other` (a tensor, broadcast and cast, or a number) into this one."""
        if not isinstance(other, Tensor):
            if not isinstance(other, (bool, int, float, complex, np.number, np.bool_)):
                raise TypeError(
                    "copy_(): argument 'other' (position 1) must be Tensor, not "
                    f"{type(other).__name__}"
                )
            other = tensor(other)
        if other._v.device is not self._v.device:
            other = brought_to(self, other)
        apply_inplace(TABLE["copy"], self, other)
        drops_imaginary(other._v.dtype, self._v.dtype, self._v.numel)
        return self

    def fill_(self, value: Any) -> Any:
        """Set every element to `value`."""
        apply_inplace(TABLE["fill"], self, value)
        if isinstance(value, Tensor):
            drops_imaginary(value._v.dtype, self._v.dtype, self._v.numel)
        return self

    def zero_(self) -> Any:
        """Set every element to 0."""
        return apply_inplace(TABLE["zero"], self)

    def __dir__(self) -> Any:
        return [n for n in super().__dir__() if not n.startswith("_v") and n != "volatile"]


def _real(x: Any, kind: str) -> Any:
    """Return a number as a real one; `kind` is C++'s type that it is to fit."""
    if not isinstance(x, complex):
        return x
    if x.imag:
        raise RuntimeError(f"value cannot be converted to type {kind} without overflow")
    return x.real


def _repr(t: Tensor) -> str:
    if local.vmap is not None:
        text = local.vmap.print_batch(t, _repr)
        if text is not None:
            return text
    suffixes = []
    try:
        fn = t.grad_fn
        maker = None if fn is None else type(fn).__name__
    except RuntimeError:  # a view that was written to where autograd could not follow
        maker = "Invalid"
    if maker is not None:
        suffixes.append(f"grad_fn=<{maker}>")
    elif t.requires_grad:
        suffixes.append("requires_grad=True")
    if local.mode.dual:
        along = get_tangent(t, local.mode.dual[-1])
        if along is not None:
            suffixes.append(f"tangent={along}")
    plain = type(t) is Tensor or type(t) is record._parameter_class
    prefix = "tensor(" if plain else f"{type(t).__name__}("
    how: Any = {"suffixes": suffixes, "default_dtype": default_float(), "prefix": prefix}
    if t.is_meta:
        text = format_shape(t.shape, t._v.dtype, **how)
    else:
        where = t.device if t._v.device is not None and t.device != device_of(None) else None
        text = format_tensor(on_host(observe(t, "print")), device=where, **how)
    return f"Parameter({text})" if not plain and getattr(t, "_is_param", False) else text


register(Tensor, share_views)
as_jax.register(Tensor)
install(Tensor)
