"""Names that are found when somebody asks for them, and hints for those that leafax lacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers

# Modules that few programs need: they are imported when somebody asks for them.
LATER = (
    "_C", "__config__", "_custom_ops", "_dynamo", "_inductor", "_jit_internal", "_subclasses",
    "_tensor_str", "_vmap_internals", "accelerator", "amp", "ao", "classes", "compiler", "cpu",
    "cuda", "distributed", "distributions", "export", "futures", "fx", "hub", "jit", "library",
    "mps", "mtia", "multiprocessing", "nested", "onnx", "profiler", "quantization", "quasirandom",
    "serialization", "sparse", "storage", "testing", "torch_version", "xpu",
)  # fmt: skip
# Names that come from such modules.
_HOMES = {
    "_library.tags": "Tag",
    "_C._names": (
        "AnyType Argument BoolType CompilationUnit DictType DispatchKey DispatchKeySet FloatType "
        "FunctionSchema Graph IntType JITException ListType Node NoneType OptionalType "
        "PyTorchFileReader PyTorchFileWriter ScriptClass ScriptMethod ScriptObject StringType "
        "TensorType TupleType Type UnionType Value compiled_with_cxx11_abi has_lapack has_mkl "
        "has_openmp has_spectral is_vulkan_available"
    ),
    "_api.package_names": (
        "_check_tensor_all_with _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo "
        "_shape_as_tensor _softmax_backward_data from_file get_device"
    ),
    "_api.streams": "Event Stream",
    "_core.absent.dtypes": (
        "chalf complex32 float4_e2m1fn_x2 qint32 qint8 quint2x4 quint4x2 quint8 bits8 bits16 "
        "bits1x8 bits2x4 bits4x2 int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 "
        "uint6 uint7"
    ),
    "_core.absent.symbols": "SymBool SymFloat SymInt",
    "_core.dtypes": ("float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu"),
    "_core.memory_format": (
        "jagged legacy_contiguous_format sparse_bsc sparse_bsr sparse_coo sparse_csc sparse_csr"
    ),
    "_higher_order_ops": "cond while_loop",
    "_install": "install uninstall",
    "_api.assert_async": "_assert_async",
    "accelerator": "get_device_module",
    "amp": "GradScaler",
    "futures": "Future",
    "serialization": "load save",
    "sparse": (
        "sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor "
        "sparse_csc_tensor sparse_csr_tensor spmm"
    ),
    "jit": "ScriptFunction ScriptModule fork wait",
}
LATER_NAMES = {name: home for home, names in _HOMES.items() for name in names.split()}
TOP: dict[str, str] = dict.fromkeys(
    [
        "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic",
        "quantized_batch_norm",
    ],
    "there are no quantized tensors",
)  # fmt: skip
MASKED: dict[str, str] = dict.fromkeys(
    ["MaskedTensor", "masked_tensor", "as_masked_tensor", "is_masked_tensor"],
    "there are no masked tensors: the functions here take a `mask`",
)
OPTIM: dict[str, str] = {
    "SparseAdam": "there are no sparse gradients: use `leafax.optim.Adam`",
}
NN: dict[str, str] = {
    **dict.fromkeys(
        ["intrinsic", "qat", "quantizable", "quantized"], "there are no quantized tensors"
    ),
}
UTILS: dict[str, str] = {
    "benchmark": "use `timeit`, and `leafax.synchronize()` to wait for what runs",
}


def layer(name: str) -> str | None:
    """Return the hint for a name of `nn`."""
    return NN.get(name)


def missing(
    module: str, hint: Callable[[str], str | None], later: tuple[str, ...] = (),
    names: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[str], Any]:  # fmt: skip
    """Make a module's `__getattr__`, which says of some names what to use instead.

    Args:
      module: its name, "leafax.optim".
      hint: what to use instead of a name, None where nothing is known of it.
      later: modules in it that are imported when somebody asks for them.
      names: names that such modules have, each with its module's name.
    """

    def getattr_(name: str) -> Any:
        if name in later:
            return import_module(f"{module}.{name}")
        if name in names:
            home = import_module(f"{module}.{names[name]}")
            end_at_callers(home.__name__)
            found = getattr(home, name)
            setattr(sys.modules[module], name, found)  # so that nobody asks here again
            return found
        said, instead = f"module '{module}' has no attribute '{name}'", hint(name)
        raise AttributeError(f"{said}: {instead}" if instead else said)

    return getattr_


def listing(module: str, later: Iterable[str]) -> Callable[[], list[str]]:
    """Make a module's `__dir__`, which lists what is not there yet with what is."""
    return lambda: sorted({*vars(sys.modules[module]), *later})


def public(there: Iterable[str], later: Iterable[str]) -> list[str]:
    """List a module's names for `import *`, which asks no `__getattr__` but for those listed."""
    return [name for name in (*there, *later) if name[0] != "_"]
