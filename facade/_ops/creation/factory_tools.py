"""Common parts of factories: `out=`, and ops of the table that take no tensors.

With `out=` a factory makes numbers of that tensor's dtype and writes them into it, so the dtype
that it would have chosen by itself does not matter.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from leafax.functional.program.dtypes import scalar_name

from ..._core.dtypes import as_dtype, of
from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.python_data import name_of_type
from ..._core.trie import local
from ..._core.vmap_checks import refuse_random_out
from ..._dispatch.resize import resize_storage
from ..._signatures.check_arguments import find_error, precheck
from ..writes.apply_inplace import apply_inplace, check_inplace
from ..writes.write_out import underived
from .from_arrays import finish
from .generator import default_of

Factory = Callable[..., Any]


_RANDOM = frozenset({"rand", "randn", "randint", "randperm"})


def takes_out(fits: str = "shape") -> Callable[[Factory], Factory]:
    """Make a factory take `out=`.

    Args:
      fits: "shape" if `out` gets the result's shape, "count" if it keeps its own where that has
        as many elements, "resized" if it is resized as by `resize_`, before.
    """

    def decorate(factory: Factory) -> Factory:
        name = factory.__name__

        @functools.wraps(factory)
        def made(*args: Any, out: Any = None, **kwargs: Any) -> Any:
            try:
                if out is None:
                    precheck(name, args, kwargs, name)
                    return factory(*args, **kwargs)
                return _written(name, factory, fits, out, args, kwargs)
            except Exception:
                if out is not None:
                    kwargs = {**kwargs, "out": out}
                wrong = find_error(name, args, kwargs, name)
                if wrong is None:
                    raise
                raise wrong from None

        made.__signature__ = _with_out(factory)  # type: ignore[attr-defined]
        return made

    return decorate


def _with_out(factory: Factory) -> inspect.Signature:
    found = inspect.signature(factory)
    parameters = list(found.parameters.values())
    at = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Any)
    return found.replace(parameters=[*parameters[:at], out, *parameters[at:]])


def _written(name: str, factory: Factory, fits: str, out: Any, args: Any, kwargs: Any) -> Any:
    if not isinstance(out, Handle):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {name_of_type(out)}")
    if name in _RANDOM:
        refuse_random_out()
        if kwargs.get("generator") is None:
            kwargs = {**kwargs, "generator": default_of(out._v.device)}
    have = out._v.dtype
    check_out_dtype(name, have, kwargs.get("dtype"))
    requires_grad = kwargs.pop("requires_grad", False)
    result = factory(*args, **{**kwargs, "dtype": of(have)})
    _make_room(name, fits, out, result)
    if out.requires_grad and local.mode.grad and name != "empty":
        return apply_inplace(underived(name), out, result.reshape(out.shape))
    with no_grad():
        if name in _FILLED:  # elements may share memory
            out.fill_(_number(name, args, kwargs))
        elif name != "empty":
            out.copy_(result.reshape(out.shape))
    return out._set_requires_grad(True) if requires_grad else out


def check_out_dtype(name: str, have: Any, asked: Any) -> None:
    """Refuse another `dtype=` than that of `out=`."""
    if asked is not None and (want := as_dtype(name, asked).np) != have:
        raise RuntimeError(
            f"dtype {scalar_name(want)} does not match dtype of out parameter ({scalar_name(have)})"
        )


_FILLED = {"zeros": 0, "ones": 1, "full": None}


def _number(name: str, args: Any, kwargs: Any) -> Any:
    """Return what one of `_FILLED` fills with."""
    if name != "full":
        return _FILLED[name]
    value = kwargs["fill_value"] if "fill_value" in kwargs else args[1]
    return value.item() if isinstance(value, Handle) else value  # type: ignore[attr-defined]


# `arange`, and what it fills.
_COUNTED = frozenset({"arange", "fft_fftfreq", "fft_rfftfreq"})


def _make_room(name: str, fits: str, out: Any, result: Any) -> None:
    """Check that `out` may be written to, and give it the shape that it is to have."""
    shape = tuple(result.shape)
    if fits == "resized":
        out.resize_(shape)
    leaf = out.is_leaf or out._base is not None and out._base.is_leaf
    if out.requires_grad and leaf and local.mode.grad and name != "empty":
        raise RuntimeError(
            f"aten::{name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    check_inplace(out, False)
    if tuple(out.shape) == shape or fits == "count" and out.numel() == result.numel():
        return
    if name in _COUNTED and out.numel():
        warnings.warn(
            f"The number of elements in the out tensor of shape {list(out.shape)} is "
            f"{out.numel()} which does not match the computed number of elements "
            f"{result.numel()}. Note that this may occur as a result of rounding error. The out "
            f"tensor will be resized to a tensor of shape ({result.numel()},).",
            UserWarning,
            stacklevel=4,
        )
    resize_storage(out, shape)


def placed(function: Factory, out: bool = False) -> Factory:
    """Return a function of the table that makes a tensor, with `device=`, `requires_grad=` and kin.

    Args:
      out: whether it takes `out=`, whose dtype is then that of the result.
    """

    @functools.wraps(function)
    def made(
        *args: Any, layout: Any = None, device: Any = None, pin_memory: bool = False,
        requires_grad: bool = False, **kwargs: Any,
    ) -> Any:  # fmt: skip
        if "out" in kwargs and not out:
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument 'out'")
        target = kwargs.get("out")
        if isinstance(target, Handle):
            have, name = target._v.dtype, f"fft_{function.__name__}"
            check_out_dtype(name, have, kwargs.get("dtype"))
            kwargs["dtype"] = of(have)
            if target.numel():
                plain = {k: v for k, v in kwargs.items() if k != "out"}
                _make_room(name, "shape", target, function(*args, **plain))
        return finish(function(*args, **kwargs), requires_grad, device)

    return made
