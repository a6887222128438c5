"""Functions and methods that the names of `leafax.ops.aten` stand for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from .. import fft, linalg, special
from .._core.handle import Handle
from .._ops.calls import aten_names
from .._ops.calls.functions import call
from .._tensor.tensor import Tensor
from ..nn import functional
from ..nn._functional.convolution_backward import convolution_backward

# The same functions by longer names: `aten.linalg_norm`.
_PREFIXES = {"linalg": linalg, "special": special, "fft": fft}
#: The names of the package, which puts them here.
TOP: list[dict[str, Any]] = []


def find(name: str) -> Callable[..., Any] | None:
    """Find the function of an ATen op by its name without overload; None if there is none."""
    own = _OWN.get(name)
    if own is not None:
        return own
    if name.endswith("_") and not name.startswith("_foreach"):
        return _method(name)
    places: list[tuple[dict[str, Any], str]] = [(TOP[0], name), (vars(functional), name)]
    head, _, rest = name.partition("_")
    if head in _PREFIXES:
        places.append((vars(_PREFIXES[head]), rest))
    for namespace, called in places:
        found = namespace.get(called)
        if callable(found) and not isinstance(found, type):
            return found  # type: ignore[no-any-return]
    if name in TABLE:
        return _recorded(name)
    return _method(name)


def _recorded(name: str) -> Callable[..., Any]:
    def fn(*args: Any, **kwargs: Any) -> Any:
        return call(TABLE[name], args, kwargs)

    return fn


def _method(name: str) -> Callable[..., Any] | None:
    return getattr(Tensor, name, None)


def _key(indices: Any) -> tuple[Any, ...]:
    """ATen's list of index tensors as an index: None stands for a whole dim."""
    if not len(indices):
        raise IndexError("at least one index must be provided")
    return tuple([slice(None) if i is None else i for i in indices])


def _index(self: Any, indices: Any) -> Any:
    return self[_key(indices)]


def _index_put_(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    key = _key(indices)
    if accumulate or all(isinstance(i, Handle) for i in indices):
        if not all(isinstance(i, Handle) for i in indices):
            raise NotImplementedError(
                "index_put with accumulate=True takes index tensors alone here, no None"
            )
        return self.index_put_(key, values, accumulate)
    self[key] = values
    return self


def _index_put(self: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if all(isinstance(i, Handle) for i in indices):
        return self.index_put(_key(indices), values, accumulate)
    return _index_put_(self.clone(), indices, values, accumulate)


def _softmax(name: str) -> Callable[..., Any]:
    def fn(self: Any, dim: int, half_to_float: bool) -> Any:
        return getattr(self, name)(dim)

    return fn


def _convolution_backward(*args: Any, **kwargs: Any) -> Any:
    return convolution_backward(*args, **kwargs)


_OWN: dict[str, Callable[..., Any]] = {
    "index": _index, "index_put": _index_put, "index_put_": _index_put_,
    "_softmax": _softmax("softmax"), "_log_softmax": _softmax("log_softmax"),
    "convolution_backward": _convolution_backward,
}  # fmt: skip

aten_names.finders.aten = find  # type: ignore[method-assign]
