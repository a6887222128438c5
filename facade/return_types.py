"""The classes of named results, such as `max(dim)`'s, which print as PyTorch's."""

from __future__ import annotations

from leafax.functional.program.op import TABLE as _TABLE

from ._ops.composites.histogram import histogram_return as _histogram
from ._ops.composites.histogram import histogramdd_return as _histogramdd
from ._signatures.named_results import shown_as as _shown_as


def _classes() -> dict[str, type]:
    """Return the named tuples that ops return, by PyTorch's names for them."""
    found: dict[str, type] = {}
    for name, op in sorted(_TABLE.items(), key=lambda item: not item[1].namespace):
        cls = op.fn.__globals__.get(str(op.fn.__annotations__.get("return")))
        if op.namespace == "nn.functional" or hasattr(cls, "_torch_name"):
            continue
        if isinstance(cls, type) and hasattr(cls, "_fields"):
            short = name.removesuffix(".dim").replace(".", "_")
            found[short] = _shown_as(short)(cls)
    return found


_made = _classes() | {"histogram": _histogram, "histogramdd": _histogramdd}
globals().update(_made)
__all__ = list(_made)
