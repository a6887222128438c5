"""`leafax.install()` and `leafax.uninstall()`."""

from __future__ import annotations

import importlib.metadata
import sys
from importlib.machinery import PathFinder
from typing import Any

from .._api.when_imported import when_imported
from ..torch_version import TorchVersion
from .finder import ExtensionFinder, TorchFinder, own_name, stands_for_torch
from .lent_names import take_names_back
from .metadata import VERSION, add_to_working_set, remove_from_working_set

_FINDERS = (TorchFinder(), ExtensionFinder())
# Modules that say the version.
_VERSIONS = ("leafax", "leafax.version")
#: Functions of `torch.functional`, whose name leafax's programs over JAX have.
_FUNCTIONS = frozenset(
    "align_tensors atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors "
    "cartesian_prod cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique "
    "unique_consecutive unravel_index".split()
)
_before: dict[str, Any] = {}


def is_installed() -> bool:
    """Tell whether `import torch` finds leafax."""
    return _FINDERS[0] in sys.meta_path


def install() -> None:
    """Make `import torch`, and of all that is in it, find leafax in this process.

    Packages that are imported from then on run on leafax. The modules are the same: `torch.nn` is
    `leafax.nn`. The version that they tell is PyTorch's, also to `importlib.metadata`, while
    `importlib.metadata.version("leafax")` stays leafax's. `python -m leafax` does this
    before a script begins. To call it again does nothing.

    Raises:
      ImportError: PyTorch itself is already imported.

    >>> import subprocess, sys
    >>> code = "import leafax; leafax.install(); import torch; print(torch is leafax)"
    >>> print(subprocess.run([sys.executable, "-c", code], stdout=-1, text=True).stdout.strip())
    True
    """
    if is_installed():
        return
    real = sys.modules.get("torch")
    if real is not None:
        where = getattr(real, "__file__", None) or "an unknown place"
        raise ImportError(
            f"leafax cannot stand for torch: PyTorch itself is already imported, from {where}. "
            "Call leafax.install() before anything imports torch, or run the script by "
            "`python -m leafax`"
        )
    sys.meta_path.insert(0, _FINDERS[0])
    at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(at, _FINDERS[1])
    for name in _VERSIONS:
        _before[name] = vars(sys.modules[name])["__version__"]
        vars(sys.modules[name])["__version__"] = TorchVersion(VERSION)
    vars(sys.modules["leafax"])["torch"] = sys.modules["leafax"]  # `torch.torch` is PyTorch's
    vars(sys.modules["leafax"])["__name__"] = "torch"  # which packages begin paths with
    vars(sys.modules["leafax.functional"])["__getattr__"] = _function
    _before["pkg_resources"] = when_imported("pkg_resources", add_to_working_set)
    importlib.invalidate_caches()


def uninstall() -> None:
    """Take back what `leafax.install()` did: `import torch` finds PyTorch again, or nothing.

    Packages that were imported in between keep the modules of leafax that they hold.

    >>> import leafax
    >>> leafax.uninstall()  # nothing was installed
    """
    if not is_installed():
        return
    for finder in _FINDERS:
        sys.meta_path.remove(finder)
    for name, module in list(sys.modules.items()):
        if stands_for_torch(name) and module is sys.modules.get(own_name(name)):
            del sys.modules[name]
    take_names_back()
    for name in _VERSIONS:
        vars(sys.modules[name])["__version__"] = _before.pop(name)
    del vars(sys.modules["leafax"])["torch"]
    vars(sys.modules["leafax"])["__name__"] = "leafax"
    del vars(sys.modules["leafax.functional"])["__getattr__"]
    waits = _before.pop("pkg_resources")
    if waits in sys.meta_path:
        sys.meta_path.remove(waits)
    elif "pkg_resources" in sys.modules:
        remove_from_working_set(sys.modules["pkg_resources"])
    importlib.invalidate_caches()


def _function(name: str) -> Any:
    """Find functions of PyTorch's `torch.functional`."""
    if name in _FUNCTIONS and hasattr(sys.modules["leafax"], name):
        return getattr(sys.modules["leafax"], name)
    raise AttributeError(f"module 'leafax.functional' has no attribute '{name}'")
