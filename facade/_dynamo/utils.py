"""PyTorch's `torch._dynamo.utils`: what packages ask of the compiler."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from ..compiler import is_compiling as is_compiling

#: Of events that a compiler counts, by kind: there are none.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: Any) -> bool:
    """Return False: packages then leave `torch.compile` out, and the step is compiled anyway."""
    return False
