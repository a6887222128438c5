"""The classes of named results, such as `max(dim)`'s, which print as PyTorch's."""

from __future__ import annotations

from typing import Any

from leafax.functional import TABLE as _TABLE


def _show(self: Any) -> str:
    parts = [f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True)]
    return f"torch.return_types.{type(self)._torch_name}(\n" + ",\n".join(parts) + ")"


def _classes() -> dict[str, type]:
    """The named tuples that ops return, by PyTorch's names for them."""
    found: dict[str, type] = {}
    for name, op in sorted(_TABLE.items(), key=lambda item: not item[1].namespace):
        cls = op.fn.__globals__.get(str(op.fn.__annotations__.get("return")))
        if op.namespace == "nn.functional" or hasattr(cls, "_torch_name"):
            continue
        if isinstance(cls, type) and hasattr(cls, "_fields"):
            short = name.removesuffix(".dim").replace(".", "_")
            cls._torch_name = short  # type: ignore[attr-defined]
            setattr(cls, "__repr__", _show)  # noqa: B010
            cls.__name__ = cls.__qualname__ = short
            cls.__module__ = __name__
            found[short] = cls
    return found


_made = _classes()
globals().update(_made)
__all__ = list(_made)
