"""Keyword arguments of modules that go to the functions that make their tensors."""

from __future__ import annotations

from typing import Any

_TAKEN = ("device", "dtype", "memory_format")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Return what of `kwargs` the functions that make tensors take.

    Args:
      kwargs: `device`, `dtype` and `memory_format`, or a dict of them as `factory_kwargs`.

    Raises:
      TypeError: there is another one, or one of them twice.
    """
    if kwargs is None:
        return {}
    unexpected = kwargs.keys() - {*_TAKEN, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    made = dict(kwargs.get("factory_kwargs", {}))
    for name in _TAKEN:
        if name in kwargs:
            if name in made:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            made[name] = kwargs[name]
    return made
