"""Calls in PyTorch's older forms, `x.add_(2, y)` for `x.add_(y, alpha=2)`: they work, and warn.

A call is looked at only once it was refused, so that others do not pay for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.handle import Handle
from .._core.warn_once import warn_once

_FACTORS = {
    "add": ("alpha", ("other",)), "sub": ("alpha", ("other",)),
    "addcmul": ("value", ("tensor1", "tensor2")), "addcdiv": ("value", ("tensor1", "tensor2")),
}  # fmt: skip
_PRODUCTS = {
    "addmm": ("mat1", "mat2"), "addmv": ("mat", "vec"), "addr": ("vec1", "vec2"),
    "addbmm": ("batch1", "batch2"), "baddbmm": ("batch1", "batch2"),
}  # fmt: skip
_WITH_DTYPE = ("addmm", "baddbmm")  # as functions they have one more signature
OLDER = frozenset({*_FACTORS, *_PRODUCTS})  # the functions that have such forms
Call = tuple[tuple[Any, ...], dict[str, Any]]


def translate_older_form(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any], method: str = ""
) -> Call | None:
    """Return the arguments of an older form as the newer one has them; None if it is none.

    Args:
      name: of the function; `method`: of the method that was called, if one was.
    """
    if kwargs:
        return None
    if name in _FACTORS:
        key, names = _FACTORS[name]
        if len(args) != 2 + len(names) or not _is_number(args[1]):
            return None
        _warn(method or name, not method, (key,), names, key)
        return (args[0], *args[2:]), {key: _to_number(args[1])}
    if name not in _PRODUCTS or len(args) not in (4, 5):
        return None
    first, second = (args[1], args[0]) if method else (args[0], args[1])
    numbers = (first, *args[2:-2])
    if not isinstance(second, Handle) or not all(map(_is_number, numbers)):
        return None
    keys = ("beta", "alpha")[: len(numbers)]
    _warn(method or name, not method, keys, _PRODUCTS[name], "beta", "alpha")
    return (second, *args[-2:]), dict(zip(keys, map(_to_number, numbers), strict=True))


def _is_number(x: Any) -> bool:
    """Return whether PyTorch takes `x` for a `Number`, as it does a tensor of one number."""
    if isinstance(x, Handle):
        return not x.dim() and not x.requires_grad  # type: ignore[attr-defined]
    return isinstance(x, (int, float, complex, np.number))


def _to_number(x: Any) -> Any:
    return x.item() if isinstance(x, Handle) else x  # type: ignore[attr-defined]


def _warn(
    shown: str, function: bool, given: tuple[str, ...], names: tuple[str, ...], *keys: str
) -> None:
    """Warn of the signature that was used, and name those that are to be used."""
    tensors = ", ".join(f"Tensor {n}" for n in names)
    numbers = [f"Number {k}" for k in given]
    options = "*, " + ", ".join(f"Number {k} = 1" for k in keys)
    if not function:
        old, new = f"{', '.join(numbers)}, {tensors}", [f"{tensors}, {options}"]
    else:
        out = "Tensor out = None"
        place = 0 if given == ("alpha",) or given == ("value",) else 1
        mixed = [*numbers[:place], "Tensor input", *numbers[place:]]
        old = f"{', '.join(mixed)}, {tensors}, *, {out}"
        new = [f"Tensor input, {tensors}, {options}, {out}"]
        if shown in _WITH_DTYPE:
            new.append(f"Tensor input, {tensors}, torch.dtype out_dtype, {options}, {out}")
    warn_once(
        f"This overload of {shown} is deprecated:\n\t{shown}({old})\nConsider using one of the "
        "following signatures instead:" + "".join(f"\n\t{shown}({line})" for line in new),
        "older",  # PyTorch's parser warns once, of whatever is the first
    )
