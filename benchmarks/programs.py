"""The measured programs in leafax: the very lines of `torch_eager.py`, with the import changed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import leafax


def leafax_programs() -> ModuleType:
    """`torch_eager.py` as a module in which `torch` is leafax."""
    path = Path(__file__).parent / "torch_eager.py"
    spec = importlib.util.spec_from_file_location("leafax_programs", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    names = {"torch": leafax, "torch.nn": leafax.nn, "torch.nn.functional": leafax.nn.functional}
    before: dict[str, Any] = {name: sys.modules.get(name) for name in names}
    try:
        sys.modules.update(names)
        spec.loader.exec_module(module)
    finally:
        for name, was in before.items():
            if was is None:
                del sys.modules[name]
            else:
                sys.modules[name] = was
    return module
