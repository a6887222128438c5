"""`leafax.ops.aten`: PyTorch's names of ops, as checkpoint policies compare them.

>>> import leafax
>>> leafax.ops.aten.mm.default
<OpOverload(op='aten.mm', overload='default')>
"""

from typing import Any as _Any

from ._api import aten_find as _aten_find  # noqa: F401  # it finds the functions of the names
from ._library import operators as _operators
from ._ops.calls import aten_names as _aten_names
from ._ops.calls.aten_names import OpOverload as OpOverload
from ._ops.calls.aten_names import OpOverloadPacket as OpOverloadPacket
from ._ops.calls.aten_names import aten as aten
from ._ops.calls.aten_names import overload_of as overload_of

loaded_libraries: set[str] = set()
_aten_names.finders.own = _operators.overloads  # type: ignore[method-assign]


def load_library(path: str) -> None:
    """Raise: extensions that are compiled for PyTorch cannot be loaded.

    Raises:
      OSError: always; packages with a fallback take it.
    """
    raise OSError(
        f"Could not load this library: {path} (it is compiled for PyTorch, which is not there)"
    )


def import_module(module: str) -> None:
    """Import a Python module that defines ops."""
    __import__(module)


def __getattr__(name: str) -> _Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'leafax.ops' has no attribute '{name}'")
    return _aten_names.namespace(name)
