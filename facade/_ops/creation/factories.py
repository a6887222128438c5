"""The factory functions: tensors of a size, and of the size of another."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from leafax.functional.program.dtypes import default_float
from leafax.functional.program.op import TABLE

from ..._autograd.extensions import extensions
from ..._autograd.forward_mode.no_forward_derivative import refuse_any_tangent
from ..._core.dtypes import bool as bool_dtype
from ..._core.dtypes import complex64, float64, int64, of, python_number
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.memory_format import RANKS, contiguous_format, preserve_format, strided
from ..._core.python_data import name_of_type
from ..._core.size_arguments import named_size, need_shape, size_of
from ..._core.vmap_checks import adopt_example, differs_in_vmap
from ..._dispatch.record import apply
from ..._rules.strides.channels_last import strides_in
from ..._signatures.check_arguments import refuse_wide
from ..._signatures.wrap_composites import parsed
from ..._storage.lay_out import lay_out, lay_out_as
from .factory_bounds import _index, _scalars
from .factory_tools import takes_out
from .fill_deterministic import filler, fills
from .from_arrays import finish, numpy_dtype
from .generator import key_of_new as random_key
from .to import device_like


def _filled(name: str) -> Callable[..., Any]:
    def factory(
        *size: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None,
        layout: Any = None, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        if layout is not None and layout is not strided:
            raise NotImplementedError(
                f"{name}(): here it makes dense tensors; sparse_coo_tensor makes one of {layout}"
            )
        size = named_size(name, size, named)
        made = apply(TABLE[name], size_of(size, name), numpy_dtype(dtype, name))
        return finish(made, requires_grad, device)

    factory.__name__ = name
    factory.__doc__ = f"A tensor of {name}, `size` ints or a tuple; dtype the default float."
    return takes_out()(factory)


zeros = _filled("zeros")
ones = _filled("ones")


@takes_out("resized")
def empty(*size: Any, memory_format: Any = None, **kwargs: Any) -> Any:
    """Return a tensor whose values mean nothing: zeros, or NaN (see `utils.deterministic`)."""
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    size = size_of((kwargs.pop("size"),) if "size" in kwargs else size, "empty")
    if fills():
        kwargs["dtype"] = of(numpy_dtype(kwargs.get("dtype")))
        made = full(size, filler(kwargs["dtype"].np), **kwargs)
    else:
        made = zeros(size, **kwargs)
    if memory_format not in RANKS:
        return made
    return lay_out(made, strides_in(made.shape, memory_format))


@takes_out()
def full(
    size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return a tensor of `size` filled with a number; its dtype follows the number's kind."""
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
        np_dtype = numpy_dtype(dtype, "full")
    made = apply(TABLE["full"], size_of((size,), "full"), fill_value, np_dtype)
    return finish(made, requires_grad, device)


@takes_out("count")
def arange(
    *bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None,
    requires_grad: bool = False, device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make `[start, start + step, ...)` up to `end`; int64 if all are ints.

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
    numbers = [
        x.item() if isinstance(x, Handle) else python_number(x) if isinstance(x, np.generic) else x  # type: ignore[attr-defined]
        for x in (start, end, step)
    ]
    for x in numbers:
        refuse_wide("Number", x)
    if dtype is None:
        floats = any(isinstance(x, float) for x in numbers)
        np_dtype = default_float() if floats else int64.np
    else:
        np_dtype = numpy_dtype(dtype, "arange")
    return finish(apply(TABLE["arange"], *numbers, np_dtype), requires_grad, device)


def _wrapped(x: Any) -> Any:
    return full((), x, dtype=None if isinstance(x, int) else float64)


def _between(start: Any, end: Any, steps: int, dtype: Any, base: float | None = None) -> Any:
    """Make `linspace` or `logspace` inside `vmap`, where PyTorch composes them."""
    with no_grad():
        start, end = [x if isinstance(x, Handle) else _wrapped(x) for x in (start, end)]
        if steps == 1:
            out = start.reshape(1)
        else:
            out = arange(steps, dtype=dtype)
            out = start + out * (end - start) / (steps - 1) if steps else out
        out = out if base is None else apply(TABLE["pow"], base, out)
        return out if dtype is None else out.to(dtype)


@takes_out("count")
def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make `steps` numbers from `start` to `end`, both included."""
    refuse_any_tangent("linspace", start, end)
    if differs_in_vmap(start, end):
        return _between(start, end, steps, dtype)
    ends = _scalars("linspace", start, end, steps)
    want = None if dtype is None else numpy_dtype(dtype, "linspace")
    return finish(apply(TABLE["linspace"], *ends, want), requires_grad, device)


@takes_out("count")
def logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None,
    requires_grad: bool = False, device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make `steps` numbers from `base ** start` to `base ** end`."""
    refuse_any_tangent("logspace", start, end)
    if differs_in_vmap(start, end):
        return _between(start, end, steps, dtype, float(base))
    ends = _scalars("logspace", start, end, steps)
    want = None if dtype is None else numpy_dtype(dtype, "logspace")
    return finish(apply(TABLE["logspace"], *ends, float(base), want), requires_grad, device)


@takes_out()
def eye(
    n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False,
    device: Any = None, layout: Any = None, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Make a matrix with ones on the diagonal, zeros elsewhere."""
    if isinstance(n, bool) or isinstance(m, bool):
        raise TypeError("eye(): argument 'n' (position 1) must be int, not bool")
    n = operator.index(n) if isinstance(n, Handle) else n
    m = n if m is None else operator.index(m) if isinstance(m, Handle) else m
    made = apply(TABLE["eye"], n, m, numpy_dtype(dtype))
    return finish(made, requires_grad, device)


def _random(name: str) -> Callable[..., Any]:
    def factory(
        *size: Any, generator: Any = None, dtype: Any = None, requires_grad: bool = False,
        device: Any = None, layout: Any = None, pin_memory: bool = False, **named: Any,
    ) -> Any:  # fmt: skip
        size = named_size(name, size, named)
        made = apply(
            TABLE[name], random_key(generator, device), size_of(size, name),
            numpy_dtype(dtype, name),
        )  # fmt: skip
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
    """Draw integers from [low, high): `randint(high, size)`, `randint(low, high, size)`.

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
    np_dtype = int64.np if dtype is None else numpy_dtype(dtype, "randint")
    if low >= high:  # said before the sizes are looked at
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    drawn_by = random_key(generator, device)
    made = apply(TABLE["randint"], drawn_by, low, high, size_of((size,), "randint"), np_dtype)
    return finish(made, requires_grad, device)


@takes_out()
def randperm(
    n: int, *, generator: Any = None, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Any:  # fmt: skip
    """Return the numbers 0 to n - 1 in random order, int64 by default."""
    np_dtype = int64.np if dtype is None else numpy_dtype(dtype, "randperm")
    n = operator.index(n) if isinstance(n, Handle) else n
    made = apply(TABLE["randperm"], random_key(generator, device), n, np_dtype)
    return finish(made, requires_grad, device)


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
            strides = strides_in(input.shape, wanted)
            made = like(input, *args, dtype=dtype, memory_format=contiguous_format, **kwargs)
            return lay_out(made, strides)
        row_major = wanted not in (None, preserve_format)
        kwargs["device"] = device_like(input, kwargs.get("device"))
        dtype, shape = input.dtype if dtype is None else dtype, tuple(input.shape)
        if factory is randint:
            made = randint(*args, size=shape, dtype=dtype, **kwargs)
        else:
            made = factory(shape, *args, dtype=dtype, **kwargs)
        if factory in (full, zeros, ones, empty):
            made = adopt_example(input, made)
        if row_major or input._v.strides is None and not input._lens:
            return made
        return lay_out_as(input, made)

    like.__name__ = factory.__name__ + "_like"
    like.__doc__ = f"`{factory.__name__}` in the shape and dtype of `input`."
    return parsed(like)


zeros_like, ones_like, empty_like = _like(zeros), _like(ones), _like(empty)
extensions.zeros_like = zeros_like
full_like, rand_like, randn_like, randint_like = (
    _like(full), _like(rand), _like(randn), _like(randint),
)  # fmt: skip


def scalar_tensor(value: Any, *, dtype: Any = None, **kwargs: Any) -> Any:
    """Return a 0-dim tensor, float by default."""
    return full((), value, dtype=dtype or of(default_float()), **kwargs)
