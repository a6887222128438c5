"""Names of `torch._C` that packages put into annotations, or ask while they are imported."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any

from .._core.absent.stand_ins import Block, do_nothing, refuse_class
from .._core.dtypes import device as _device
from .._core.jax_devices import list_gpus as _list_gpus
from .._core.transforms_running import active as _transforms
from .._tensor.switches import get_default_device

_log_api_usage_once = _log_api_usage_metadata = do_nothing
_NONE = "there is no TorchScript"
(
    AnyType, Argument, BoolType, CompilationUnit, DictType, FloatType, FunctionSchema, Graph,
    IntType, ListType, Node, NoneType, OptionalType, ScriptClass, ScriptFunction, ScriptMethod,
    ScriptModule, ScriptObject, StringType, TensorType, TupleType, Type, UnionType, Value,
) = [
    refuse_class(f"_C.{kind}", _NONE)
    for kind in (
        "AnyType Argument BoolType CompilationUnit DictType FloatType FunctionSchema Graph IntType "
        "ListType Node NoneType OptionalType ScriptClass ScriptFunction ScriptMethod ScriptModule "
        "ScriptObject StringType TensorType TupleType Type UnionType Value"
    ).split()
]  # fmt: skip
PyTorchFileReader = refuse_class("_C.PyTorchFileReader", "`leafax.load` reads files")
PyTorchFileWriter = refuse_class("_C.PyTorchFileWriter", "`leafax.save` writes files")


has_lapack = has_spectral = True  # JAX has its own
has_mkl = has_openmp = False


class JITException(RuntimeError):
    """An error of a TorchScript program: there is none."""


def compiled_with_cxx11_abi() -> bool:
    """Return True, as PyTorch does; nothing of leafax is compiled."""
    return True


def is_vulkan_available() -> bool:
    """Return False: leafax does not compute there."""
    return False


class _TensorMeta(type):
    """The metaclass of tensors in PyTorch; here it is `type`."""


def _get_tracing_state() -> None:
    """Return None: nothing traces."""


def _is_tracing() -> bool:
    """Return False: nothing traces."""
    return False


def _get_privateuse1_backend_name() -> str:
    """Return PyTorch's name of a device that nobody has named."""
    return "privateuseone"


def _get_accelerator() -> Any:
    """Return the device that programs run on, without a number."""
    return _device("cuda" if _list_gpus() else "cpu")


def _get_default_device() -> str:
    """Return the device that new tensors are made on."""
    return str(get_default_device())


def _are_functorch_transforms_active() -> bool:
    """Tell whether a transform of `func` calls the function that asks."""
    return _transforms.depth > 0


def _jit_can_fuse_on_cpu() -> bool:
    """Return False: XLA fuses."""
    return False


def _jit_set_profiling_mode(enabled: bool) -> bool:
    """Return what the setting was, False: there is no TorchScript."""
    return False


_jit_can_fuse_on_gpu = _jit_can_fuse_on_cpu
_jit_set_profiling_executor = _jit_set_texpr_fuser_enabled = _jit_set_profiling_mode
_jit_set_nvfuser_enabled = _jit_override_can_fuse_on_cpu = _jit_set_profiling_mode
_jit_override_can_fuse_on_gpu = _jit_set_profiling_mode


class _ExcludeDispatchKeyGuard(Block):
    """A block in which some kernels are left out: leafax has no dispatcher.

    Args:
      keys: the kernels' keys.
    """

    def __init__(self, keys: Any) -> None:
        pass


class DispatchKey(enum.Enum):
    """The keys that PyTorch's dispatcher finds kernels by; leafax has no dispatcher."""

    Undefined = 0
    CPU = 1
    CUDA = 2
    XPU = 3
    MPS = 4
    HPU = 5
    Meta = 6
    PrivateUse1 = 7
    SparseCPU = 8
    SparseCUDA = 9
    QuantizedCPU = 10
    QuantizedCUDA = 11
    BackendSelect = 12
    Python = 13
    FuncTorchDynamicLayerFrontMode = 14
    FuncTorchBatched = 15
    Functionalize = 16
    ADInplaceOrView = 17
    AutogradOther = 18
    AutogradFunctionality = 19
    AutogradCPU = 20
    AutogradCUDA = 21
    AutogradXPU = 22
    AutogradMPS = 23
    Autograd = 24
    Tracer = 25
    AutocastCPU = 26
    AutocastCUDA = 27
    AutocastXPU = 28
    AutocastMPS = 29
    PythonDispatcher = 30
    PythonTLSSnapshot = 31
    CompositeImplicitAutograd = 32
    CompositeExplicitAutograd = 33


class DispatchKeySet:
    """A set of `DispatchKey`s.

    Args:
      key: its only key.
    """

    def __init__(self, key: DispatchKey | None = None) -> None:
        self._keys = frozenset() if key is None else frozenset([key])

    @classmethod
    def _of(cls, keys: Any) -> DispatchKeySet:
        made = cls()
        made._keys = frozenset(keys)
        return made

    def has(self, key: DispatchKey) -> bool:
        """Tell whether a key is in the set."""
        return key in self._keys

    def add(self, key: DispatchKey) -> DispatchKeySet:
        """Return a set with a key more."""
        return self._of(self._keys | {key})

    def remove(self, key: DispatchKey) -> DispatchKeySet:
        """Return a set without a key."""
        return self._of(self._keys - {key})

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return self._of(self._keys | other._keys)

    def __iter__(self) -> Iterator[DispatchKey]:
        return iter(self._keys)
