"""Which functions and methods `__torch_function__` can override, and what it is told they are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any, NamedTuple

from .. import fft, linalg, special
from .._signatures.table import method_signatures
from .._tensor.tensor import Tensor
from ..nn import functional, init

# Functions that neither take tensors nor make them, or that PyTorch keeps to itself.
NEVER = frozenset("""
    are_deterministic_algorithms_enabled assert_int_or_pair autocast_decrement_nesting
    autocast_increment_nesting broadcast_shapes call_jax can_cast clear_autocast_cache compile
    eval_shape explain fork_rng from_numpy get_autocast_cpu_dtype get_autocast_dtype
    get_autocast_gpu_dtype get_default_device get_default_dtype get_deterministic_debug_mode
    get_float32_matmul_precision get_num_interop_threads get_num_threads get_printoptions
    get_rng_state initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
    is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
    is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled
    is_storage is_tensor is_warn_always_enabled jax_function load manual_seed printoptions
    promote_types result_type save seed set_autocast_cache_enabled set_autocast_cpu_dtype
    set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype
    set_default_device set_default_dtype set_default_tensor_type set_deterministic_debug_mode
    set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
    set_printoptions set_rng_state set_warn_always sym_float sym_int sym_ite sym_max sym_min
    sym_not sym_sqrt sym_sum synchronize typename use_deterministic_algorithms vmap calculate_gain
    thread_safe_generator
""".split())  # fmt: skip
# Functions that PyTorch has, but whose overrides it does not ask to be complete.
_OPTIONAL = frozenset("""
    arange as_strided as_tensor asarray bartlett_window blackman_window empty empty_permuted
    empty_strided eye fftfreq fill frombuffer from_file full grouped_mm hamming_window hann_window
    hardsigmoid hardswish kaiser_window linspace logspace normal ones rand rand_like randint
    randint_like randn randn_like randperm range rfftfreq scalar_tensor scaled_grouped_mm scaled_mm
    sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor sparse_coo_tensor sparse_csc_tensor
    sparse_csr_tensor tanh tensor tril_indices triu_indices upsample upsample_bilinear
    upsample_nearest vander zeros
""".split()) | frozenset({"sigmoid"})  # fmt: skip
NO_METHODS = frozenset("""
    __annotations__ __class__ __copy__ __delattr__ __delitem__ __dir__ __getattribute__ __hash__
    __init__ __init_subclass__ __iter__ __jax_array__ __lower__ __new__ __setattr__
    __subclasshook__ __torch_function__ __torch_dispatch__ as_subclass jax __getstate__
""".split())  # fmt: skip
_ALSO = frozenset({"_base", "_backward_hooks", "_version", "_is_view"})

# Functions of `nn.functional` that are written in C++: arguments are passed on as they came. The
# first are those of `torch._C._nn`, the others stand in `torch` too.
IN_NN = frozenset("""
    avg_pool2d avg_pool3d elu_ gelu hardtanh_ leaky_relu_ linear logsigmoid one_hot
    scaled_dot_product_attention softplus softshrink
""".split())  # fmt: skip
IN_CPP = IN_NN | frozenset("""
    adaptive_avg_pool1d avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d conv_tbc
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity hardshrink
    native_channel_shuffle pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_
    selu_ threshold_
""".split())  # fmt: skip
_IN_PYTHON = frozenset("""
    _assert atleast_1d atleast_2d atleast_3d block_diag broadcast_tensors cartesian_prod cdist
    chain_matmul eig einsum lobpcg lstsq lu matrix_rank meshgrid norm pca_lowrank solve split stft
    svd_lowrank symeig tensordot unique unique_consecutive unravel_index
""".split())  # fmt: skip
_INITIALIZERS = frozenset({"uniform_", "normal_", "constant_", "kaiming_uniform_"})
_UNPARSED = frozenset("""
    __neg__ __abs__ __pos__ __invert__ __bool__ __float__ __int__ __complex__ __index__
""".split())  # fmt: skip
_PYTHON_METHODS = frozenset("""
    __array__ __array_wrap__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __floordiv__
    __format__ __ipow__ __len__ __pow__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__
    __rlshift__ __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __rtruediv__ __setstate__
    backward dim_order eig index is_shared istft lstsq lu module_load norm register_hook
    register_post_accumulate_grad_hook reinforce resize resize_as share_memory_ solve split stft
    storage storage_type symeig unflatten unique unique_consecutive
""".split())  # fmt: skip
# The methods that operators are told to be.
_OPERATORS = {
    "__add__": "add", "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul",
    "__truediv__": "div", "__mod__": "remainder", "__matmul__": "matmul", "__neg__": "neg",
    "__abs__": "abs", "__pos__": "positive", "__lt__": "lt", "__le__": "le", "__gt__": "gt",
    "__ge__": "ge", "__ne__": "ne", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_",
    "__itruediv__": "div_", "__ifloordiv__": "floor_divide_", "__imod__": "remainder_",
    "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip


class Overridable(NamedTuple):
    """A function that can be overridden.

    Attributes:
      function: what Python calls.
      public: what `__torch_function__` is told.
      name: PyTorch's name of `public`, `"torch.Tensor.add"`.
      python: PyTorch's own is written in Python.
      unparsed: PyTorch has no parser for it, since it takes the tensor alone.
      required: it is among `get_overridable_functions`.
    """

    function: Any
    public: Any
    name: str
    python: bool
    required: bool
    unparsed: bool = False


def namespaces() -> Iterator[tuple[str, Any]]:
    """Yield the namespaces of functions and PyTorch's names of them."""
    yield "torch", sys.modules["leafax"]
    yield "torch.nn.functional", functional
    yield "torch.nn.init", init
    yield "torch.linalg", linalg
    yield "torch.fft", fft
    yield "torch.special", special


def functions() -> Iterator[Overridable]:
    """Yield the functions of modules; one that stands in several is told by the first."""
    for prefix, module in namespaces():
        for name, fn in list(vars(module).items()):
            if (
                name[0] == "_"
                and name != "_assert"
                or name in NEVER
                or not isinstance(fn, FunctionType)
            ):
                continue
            if module is init and name not in _INITIALIZERS:
                continue
            if module is functional:
                python = name not in IN_CPP
            else:
                python = module is init or prefix == "torch" and name in _IN_PYTHON
            at_top = prefix != "torch" or name in ("_assert", "lobpcg")
            within = ".functional" if python and not at_top else ""
            required = (
                module is not init and name not in _OPTIONAL and "_" not in name[0] + name[-1]
            )
            yield Overridable(fn, fn, f"{prefix}{within}.{name}", python, required)


def methods() -> Iterator[Overridable]:
    """Yield methods and attributes of tensors."""
    seen = set(NO_METHODS)
    for part in Tensor.__mro__[:-1]:
        for name, found in list(vars(part).items()):
            dunder = name[:2] == "__"
            if name in seen or name[0] == "_" and not dunder and name not in _ALSO:
                continue
            seen.add(name)
            said = f"torch.Tensor.{name}"
            if isinstance(found, FunctionType):
                public = getattr(Tensor, _OPERATORS.get(name, name))
                python = name in _PYTHON_METHODS
                alone = not python and method_signatures(name) == ("",) or name in _UNPARSED
                yield Overridable(found, public, said, python, True, alone)
            elif isinstance(found, property):
                if isinstance(found.fget, FunctionType):
                    get = found.__get__
                    yield Overridable(found.fget, get, f"{said}.__get__", False, True, True)
                if isinstance(found.fset, FunctionType):
                    set_ = found.__set__
                    yield Overridable(found.fset, set_, f"{said}.__set__", False, False, True)


@cache
def names() -> dict[Any, str]:
    """Return PyTorch's names of all functions that can be overridden."""
    found: dict[Any, str] = {}
    for f in (*functions(), *methods()):
        told = f.function if isinstance(f.public, FunctionType) else f.public
        found.setdefault(told, f.name)
    return found
