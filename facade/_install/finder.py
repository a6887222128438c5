"""Import hooks: `torch.*` is leafax's modules; compiled extensions say why they do not load."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from types import CodeType, ModuleType
from typing import Any

from .lent_names import lend_names
from .metadata import find_distributions

# Parts of PyTorch's distribution that leafax has nothing for.
_REFUSED = ("torchgen",)
# What the dynamic linker says of libraries and symbols of PyTorch.
_OF_TORCH = re.compile(
    r"lib(torch|c10|caffe2|aoti_torch)|_ZNK?(2at|3c10|5torch)|THPVariable|aoti_torch"
)


def own_name(name: str) -> str:
    """Return the name of leafax's module that stands for one of PyTorch's."""
    if name.partition(".")[0] == "functorch":  # which PyTorch's distribution has beside it
        return "leafax._functorch.functorch" + name.removeprefix("functorch")
    return "leafax" + name.removeprefix("torch")


def stands_for_torch(name: str) -> bool:
    """Tell whether a module's name is PyTorch's."""
    return name.partition(".")[0] in ("torch", "functorch")


class TorchFinder(MetaPathFinder, Loader):
    """Find leafax's modules under PyTorch's names: they are the same objects."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to import a name of PyTorch's, None for all others."""
        if fullname.partition(".")[0] in _REFUSED:
            raise ModuleNotFoundError(
                f"No module named '{fullname}': leafax, which stands for torch, has none",
                name=fullname,
            )
        if not stands_for_torch(fullname):
            return None
        own = importlib.util.find_spec(own_name(fullname))
        if own is None:
            # `importlib.util.find_spec` asks and gets None; an import is told.
            if sys._getframe(2).f_code.co_name != "find_spec":
                raise ModuleNotFoundError(
                    f"No module named '{fullname}': leafax, which stands for torch, lacks it",
                    name=fullname,
                )
            return None
        is_package = own.submodule_search_locations is not None
        spec = ModuleSpec(fullname, self, origin=own.origin, is_package=is_package)
        if is_package:
            spec.submodule_search_locations = list(own.submodule_search_locations or ())
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return leafax's module, imported under its own name."""
        module = importlib.import_module(own_name(spec.name))
        spec.loader_state = module.__spec__
        lend_names(module)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Give the module the spec back that Python has put another in the place of."""
        assert module.__spec__ is not None
        module.__spec__ = module.__spec__.loader_state

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of a module, which `python -m torch.X` runs."""
        own = importlib.util.find_spec(own_name(fullname))
        assert own is not None and isinstance(own.loader, InspectLoader)
        return own.loader.get_code(own_name(fullname))

    def find_distributions(self, context: Any = None) -> Iterator[Any]:
        """Yield the distribution `torch` to `importlib.metadata`."""
        return find_distributions(context)


class _ExtensionLoader(ExtensionFileLoader):
    """Load a compiled extension, and say so if it was made for PyTorch."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        try:
            return super().create_module(spec)
        except ImportError as error:
            if _OF_TORCH.search(str(error)) is None:
                raise
            raise ImportError(
                f"{spec.name} is a compiled extension for PyTorch, which needs PyTorch's own "
                f"libraries: it does not run with leafax standing for torch ({error})",
                name=spec.name,
                path=self.path,
            ) from error


class ExtensionFinder(MetaPathFinder):
    """Find modules as Python does; load compiled extensions with a better error."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how to load a compiled extension, None for all other modules."""
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not ExtensionFileLoader:
            return spec
        spec.loader = _ExtensionLoader(spec.loader.name, spec.loader.path)
        return spec
