"""The dropout family. Without training, or with `p=0`, the input itself is returned."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from leafax.functional.program.op import TABLE

from ..._core.handle import Handle
from ..._dispatch.record import apply
from ..._ops.creation.generator import key
from ..._ops.writes.apply_inplace import apply_inplace


def or_input(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.dropout` and kin: where there is nothing to drop, they return the input itself."""

    @functools.wraps(fn)
    def dropout(*args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("input", "p", "train"), args, strict=False)) | kwargs
        input, p, train = given.get("input"), given.get("p"), given.get("train")
        if isinstance(input, Handle) and isinstance(p, (int, float)) and type(train) is bool:
            if not 0 <= p <= 1:
                raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
            if not train or p == 0 or 0 in input.shape:  # type: ignore[attr-defined]
                return input
            if p == 1:
                return _none(input, fn.__name__.endswith("_"))
        return fn(*args, **kwargs)

    return dropout


def _none(input: Any, inplace: bool) -> Any:
    """Return all elements dropped; nothing is drawn."""
    zero = input.new_zeros(())
    return input.mul_(zero) if inplace else input * zero


def _drop(name: str, input: Any, p: float, training: bool, inplace: bool) -> Any:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if p != p:  # the check before is that of a layer
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if not training or p == 0 or not input.numel():
        return input
    if p == 1:
        return _none(input, inplace)
    op, drawn_by = TABLE[name], key(None, input._v.device)
    if inplace:
        return apply_inplace(op, input, p, True, _key=drawn_by)
    return apply(op, drawn_by, input, p, True)


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Zero each element with probability `p` and scale the others by `1 / (1 - p)`."""
    return _drop("dropout", input, p, training, inplace)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Any:
    """Dropout that keeps mean and variance through SELU."""
    return _drop("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: Any, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Any:
    """`alpha_dropout` of whole channels."""
    return _drop("feature_alpha_dropout", input, p, training, inplace)


def _channels(input: Any, p: float, training: bool, inplace: bool, batched: bool) -> Any:
    if batched:
        return _drop("feature_dropout", input, p, training, inplace)
    if inplace:
        _drop("feature_dropout", input.unsqueeze(0), p, training, True)
        return input
    return _drop("feature_dropout", input.unsqueeze(0), p, training, False).squeeze(0)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of `(N, C, L)` or `(C, L)`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, "
            "a channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channels(input, p, training, inplace, ndim == 3)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of `(N, C, H, W)`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        _warn_dims("dropout2d", ndim, 2, "3D or 4D")
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D "
            "dropout behavior is desired - input is interpreted as shape (N, C, L), where C is "
            "the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _channels(input, p, training, inplace, True)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of `(N, C, D, H, W)` or `(C, D, H, W)`."""
    _check(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_dims("dropout3d", ndim, 3, "4D or 5D")
    return _channels(input, p, training, inplace, ndim == 5)


def _check(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _warn_dims(name: str, ndim: int, spatial: int, expected: str) -> None:
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an "
        "error in a future release. To retain the behavior and silence this warning, please use "
        f"dropout instead. Note that {name} exists to provide channel-wise dropout on inputs with "
        f"{spatial} spatial dimensions, a channel dimension, and an optional batch dimension "
        f"(i.e. {expected} inputs).",
        stacklevel=3,
    )
