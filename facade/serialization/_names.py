"""Names in PyTorch's files, and what they stand for here."""

from __future__ import annotations

import functools
import importlib
import sys
from _codecs import encode
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from typing import Any

from .._core import memory_format
from .._core.dtypes import ALL, FLOATS_8, Size, device, dtype
from .._ops.creation import legacy_constructors
from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from ._kinds import QUANTIZATIONS, TYPES
from ._rebuild import REFUSED, UTILS, _rebuild_from_type_v2

_LAYOUTS = {"torch.strided": memory_format.strided}
_MODULES = ("leafax.nn.modules.", "leafax.nn.parameter", "leafax.nn.utils.")


def _get_layout(name: str) -> Any:
    if name not in _LAYOUTS:
        raise NotImplementedError(f"there are no tensors of layout {name} in leafax")
    return _LAYOUTS[name]


@functools.cache
def allowed() -> dict[str, Any]:
    """Return what every file may name, by full names: nothing of it runs code of the file."""
    found: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
        "torch.nn.parameter.Parameter": Parameter,
        "torch.serialization._get_layout": _get_layout,
        "torch.Size": Size, "torch.Tensor": Tensor, "torch.device": device,
        "_codecs.encode": encode, "builtins.bytearray": bytearray, "builtins.set": set,
        "builtins.complex": complex,
        "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    }  # fmt: skip
    found.update((f"torch.{d._name}", d) for d in (*ALL, *FLOATS_8))
    found.update((f"torch._utils.{name}", f) for name, f in {**UTILS, **REFUSED}.items())
    found.update((f"torch.{name}", name) for name in QUANTIZATIONS)
    for name, kind in TYPES.items():
        where = ("torch.storage",) if name == "UntypedStorage" else ("torch", "torch.cuda")
        found.update((f"{module}.{name}", kind) for module in where)
    for name in vars(legacy_constructors):
        if name.endswith("Tensor") and isinstance(getattr(legacy_constructors, name), type):
            found[f"torch.{name}"] = getattr(legacy_constructors, name)
    return found


def find(module: str, name: str) -> Any:
    """Return what a trusted file means by a name of PyTorch's.

    Raises:
      UnpicklingError: leafax has nothing of that name.
    """
    module = "torch._tensor" if module == "torch.tensor" else module
    known = allowed().get(f"{module}.{name}")
    if known is not None:
        return known
    if "Storage" in name:
        kind = TYPES.get(name)
        if kind is not None:
            return kind
    try:
        found: Any = importlib.import_module(f"leafax{module.removeprefix('torch')}")
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise UnpicklingError(
            f"the file asks for {module}.{name}, which leafax does not have"
        ) from error
    return found


def is_torch(module: str) -> bool:
    """Tell whether a module that a file names is one of PyTorch's."""
    return module == "torch" or module.startswith("torch.")


@functools.cache
def _written() -> dict[int, tuple[str, str]]:
    names = {
        id(x): tuple(name.rsplit(".", 1))
        for name, x in allowed().items()
        if name.startswith("torch.") and type(x) is not dtype
    }
    names.update((id(d), ("torch", d._name)) for d in (*ALL, *FLOATS_8))
    for name, kind in TYPES.items():
        names[id(kind)] = "torch.storage" if name == "UntypedStorage" else "torch", name
    names.update(
        (id(x), ("torch", repr(x).removeprefix("torch.")))
        for x in vars(memory_format).values()
        if isinstance(x, memory_format.memory_format)
    )
    return names  # type: ignore[return-value]


def torch_name(x: Any, name: str | None = None) -> tuple[str, str] | None:
    """Return the module and name that PyTorch has for an object, None where it has none."""
    known = _written().get(id(x))
    if known is not None:
        return known
    module = getattr(x, "__module__", None)
    if not isinstance(module, str) or not module.startswith(_MODULES):
        return None
    module = _public(x, module) if "._" in module else module
    return f"torch{module.removeprefix('leafax')}", name or x.__qualname__


def _public(x: Any, module: str) -> str:
    """Return the module that users find a class in which lies in a private one."""
    package = module[: module.index("._")]
    for name in sorted(sys.modules):
        if name.startswith(f"{package}.") and "._" not in name:
            if getattr(sys.modules[name], x.__name__, None) is x:
                return name
    return module
