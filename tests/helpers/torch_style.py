"""Import a file of `examples/torch_scripts/` under PyTorch or leafax."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from unittest import mock

FOLDER = Path(__file__).parents[2] / "examples" / "torch_scripts"


def load(name: str, *arguments: str) -> ModuleType:
    """Import `name`, and what it imports of its folder, anew, as if started with `arguments`."""
    with (
        mock.patch.object(sys, "argv", [name, *arguments]),
        mock.patch.object(sys, "path", [str(FOLDER), *sys.path]),
    ):
        try:
            return importlib.import_module(name)
        finally:
            for known, module in list(sys.modules.items()):
                if Path(getattr(module, "__file__", None) or "").parent == FOLDER:
                    del sys.modules[known]
