"""Named results of functions: they have PyTorch's names and print as PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _show(self: Any) -> str:
    parts = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
    return f"torch.return_types.{type(self)._torch_name}(\n" + ",\n".join(parts) + ")"


def _of_sequence(new: Any, fields: int) -> Callable[..., Any]:
    """Return a `__new__` that takes the fields as one sequence as well, as PyTorch's classes do."""

    def made(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return new(cls, *args, **kwargs)
        try:
            given = tuple(args[0])
        except TypeError:
            raise TypeError("constructor requires a sequence") from None
        if len(given) != fields:
            raise TypeError(
                f"torch.return_types.{cls._torch_name}() takes a {fields}-sequence "
                f"({len(given)}-sequence given)"
            )
        return new(cls, *given)

    return made


def shown_as(name: str) -> Callable[[Any], Any]:
    """Return a decorator that makes a named tuple `return_types.<name>`, printed as PyTorch's."""

    def named(cls: Any) -> Any:
        if not hasattr(cls, "_torch_name"):  # else it was decorated before
            cls.__new__ = _of_sequence(cls.__new__, len(cls._fields))
        cls._torch_name = name
        cls.__repr__ = _show
        cls.__name__ = cls.__qualname__ = name
        cls.n_fields = cls.n_sequence_fields = len(cls._fields)  # as structseq has them
        cls.n_unnamed_fields = 0
        cls.__module__ = "leafax.return_types"
        return cls

    return named
