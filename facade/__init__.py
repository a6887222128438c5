"""An imperative, PyTorch-like Tensor over JAX: `import leafax as torch`."""

import gc as _gc

_collects = _gc.isenabled()
_gc.disable()  # it would walk all of JAX again and again while the modules are made

from leafax.functional.execution.memory import OutOfMemoryError as OutOfMemoryError
from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from . import _VF as _VF
from . import __future__ as __future__
from . import autograd as autograd
from . import backends as backends
from . import fft as fft
from . import func as func
from . import linalg as linalg
from . import masked as masked
from . import nn as nn
from . import ops as ops
from . import optim as optim
from . import overrides as overrides
from . import random as random
from . import return_types as return_types
from . import signal as signal
from . import special as special
from . import types as types
from . import utils as utils
from . import version as version
from ._api import aten_find as _aten_find
from ._api import einops as _einops  # noqa: F401
from ._api import old_module_names as _old_module_names
from ._api import pickle_names as _pickle_names
from ._api import safetensors_memory as _safetensors_memory  # noqa: F401
from ._api import tensorboardx as _tensorboardx  # noqa: F401
from ._api.compile import compile as compile
from ._api.deprecated_amp import get_autocast_cpu_dtype as get_autocast_cpu_dtype
from ._api.deprecated_amp import get_autocast_gpu_dtype as get_autocast_gpu_dtype
from ._api.deprecated_amp import is_autocast_cpu_enabled as is_autocast_cpu_enabled
from ._api.deprecated_amp import set_autocast_cpu_dtype as set_autocast_cpu_dtype
from ._api.deprecated_amp import set_autocast_cpu_enabled as set_autocast_cpu_enabled
from ._api.deprecated_amp import set_autocast_gpu_dtype as set_autocast_gpu_dtype
from ._api.functions import *  # noqa: F403
from ._core import missing_names as _missing_names  # noqa: F401
from ._core.constants import e as e
from ._core.constants import inf as inf
from ._core.constants import nan as nan
from ._core.constants import newaxis as newaxis
from ._core.constants import pi as pi
from ._core.dtypes import Size as Size
from ._core.dtypes import bfloat16 as bfloat16
from ._core.dtypes import bool as bool
from ._core.dtypes import cdouble as cdouble
from ._core.dtypes import cfloat as cfloat
from ._core.dtypes import complex64 as complex64
from ._core.dtypes import complex128 as complex128
from ._core.dtypes import device as device
from ._core.dtypes import double as double
from ._core.dtypes import dtype as dtype
from ._core.dtypes import float as float
from ._core.dtypes import float16 as float16
from ._core.dtypes import float32 as float32
from ._core.dtypes import float64 as float64
from ._core.dtypes import half as half
from ._core.dtypes import int as int
from ._core.dtypes import int8 as int8
from ._core.dtypes import int16 as int16
from ._core.dtypes import int32 as int32
from ._core.dtypes import int64 as int64
from ._core.dtypes import long as long
from ._core.dtypes import short as short
from ._core.dtypes import uint8 as uint8
from ._core.dtypes import uint16 as uint16
from ._core.dtypes import uint32 as uint32
from ._core.dtypes import uint64 as uint64
from ._core.grad_modes import enable_grad as enable_grad
from ._core.grad_modes import inference_mode as inference_mode
from ._core.grad_modes import is_grad_enabled as is_grad_enabled
from ._core.grad_modes import is_inference_mode_enabled as is_inference_mode_enabled
from ._core.grad_modes import no_grad as no_grad
from ._core.grad_modes import set_grad_enabled as set_grad_enabled
from ._core.memory_format import channels_last as channels_last
from ._core.memory_format import channels_last_3d as channels_last_3d
from ._core.memory_format import contiguous_format as contiguous_format
from ._core.memory_format import layout as layout
from ._core.memory_format import memory_format as memory_format
from ._core.memory_format import preserve_format as preserve_format
from ._core.memory_format import strided as strided
from ._core.number_limits import finfo as finfo
from ._core.number_limits import iinfo as iinfo
from ._core.typename import typename as typename
from ._core.warn_once import is_warn_always_enabled as is_warn_always_enabled
from ._core.warn_once import set_warn_always as set_warn_always
from ._dispatch.jax_call import call_jax as call_jax
from ._dispatch.jax_call import eval_shape as eval_shape
from ._dispatch.jax_call import jax_function as jax_function
from ._ops.autocast.scope import autocast as autocast
from ._ops.autocast.scope import autocast_decrement_nesting as autocast_decrement_nesting
from ._ops.autocast.scope import autocast_increment_nesting as autocast_increment_nesting
from ._ops.autocast.scope import clear_autocast_cache as clear_autocast_cache
from ._ops.autocast.scope import get_autocast_dtype as get_autocast_dtype
from ._ops.autocast.scope import is_autocast_cache_enabled as is_autocast_cache_enabled
from ._ops.autocast.scope import is_autocast_enabled as is_autocast_enabled
from ._ops.autocast.scope import set_autocast_cache_enabled as set_autocast_cache_enabled
from ._ops.autocast.scope import set_autocast_dtype as set_autocast_dtype
from ._ops.autocast.scope import set_autocast_enabled as set_autocast_enabled
from ._ops.composites import casting_ops as _casting_ops  # noqa: F401
from ._ops.composites import fft as _fft  # noqa: F401
from ._ops.composites import linalg as _linalg  # noqa: F401
from ._ops.composites import reductions as _reductions  # noqa: F401
from ._ops.composites import special as _special  # noqa: F401
from ._ops.composites.asserts import _assert as _assert
from ._ops.composites.asserts import _check as _check
from ._ops.composites.asserts import _check_index as _check_index
from ._ops.composites.asserts import _check_is_size as _check_is_size
from ._ops.composites.asserts import _check_not_implemented as _check_not_implemented
from ._ops.composites.asserts import _check_tensor_all as _check_tensor_all
from ._ops.composites.asserts import _check_type as _check_type
from ._ops.composites.asserts import _check_value as _check_value
from ._ops.composites.asserts import _check_with as _check_with
from ._ops.composites.asserts import sym_float as sym_float
from ._ops.composites.asserts import sym_int as sym_int
from ._ops.composites.asserts import sym_ite as sym_ite
from ._ops.composites.asserts import sym_max as sym_max
from ._ops.composites.asserts import sym_min as sym_min
from ._ops.composites.asserts import sym_not as sym_not
from ._ops.composites.asserts import sym_sqrt as sym_sqrt
from ._ops.composites.asserts import sym_sum as sym_sum
from ._ops.composites.unique import _unique as _unique
from ._ops.creation.factories import arange as arange
from ._ops.creation.factories import empty as empty
from ._ops.creation.factories import empty_like as empty_like
from ._ops.creation.factories import eye as eye
from ._ops.creation.factories import full as full
from ._ops.creation.factories import full_like as full_like
from ._ops.creation.factories import linspace as linspace
from ._ops.creation.factories import logspace as logspace
from ._ops.creation.factories import ones as ones
from ._ops.creation.factories import ones_like as ones_like
from ._ops.creation.factories import rand as rand
from ._ops.creation.factories import rand_like as rand_like
from ._ops.creation.factories import randint as randint
from ._ops.creation.factories import randint_like as randint_like
from ._ops.creation.factories import randn as randn
from ._ops.creation.factories import randn_like as randn_like
from ._ops.creation.factories import randperm as randperm
from ._ops.creation.factories import scalar_tensor as scalar_tensor
from ._ops.creation.factories import zeros as zeros
from ._ops.creation.factories import zeros_like as zeros_like
from ._ops.creation.from_arrays import from_numpy as from_numpy
from ._ops.creation.from_data import as_tensor as as_tensor
from ._ops.creation.from_data import asarray as asarray
from ._ops.creation.from_data import tensor as tensor
from ._ops.creation.generator import Generator as Generator
from ._ops.creation.generator import default_generator as default_generator
from ._ops.creation.generator import fork_rng as fork_rng
from ._ops.creation.generator import get_rng_state as get_rng_state
from ._ops.creation.generator import initial_seed as initial_seed
from ._ops.creation.generator import manual_seed as manual_seed
from ._ops.creation.generator import seed as seed
from ._ops.creation.generator import set_rng_state as set_rng_state
from ._ops.creation.legacy_constructors import BFloat16Tensor as BFloat16Tensor
from ._ops.creation.legacy_constructors import BoolTensor as BoolTensor
from ._ops.creation.legacy_constructors import ByteTensor as ByteTensor
from ._ops.creation.legacy_constructors import CharTensor as CharTensor
from ._ops.creation.legacy_constructors import DoubleTensor as DoubleTensor
from ._ops.creation.legacy_constructors import FloatTensor as FloatTensor
from ._ops.creation.legacy_constructors import HalfTensor as HalfTensor
from ._ops.creation.legacy_constructors import IntTensor as IntTensor
from ._ops.creation.legacy_constructors import LongTensor as LongTensor
from ._ops.creation.legacy_constructors import ShortTensor as ShortTensor
from ._ops.creation.storage_objects import TypedStorage as TypedStorage
from ._ops.creation.storage_objects import UntypedStorage as UntypedStorage
from ._ops.creation.storage_objects import is_storage as is_storage
from ._replay.saved import load_compiled as load_compiled
from ._runtime import gc_support as _gc_support  # noqa: F401
from ._runtime.compilations import set_explain as set_explain
from ._runtime.explain import explain as explain
from ._runtime.observation import synchronize as synchronize
from ._runtime.persistent_cache import cache as cache
from ._tensor.printing import get_printoptions as get_printoptions
from ._tensor.printing import printoptions as printoptions
from ._tensor.printing import set_printoptions as set_printoptions
from ._tensor.switches import (
    are_deterministic_algorithms_enabled as are_deterministic_algorithms_enabled,
)
from ._tensor.switches import get_default_device as get_default_device
from ._tensor.switches import get_deterministic_debug_mode as get_deterministic_debug_mode
from ._tensor.switches import get_num_interop_threads as get_num_interop_threads
from ._tensor.switches import get_num_threads as get_num_threads
from ._tensor.switches import (
    is_deterministic_algorithms_warn_only_enabled as is_deterministic_algorithms_warn_only_enabled,
)
from ._tensor.switches import set_default_device as set_default_device
from ._tensor.switches import set_default_tensor_type as set_default_tensor_type
from ._tensor.switches import set_deterministic_debug_mode as set_deterministic_debug_mode
from ._tensor.switches import set_flush_denormal as set_flush_denormal
from ._tensor.switches import set_num_interop_threads as set_num_interop_threads
from ._tensor.switches import set_num_threads as set_num_threads
from ._tensor.switches import use_deterministic_algorithms as use_deterministic_algorithms
from ._tensor.tensor import Tensor as Tensor
from ._tracing.leaf_tuples import Leaves as Leaves
from ._VF import _unique2 as _unique2
from .autograd._anomaly import is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled
from .autograd._anomaly import is_anomaly_enabled as is_anomaly_enabled
from .backends._float32_precision import (
    get_float32_matmul_precision as get_float32_matmul_precision,
)
from .backends._float32_precision import (
    set_float32_matmul_precision as set_float32_matmul_precision,
)
from .func import vmap as vmap
from .random import thread_safe_generator as thread_safe_generator
from .version import __version__ as __version__

_aten_find.TOP.append(globals())
_einops.watch()
_safetensors_memory.watch()
_tensorboardx.watch()
_old_module_names.find_old_names()
_pickle_names.name_methods(Tensor)
_pickle_names.name_places(("fft", "linalg", "nn.functional", "special", ""))
__getattr__ = _missing_names.missing(
    "leafax", _missing_names.TOP.get, _missing_names.LATER, _missing_names.LATER_NAMES
)
__dir__ = _missing_names.listing("leafax", (*_missing_names.LATER, *_missing_names.LATER_NAMES))
__all__ = _missing_names.public(
    globals(),
    ("GradScaler", "accelerator", "amp", "cpu", "cuda", "load", "save", "serialization", "testing"),
)
for _name in ("leafax", "leafax.func._vmap"):  # last: it changes the functions that are there
    _end_at_callers(_name)
if _collects:
    if not _gc.get_freeze_count():
        _gc.freeze()  # what was made is old now, or the next collection of what is young walks it
        _gc.unfreeze()
    _gc.enable()
