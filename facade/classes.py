"""PyTorch's `torch.classes`: classes of compiled extensions, of which there are none."""

from __future__ import annotations

from typing import Any

from ._core.absent.stand_ins import refusal

_WHY = "compiled extensions for PyTorch need PyTorch's own libraries"
loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Raise: there is nothing to load it into.

    Raises:
      OSError: always.
    """
    raise OSError(refusal(f"classes.load_library({str(path)!r})", _WHY))


def __getattr__(name: str) -> Any:
    raise AttributeError(f"leafax has no torch.classes.{name}: {_WHY}")
