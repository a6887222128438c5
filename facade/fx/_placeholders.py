"""Stand-ins of `concrete_args` for what is not specialized."""

from __future__ import annotations

from typing import Any


class PHBase:
    """An argument that stays an input of the graph."""

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """An input whose node gets these attributes."""

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH = PHBase()


def transfer_attributes(fr: Any, to: Any) -> None:
    """Give an object the public attributes of another that it does not have."""
    for name in dir(fr):
        value = getattr(fr, name)
        if not callable(value) and not name.startswith("__") and not hasattr(to, name):
            setattr(to, name, value)
