"""Hints for names of PyTorch that leafax does not have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

_SPARSE = "there are no sparse tensors"
_COMPILED = "a training step is one compiled program as it is; leave the call out"
_WEIGHTS = "`leafax.load` reads PyTorch's files of weights from the disk"
_PROFILER = "`leafax.explain()` tells what ran, `jax.profiler` for how long"

# Modules that few programs need: they are imported when somebody asks for them.
LATER = (
    "distributions",
)  # fmt: skip
# Names that come from such modules.
LATER_NAMES = {"install": "_install", "uninstall": "_install"}
TOP: dict[str, str] = {
    "compile": _COMPILED,
    "compiler": _COMPILED,
    "jit": f"{_COMPILED}, and `leafax.functional.lower` exports what was recorded",
    "export": "`leafax.functional.lower` exports what was recorded as a JAX function",
    "onnx": "`leafax.functional.lower` exports what was recorded as a JAX function",
    "distributed": "there is one process so far",
    "multiprocessing": "there is one process so far",
    "fx": "`leafax.functional.lower` exports what was recorded as a JAX function",
    "hub": _WEIGHTS,
    "sparse": _SPARSE,
    "nested": "there are no nested tensors",
    "quantization": "there are no quantized tensors",
    **dict.fromkeys(
        [
            "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor",
            "sparse_bsc_tensor", "sparse_compressed_tensor", "sparse_coo", "sparse_csr",
            "sparse_csc", "sparse_bsr", "sparse_bsc",
        ],
        _SPARSE,
    ),
    **dict.fromkeys(
        [
            "quantize_per_tensor", "quantize_per_channel", "quantize_per_tensor_dynamic",
            "quint8", "qint8", "qint32", "quint4x2", "quint2x4", "quantized_batch_norm",
        ],
        "there are no quantized tensors",
    ),
    **dict.fromkeys(["complex32", "chalf"], "JAX has no such dtype"),
    **dict.fromkeys(
        [
            "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz",
            "float8_e8m0fnu", "float4_e2m1fn_x2",
        ],
        "there are no floats of 8 bits",
    ),
    **dict.fromkeys(
        ["Stream", "Event"], "JAX orders what runs on a device: leave the streams out"
    ),
    "profiler": _PROFILER,
}  # fmt: skip
AUTOGRAD: dict[str, str] = {"profiler": _PROFILER}
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
    "cpp_extension": "`leafax.call_jax` makes an op of any JAX function",
    "model_zoo": _WEIGHTS,
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
            return getattr(import_module(f"{module}.{names[name]}"), name)
        said, instead = f"module '{module}' has no attribute '{name}'", hint(name)
        raise AttributeError(f"{said}: {instead}" if instead else said)

    return getattr_
