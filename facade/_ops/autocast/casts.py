"""Autocast: products in half precision, what needs range in float32, as PyTorch's lists say.

Autocast is a mode of recording. An op of the lists whose operands have another dtype is never
found in the trie under that mode, so it comes to `_record_casts`, which records the casts and
then the op; all other ops are found as ever. What `lists.py` says of composite functions, which
are no ops, their decorator `float32` does.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import ref

import jax

from leafax.functional.program.meta import META
from leafax.functional.program.op import Op

from ..._core.cast_tensors import casts
from ..._core.dtypes import bfloat16, device, dtype, float16
from ..._core.dtypes import float32 as _float32
from ..._core.grad_modes import within
from ..._core.handle import Handle
from ..._core.jax_devices import name_of
from ..._core.trie import LEAF, Mode, Value, local
from ..._dispatch.record import record
from .lists import policy_of

F = TypeVar("F", bound=Callable[..., Any])

#: Device types that have autocast, and what they compute in unless told.
DTYPES = {"cpu": bfloat16, "cuda": float16, "tpu": bfloat16, "mps": float16, "xpu": float16}
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "cuda", "tpu": "tpu"}


class _State(threading.local):
    """Hold what a thread asked of autocast.

    Attributes:
      enabled: device types.
      nesting: how many contexts are open; what was cast is forgotten when the last one closes.
    """

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.dtypes = dict(DTYPES)
        self.nesting = 0


state = _State()


@functools.cache
def here() -> str:
    """Return the type of the device that tensors are on."""
    platform = jax.default_backend()
    return _PLATFORMS.get(platform, platform)


def settle() -> None:
    """Record from now on as `state` says."""
    now = local.mode
    wanted = state.dtypes[here()] if here() in state.enabled else None
    if now.autocast is not wanted:
        local.set_mode(Mode.of(now.enabled, now.inference, wanted))


def _record_casts(op: Op, args: Any, kwargs: Any, key: Any, may_cut: bool) -> Any:
    """Record an op whose operands must be cast; return None where not."""
    if op.overwrites:
        return None
    lower: Any = local.mode.autocast
    policy = policy_of(here(), op)
    if policy is None:
        return None
    given = _flat((args, kwargs))
    if any(isinstance(t, Value) for t in given):  # a view is read anew: it is as it was
        return None
    tensors = [t for t in given if _eligible(t)]
    to = policy(lower, args, kwargs, tensors)
    if to is None or all(t._v.aval.dtype == to.np for t in tensors):
        return None
    args, kwargs = _cast((args, kwargs), to, to is lower)
    return record(op, args, kwargs)


def operands(op: Op, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Cast the operands of a composed function as those of one op of its name would be."""
    policy, lower = policy_of(here(), op), local.mode.autocast
    to = policy(lower, args, {}, [t for t in args if _eligible(t)]) if policy is not None else None
    return args if to is None else _cast(args, to, to is lower)  # type: ignore[no-any-return]


def _eligible(t: Any) -> bool:
    """Return whether autocast casts this tensor; doubles, integers and complex numbers stay.

    So does what was committed to a device of another type.
    """
    if not isinstance(t, Handle) or t._v.aval.dtype not in _HALVES_AND_FLOAT:
        return False
    where = t._v.device
    return where is None or where is META or name_of(where)[0] == here()


_HALVES_AND_FLOAT = frozenset({bfloat16.np, float16.np, _float32.np})


def _flat(value: Any) -> list[Any]:
    """Return the tensors, and bare values of the program, in nested arguments."""
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _flat(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in _flat(v)]
    return [value] if isinstance(value, (Handle, Value)) else []


def _cast(value: Any, to: dtype, lower: bool) -> Any:
    """Cast the tensors in nested arguments."""
    if isinstance(value, (tuple, list)):
        made = [_cast(v, to, lower) for v in value]
        return tuple(made) if isinstance(value, tuple) else made
    if isinstance(value, dict):
        return {k: _cast(v, to, lower) for k, v in value.items()}
    if not _eligible(value) or value._v.aval.dtype == to.np:
        return value
    if not (lower and casts.enabled and _is_weight(value)):
        return value.to(to)
    key = id(value), to, local.mode.grad
    known = casts.kept.get(key)
    if known is None or known[0]() is not value:
        known = casts.kept[key] = ref(value), value.to(to)
    return known[1]


def _is_weight(t: Any) -> bool:
    """Tell whether casts are kept for the next use, whose gradients add up before they are cast."""
    return t._v.role == LEAF and t._v.aval.dtype == _float32.np and t._base_ is None


def off(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function without autocast."""
    mode = local.mode
    with within(Mode.of(mode.enabled, mode.inference, None)):
        return fn(*args, **kwargs)


def float32(fn: F) -> F:
    """Run a composite function as one op of the list of those that need float32."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if local.mode.autocast is None:
            return fn(*args, **kwargs)
        args, kwargs = _cast((args, kwargs), _float32, False)
        return off(fn, *args, **kwargs)

    return wrapped  # type: ignore[return-value]


def product(fn: F) -> F:
    """Give the result of a composite function that ends in a matrix product."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        lower = local.mode.autocast
        if lower is None:
            return fn(*args, **kwargs)
        return _cast(float32(fn)(*args, **kwargs), lower, False)

    return wrapped  # type: ignore[return-value]


def checked(device_type: Any) -> str:
    """Return the device type, if it is one."""
    return str(device(device_type).type)


Mode.intercept("autocast", _record_casts)
