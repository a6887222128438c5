"""Tensors from Python data, NumPy arrays and JAX arrays, and the factory functions."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from sys import getrefcount
from typing import Any

import jax
import numpy as np

from leafax.functional import TABLE, default_float, scalar_name

from ._channels_last import strides_in
from ._dtype import as_dtype, complex64, int64, of
from ._dtype import bool as bool_dtype
from ._dtype import dtype as dtype_class
from ._enter import from_array
from ._factories import takes_out
from ._handle import Handle
from ._host import TEMPORARY, is_own, snapshot
from ._memory_format import RANKS, contiguous_format, preserve_format
from ._once import warn_once
from ._python_data import name_of_type, read
from ._random import key as random_key
from ._record import apply
from ._trace import local


def wrap(array: Any, requires_grad: bool = False) -> Any:
    """A tensor on a JAX array, which it holds without a copy."""
    return from_array(array, requires_grad=requires_grad, inference=local.mode.inference)


def _numpy(data: Any, dtype: Any) -> np.ndarray:
    """Python data with PyTorch's default dtypes."""
    want = None if dtype is None else _np(dtype, "tensor")
    if isinstance(data, (list, tuple)) or not hasattr(data, "__array__"):
        return read(data, want)
    array = np.asarray(data)
    _check_dtype(array)
    return array if want is None or array.dtype == want else array.astype(want)


def _check_dtype(array: np.ndarray) -> None:
    if not array.flags.c_contiguous and array.size and min(array.strides) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative "
            "strides are not currently supported. (You can probably work around this by making a "
            "copy of your array  with array.copy().) "
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy "
            "array to reallocate the memory."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    try:
        of(array.dtype)
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {array.dtype.type.__module__}."
            f"{array.dtype.type.__name__}. The only supported types are: float64, float32, "
            "float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, "
            "uint8, and bool."
        ) from None


def tensor(
    data: Any,
    *,
    dtype: dtype_class | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Any:
    """A new leaf with a copy of `data`.

    Args:
      data: number, nested sequence, NumPy array, JAX array or tensor.
      dtype: element type; from the data if None (Python floats become the default dtype,
        ints int64).
      requires_grad: whether gradients are computed for it.

    >>> import leafax
    >>> leafax.tensor([1.0, 2.0])
    tensor([1., 2.])
    """
    if dtype is not None and not isinstance(dtype, dtype_class):
        dtype = as_dtype("tensor", dtype)
    if isinstance(data, Handle):
        return copied(data, dtype, device, requires_grad, "torch.tensor")
    array = _numpy(data, dtype)
    out = wrap(snapshot(array))
    if isinstance(data, np.ndarray):
        out = _laid(data, out)
    return finish(out, requires_grad, device)


def copied(data: Any, dtype: Any, device: Any, requires_grad: bool, said: str) -> Any:
    """A new leaf with the values of a tensor, with a word on what the caller meant.

    Args:
      said: what the warning calls the function.
    """
    warnings.warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach()"
        ".clone() or sourceTensor.detach().clone().requires_grad_(True), rather than "
        f"{said}(sourceTensor).",
        UserWarning,
        stacklevel=3,
    )
    out = data.detach().clone()
    out = out if dtype is None else out.to(dtype)
    return finish(out, requires_grad, device)


def _leaf(out: Any) -> Any:
    if out._v.dtype.kind in "biu":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return out.requires_grad_()


def as_tensor(data: Any, dtype: dtype_class | None = None, device: Any = None) -> Any:
    """`data` as a tensor: itself if it is one, its array if that is JAX's, else a copy."""
    if isinstance(data, Handle):
        out: Any = data
    elif isinstance(data, jax.Array):
        out = wrap(data)
    else:
        return tensor(data, dtype=dtype, device=device)
    if dtype is not None and out.dtype is not dtype:
        out = out.to(dtype)
    return out if device is None else out.to(device)


def asarray(
    obj: Any, *, dtype: dtype_class | None = None, device: Any = None, copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Any:  # fmt: skip
    """`as_tensor` with a say in whether it is copied, and in whether gradients reach it.

    Args:
      copy: True for a copy, also of a tensor; False for an error where there must be one. What
        comes from Python or NumPy is copied in any case, see `from_numpy`.
      requires_grad: None keeps what a tensor has; False cuts it from its history.

    Raises:
      ValueError: if `copy=False` and `obj` is no tensor or array of that dtype.
      RuntimeError: if a tensor of integers would require grad, or `copy=False` for a NumPy scalar.
    """
    if requires_grad is None and isinstance(obj, Handle):
        requires_grad = bool(obj.requires_grad)  # type: ignore[attr-defined]
        if requires_grad:
            warn_once(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad "
                "instead of False. Pass requires_grad=False explicitly to get the old behavior and "
                "silence this warning."
            )
    if isinstance(obj, (bytes, bytearray, memoryview)):
        from ._buffers import frombuffer

        obj = frombuffer(obj, dtype=dtype or of(default_float()))
    aliasable = isinstance(obj, (Handle, jax.Array, np.ndarray))
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    if copy is False and not aliasable:
        raise ValueError("can't alias arbitrary sequence into a tensor.")
    out = obj if isinstance(obj, Handle) else as_tensor(obj, None if aliasable else dtype)
    if copy is False and dtype is not None and out.dtype is not dtype:
        have, want = scalar_name(out._v.dtype), scalar_name(dtype.np)
        raise ValueError(f"can't alias tensor with dtype '{have}' into dtype '{want}'.")
    out = as_tensor(out, dtype, device)
    if out is obj and copy:
        out = out.clone()
    if not requires_grad:
        return out.requires_grad_(False) if out.is_leaf else out.detach()
    return _leaf(out)


def from_numpy(array: np.ndarray) -> Any:
    """A tensor with the data of a NumPy array, copied to the device.

    PyTorch shares the memory; arrays of JAX are immutable, so here later writes to `array` are
    not seen.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {name_of_type(array)})")
    _check_dtype(array)
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor. This type of warning will be suppressed for the rest of this program."
        )
    if getrefcount(array) == TEMPORARY and is_own(array):
        return wrap(array)
    return _laid(array, wrap(snapshot(array)))


def _laid(array: np.ndarray, made: Any) -> Any:
    """Let a copy of an array lie in memory as the array does, if it does so without gaps."""
    if array.flags.c_contiguous or not array.size:
        return made
    order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
    if not array.transpose(order).flags.c_contiguous:
        return made
    from ._strided import lie

    return lie(made, tuple(step // array.itemsize for step in array.strides))


def size_of(args: tuple[Any, ...], name: str) -> tuple[int, ...]:
    """`zeros(2, 3)` and `zeros((2, 3))` alike, for the function of this name."""
    if not args:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    packed = len(args) == 1 and isinstance(args[0], (tuple, list))
    args = tuple(args[0]) if packed else args
    for k, a in enumerate(args):
        if type(a) is not int and not _is_length(a, k):
            raise _no_length(name, a, k, packed)
    sizes = tuple([int(a) for a in args])
    for n in sizes:
        if n < 0 and name != "zeros":  # which has words of its own
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(sizes)}"
            )
    if math.prod(sizes) >= 1 << 60:  # XLA would end the process
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    return sizes


def _is_length(x: Any, place: int) -> bool:
    """Whether `x` may be a length at this place of a size; PyTorch looks at the first for bools."""
    if isinstance(x, bool):
        return place > 0
    if isinstance(x, Handle):
        return bool(x._v.dtype.kind in "iu")
    return not isinstance(x, (float, complex, np.bool_)) and hasattr(type(x), "__index__")


def _no_length(name: str, x: Any, place: int, packed: bool) -> TypeError:
    kind = name_of_type(x)
    if place:
        return TypeError(
            f"{name}(): argument 'size' failed to unpack the object at pos {place + 1} with error "
            f'"type must be tuple of ints,but got {kind}"'
        )
    found = f"but found element of type {kind} at pos 0" if packed else f"not {kind}"
    return TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, {found}")


def finish(out: Any, requires_grad: bool, device: Any) -> Any:
    """A new tensor where it was asked for, and as a leaf if it requires grad."""
    if device is not None:
        out = out.to(device)
    return _leaf(out) if requires_grad else out


def _np(dtype: Any, function: str = "empty") -> np.dtype:
    return default_float() if dtype is None else as_dtype(function, dtype).np


def _filled(name: str) -> Callable[..., Any]:
    def factory(
        *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None,
        layout: Any = None, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        size = _named_size(name, size, named)
        made = apply(TABLE[name], size_of(size, name), _np(dtype, name))
        return finish(made, requires_grad, device)

    factory.__name__ = name
    factory.__doc__ = f"A tensor of {name}, `size` ints or a tuple; dtype the default float."
    return takes_out()(factory)


def _named_size(name: str, size: Any, named: dict[str, Any]) -> Any:
    """The size, which may come by its name; nothing else may."""
    for k in named:
        if k != "size":
            raise TypeError(f"{name}() got an unexpected keyword argument '{k}'")
    return (named["size"],) if named else size


zeros = _filled("zeros")
ones = _filled("ones")


@takes_out("resized")
def empty(*size: Any, memory_format: Any = None, **kwargs: Any) -> Any:
    """A tensor whose values mean nothing (zeros here)."""
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    made = zeros(size_of((kwargs.pop("size"),) if "size" in kwargs else size, "empty"), **kwargs)
    if memory_format not in RANKS:
        return made
    from ._strided import lie

    return lie(made, strides_in(made.shape, memory_format))


def need_shape(name: str, size: Any) -> None:
    """Refuse an int where a function takes a tuple of them."""
    if isinstance(size, (int, float)):
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, not "
            f"{type(size).__name__}"
        )


@takes_out()
def full(
    size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """A tensor of `size` filled with a number; its dtype follows the number's kind."""
    if isinstance(fill_value, Handle):
        fill_value = fill_value.item()  # type: ignore[attr-defined]
    need_shape("full", size)
    if not isinstance(fill_value, (int, float, complex, np.number, np.bool_, Handle)):
        raise TypeError(
            "full(): argument 'fill_value' (position 2) must be Number, not "
            f"{type(fill_value).__name__}"
        )
    if dtype is None:
        kinds: dict[type, np.dtype] = {bool: bool_dtype.np, int: int64.np}
        kind = int if isinstance(fill_value, np.integer) else type(fill_value)
        np_dtype = kinds.get(kind, default_float())
        if isinstance(fill_value, complex):
            np_dtype = complex64.np
    else:
        np_dtype = _np(dtype, "full")
    made = apply(TABLE["full"], size_of((size,), "full"), fill_value, np_dtype)
    return finish(made, requires_grad, device)


@takes_out("count")
def arange(
    *bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None,
    requires_grad: bool = False, device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """`[start, start + step, ...)` up to `end`; int64 if all are ints.

    Called as `arange(end)` or `arange(start, end, step)`.
    """
    if len(bounds) > 3:
        raise TypeError("arange() takes at most 3 positional arguments")
    if len(bounds) == 1 and end is None:
        (end,) = bounds
    elif bounds:
        start, end, step = (*bounds, *(start, end, step)[len(bounds) :])
    if end is None:
        raise TypeError('arange() missing 1 required positional arguments: "end"')
    numbers = [x.item() if isinstance(x, (Handle, np.generic)) else x for x in (start, end, step)]  # type: ignore[attr-defined]
    if dtype is None:
        floats = any(isinstance(x, float) for x in numbers)
        np_dtype = default_float() if floats else int64.np
    else:
        np_dtype = _np(dtype, "arange")
    return finish(apply(TABLE["arange"], *numbers, np_dtype), requires_grad, device)


def _scalars(name: str, start: Any, end: Any, steps: Any) -> tuple[Any, Any, int]:
    """The ends and the number of steps of `linspace` and `logspace`."""
    dims = [x.dim() if isinstance(x, Handle) else None for x in (start, end)]
    if any(dims):
        told = [
            f"{which} with {n} dimension(s)"
            for which, n in zip(("start", "end"), dims, strict=True)
            if n is not None
        ]
        raise RuntimeError(
            f"{name} only supports 0-dimensional start and end tensors, but got "
            f"{' and '.join(told)}."
        )
    return _scalar(start), _scalar(end), operator.index(None if steps is True else steps)  # type: ignore[arg-type]


def _scalar(x: Any) -> Any:
    number = x.item() if isinstance(x, Handle) else x  # type: ignore[attr-defined]
    return number if isinstance(number, complex) else float(number)


@takes_out("count")
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """`steps` numbers from `start` to `end`, both included."""
    ends = _scalars("linspace", start, end, steps)
    want = None if dtype is None else _np(dtype, "linspace")
    return finish(apply(TABLE["linspace"], *ends, want), requires_grad, device)


@takes_out("count")
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None,
    requires_grad: bool = False, device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """`steps` numbers from `base ** start` to `base ** end`."""
    ends = _scalars("logspace", start, end, steps)
    want = None if dtype is None else _np(dtype, "logspace")
    return finish(apply(TABLE["logspace"], *ends, float(base), want), requires_grad, device)


@takes_out()
def eye(
    n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Ones on the diagonal, zeros elsewhere."""
    if isinstance(n, bool) or isinstance(m, bool):
        raise TypeError("eye(): argument 'n' (position 1) must be int, not bool")
    made = apply(TABLE["eye"], n, n if m is None else m, _np(dtype))
    return finish(made, requires_grad, device)


def _random(name: str) -> Callable[..., Any]:
    def factory(
        *size: Any, generator: Any = None, dtype: Any = None, requires_grad: bool = False,
        device: Any = None, layout: Any = None, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        size = _named_size(name, size, named)
        made = apply(TABLE[name], random_key(generator), size_of(size, name), _np(dtype, name))
        return finish(made, requires_grad, device)

    factory.__name__ = name
    return takes_out("resized" if name == "randn" else "shape")(factory)


rand = _random("rand")
rand.__doc__ = "Numbers drawn uniformly from [0, 1), of shape `size`."
randn = _random("randn")
randn.__doc__ = "Numbers drawn from the standard normal distribution, of shape `size`."


@takes_out()
def randint(
    *bounds: Any, low: Any = 0, high: Any = None, size: Any = None, generator: Any = None,
    dtype: Any = None, requires_grad: bool = False, device: Any = None, layout: Any = None,
    pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Integers drawn uniformly from [low, high): `randint(high, size)`, `randint(low, high, size)`.

    int64 by default.
    """
    if size is None and bounds:
        *bounds, size = bounds  # type: ignore[assignment]
    if len(bounds) == 2:
        low, high = bounds
    elif bounds:
        (high,) = bounds
    low, high = _index(low), _index(high)
    if not isinstance(size, (tuple, list)):
        raise TypeError(
            f"randint(): argument 'size' (position {len(bounds) + 1}) must be tuple of ints, not "
            f"{type(size).__name__}"
        )
    np_dtype = int64.np if dtype is None else _np(dtype, "randint")
    if low >= high:  # said before the sizes are looked at
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    made = apply(
        TABLE["randint"], random_key(generator), low, high, size_of((size,), "randint"), np_dtype
    )
    return finish(made, requires_grad, device)


def _index(x: Any) -> int:
    """An int of 64 bits, for which a tensor may stand."""
    found = operator.index(x)
    if not -(1 << 63) <= found < 1 << 63:
        raise ValueError("Overflow when unpacking long long")
    return found


@takes_out()
def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """The numbers 0 to n - 1 in random order, int64 by default."""
    np_dtype = int64.np if dtype is None else _np(dtype, "randperm")
    return finish(
        apply(TABLE["randperm"], random_key(generator), n, np_dtype), requires_grad, device
    )


def batched_as(like: Any, made: Any) -> Any:
    """Inside vmap, let `made` be batched (and so be written to) if `like` is; returns `made`."""
    if local.look is not None:
        from .func._levels import adopt

        adopt(like, made)
    return made


def _like(factory: Callable[..., Any]) -> Callable[..., Any]:
    def like(input: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        if not isinstance(input, Handle):
            raise TypeError(
                f"{like.__name__}(): argument 'input' (position 1) must be Tensor, not "
                f"{name_of_type(input)}"
            )
        if "out" in kwargs:
            raise TypeError(f"{like.__name__}() got an unexpected keyword argument 'out'")
        wanted = kwargs.pop("memory_format", None)
        if wanted in RANKS:
            from ._strided import lie

            strides = strides_in(input.shape, wanted)
            made = like(input, *args, dtype=dtype, memory_format=contiguous_format, **kwargs)
            return lie(made, strides)
        row_major = wanted not in (None, preserve_format)
        dtype, shape = input.dtype if dtype is None else dtype, tuple(input.shape)
        if factory is randint:
            made = randint(*args, size=shape, dtype=dtype, **kwargs)
        else:
            made = factory(shape, *args, dtype=dtype, **kwargs)
        if factory in (full, zeros, ones, empty):
            made = batched_as(input, made)
        if row_major or input._v.strides is None and not input._lens:
            return made
        from ._strided import laid_as

        return laid_as(input, made)

    like.__name__ = factory.__name__ + "_like"
    like.__doc__ = f"`{factory.__name__}` in the shape and dtype of `input`."
    return like


zeros_like, ones_like, empty_like = _like(zeros), _like(ones), _like(empty)
full_like, rand_like, randn_like, randint_like = (
    _like(full), _like(rand), _like(randn), _like(randint),
)  # fmt: skip


def scalar_tensor(value: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """A 0-dim tensor, float by default."""
    return full((), value, dtype=dtype or of(default_float()), **kwargs)
