"""PyTorch's `torch.export`: names to import; `leafax.functional.lower` exports to JAX instead."""

from __future__ import annotations

from .._core.absent.stand_ins import do_nothing as register_dataclass
from .._core.absent.stand_ins import refuse, refuse_class

__all__ = [
    "Dim", "ExportGraphSignature", "ExportedProgram", "ModuleCallEntry", "ModuleCallSignature",
    "ShapesCollection", "UnflattenedModule", "dims", "draft_export", "export", "load",
    "register_dataclass", "save", "unflatten",
]  # fmt: skip

_JAX = "`leafax.functional.lower` gives what was recorded as a JAX function, for `jax.export`"

export = refuse("export.export", _JAX)
draft_export = refuse("export.draft_export", _JAX)
save = refuse("export.save", _JAX)
load = refuse("export.load", _JAX)
unflatten = refuse("export.unflatten", _JAX)
ExportedProgram = refuse_class("export.ExportedProgram", _JAX)
ExportGraphSignature = refuse_class("export.ExportGraphSignature", _JAX)
ModuleCallEntry = refuse_class("export.ModuleCallEntry", _JAX)
ModuleCallSignature = refuse_class("export.ModuleCallSignature", _JAX)
ShapesCollection = refuse_class("export.ShapesCollection", _JAX)
UnflattenedModule = refuse_class("export.UnflattenedModule", _JAX)


class Dim:
    """A length that may differ from call to call.

    Args:
      name: its name.
      min, max: between which lengths it is.
    """

    #: Lengths without a name, and those that are not to change.
    AUTO, DYNAMIC, STATIC = "Dim.AUTO", "Dim.DYNAMIC", "Dim.STATIC"

    def __init__(self, name: str, *, min: int | None = None, max: int | None = None) -> None:
        self.__name__, self.min, self.max = name, 0 if min is None else min, max

    def __repr__(self) -> str:
        return f"Dim('{self.__name__}', min={self.min}, max={self.max})"


def dims(*names: str, min: int | None = None, max: int | None = None) -> tuple[Dim, ...]:
    """Make a `Dim` of each name."""
    return tuple([Dim(name, min=min, max=max) for name in names])
