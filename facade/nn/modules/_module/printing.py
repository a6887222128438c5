"""Printed form of a module."""

from __future__ import annotations

from .attributes import Base


class Printing(Base):
    """The text of a module, and the names that it has."""

    def _get_name(self) -> str:
        return self.__class__.__name__

    def extra_repr(self) -> str:
        """Return what the text of the module says of itself; nothing, unless overridden."""
        return ""

    def __repr__(self) -> str:
        said = self.extra_repr()
        own = said.split("\n") if said else []
        children = [
            f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()
        ]
        lines = own + children
        if len(own) == 1 and not children:
            inside = own[0]
        else:
            inside = "\n  " + "\n  ".join(lines) + "\n" if lines else ""
        return f"{self._get_name()}({inside})"

    def __dir__(self) -> list[str]:
        names = [*dir(self.__class__), *self.__dict__]
        names += [*self._parameters, *self._modules, *self._buffers]
        return sorted(name for name in names if not name[0].isdigit())


def _addindent(text: str, spaces: int) -> str:
    """Indent all lines but the first, and leave blank ones empty."""
    first, *rest = text.split("\n")
    pad = " " * spaces
    return "\n".join([first, *[pad + line if line.strip() else "" for line in rest]])
