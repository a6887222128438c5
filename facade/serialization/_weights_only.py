"""An unpickler that makes tensors and plain containers, and calls nothing that a file names."""

from __future__ import annotations

import pickle
import warnings
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from typing import Any

from .._tensor.tensor import Tensor
from ..nn.parameter import Parameter
from ._names import allowed
from ._safe import trusted

_BLOCKED = ("sys", "os", "posix", "nt")
_PYTHON: Any = pickle._Unpickler  # type: ignore[attr-defined]


def _python_3(module: str, name: str) -> tuple[str, str]:
    """Return the name that Python 3 has: files are written by protocol 2, which has Python 2's."""
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name


class _Opcodes(dict[int, Any]):
    def __missing__(self, key: int) -> Any:
        raise UnpicklingError(f"Unsupported operand {key}")


class WeightsOnly(_PYTHON):  # type: ignore[misc]
    """Reads a pickle by the opcodes that checkpoints have, with the globals that are allowed."""

    def find_class(self, module: str, name: str) -> Any:
        module, name = _python_3(module, name)
        full = f"{module}.{name}"
        if module in _BLOCKED:
            raise UnpicklingError(
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        for known in (allowed(), trusted()):
            if full in known:
                return known[full]
        full = full.removeprefix("builtins.")
        raise UnpicklingError(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the "
            f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def load_proto(self) -> None:
        self.proto = self.read(1)[0]
        if self.proto != 2:
            warnings.warn(
                f"Detected pickle protocol {self.proto} in the checkpoint, which was not the "
                "default pickle protocol used by `torch.load` (2). The weights_only Unpickler "
                "might not support all instructions implemented by this protocol, please file an "
                "issue for adding support if you encounter this.",
                stacklevel=2,
            )

    def load_newobj(self) -> None:
        args, cls = self.stack.pop(), self.stack.pop()
        if cls is Parameter:
            self.append(Parameter(*args))
        elif _is_known(cls):
            self.append(cls.__new__(cls, *args))
        else:
            raise UnpicklingError(
                "Can only create new object for nn.Parameter or classes allowlisted via "
                f"`add_safe_globals` but got {cls}"
            )

    def load_reduce(self) -> None:
        args, func = self.stack.pop(), self.stack[-1]
        if not _is_known(func):
            message = f"Trying to call reduce for unrecognized function {func}"
            if hasattr(func, "__self__"):
                message += f" which belongs to {func.__self__}"
            raise UnpicklingError(message)
        self.stack[-1] = func(*args)

    def load_build(self) -> None:
        state, made = self.stack.pop(), self.stack[-1]
        if type(made) is Tensor:
            made.set_(*state)
        elif type(made) is OrderedDict:
            made.__dict__.update(state)
        elif _is_known(type(made)):
            _set_state(made, state)
        else:
            raise UnpicklingError(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {type(made)}"
            )

    def load_append(self) -> None:
        item, target = self.stack.pop(), self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only append to lists, but got {type(target)}")
        target.append(item)

    def load_appends(self) -> None:
        items, target = self.pop_mark(), self.stack[-1]
        if type(target) is not list:
            raise UnpicklingError(f"Can only extend lists, but got {type(target)}")
        target.extend(items)

    def load_setitem(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._mapping("SETITEM")[key] = value

    def load_setitems(self) -> None:
        items, target = self.pop_mark(), self._mapping("SETITEMS")
        for k in range(0, len(items), 2):
            target[items[k]] = items[k + 1]

    def _mapping(self, opcode: str) -> Any:
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(
                f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter, but "
                f"got {type(target)}"
            )
        return target

    def load_binpersid(self) -> None:
        told = self.stack.pop()
        if type(told) is not tuple and type(told) is not int:
            raise UnpicklingError(f"persistent_load id must be tuple or int, but got {type(told)}")
        if type(told) is tuple and told and told[0] not in ("storage", b"storage"):
            raise UnpicklingError(
                f"Only persistent_load of storage is allowed, but got {type(told[0])}"
            )
        self.append(self.persistent_load(told))


def _is_known(x: Any) -> bool:
    if any(x is known for known in allowed().values()):
        return True
    return any(x is known for known in trusted().values())


def _set_state(made: Any, state: Any) -> None:
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        made.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(made, name, value)


_OURS = {
    pickle.PROTO: WeightsOnly.load_proto, pickle.NEWOBJ: WeightsOnly.load_newobj,
    pickle.REDUCE: WeightsOnly.load_reduce, pickle.BUILD: WeightsOnly.load_build,
    pickle.APPEND: WeightsOnly.load_append, pickle.APPENDS: WeightsOnly.load_appends,
    pickle.SETITEM: WeightsOnly.load_setitem, pickle.SETITEMS: WeightsOnly.load_setitems,
    pickle.BINPERSID: WeightsOnly.load_binpersid,
}  # fmt: skip
_PYTHONS = (
    pickle.GLOBAL, pickle.MARK, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3,
    pickle.NONE, pickle.NEWFALSE, pickle.NEWTRUE, pickle.EMPTY_TUPLE, pickle.EMPTY_LIST,
    pickle.EMPTY_DICT, pickle.EMPTY_SET, pickle.BININT, pickle.BININT1, pickle.BININT2,
    pickle.BINFLOAT, pickle.BINUNICODE, pickle.SHORT_BINSTRING, pickle.BINGET,
    pickle.LONG_BINGET, pickle.BINPUT, pickle.LONG_BINPUT, pickle.LONG1, pickle.STOP,
)  # fmt: skip
WeightsOnly.dispatch = _Opcodes({k[0]: _PYTHON.dispatch[k[0]] for k in _PYTHONS})
WeightsOnly.dispatch.update({k[0]: f for k, f in _OURS.items()})


class _Names(WeightsOnly):
    """Collects the globals of a pickle and makes nothing."""

    def __init__(self, file: Any) -> None:
        super().__init__(file)
        self.names: set[str] = set()

    def find_class(self, module: str, name: str) -> Any:
        self.names.add(".".join(_python_3(module, name)))
        return None

    def persistent_load(self, told: Any) -> Any:
        return None


def _nothing(self: Any) -> None:
    self.stack.pop()


def _nothing_marked(self: Any) -> None:
    self.pop_mark()


_Names.dispatch = _Opcodes(WeightsOnly.dispatch)
for _code in (pickle.REDUCE, pickle.BUILD, pickle.APPEND, pickle.NEWOBJ):
    _Names.dispatch[_code[0]] = _nothing
for _code in (pickle.APPENDS, pickle.SETITEMS):
    _Names.dispatch[_code[0]] = _nothing_marked
_Names.dispatch[pickle.SETITEM[0]] = lambda self: (self.stack.pop(), self.stack.pop())
_Names.dispatch[pickle.PROTO[0]] = lambda self: self.read(1)
_Names.dispatch[pickle.BINPERSID[0]] = lambda self: None


def names_in(file: Any) -> set[str]:
    """Return the full names of all globals of a pickle, none of which is looked up."""
    reader = _Names(file)
    reader.load()
    return reader.names
