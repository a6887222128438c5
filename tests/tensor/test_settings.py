"""Number types, devices, switches and constants that PyTorch programs ask for."""

from __future__ import annotations

import importlib
import pickle
import threading
import traceback
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import torch

import leafax

DTYPES = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_finfo(dtype: str) -> None:
    ours, theirs = (lib.finfo(getattr(lib, dtype)) for lib in (leafax, torch))
    assert repr(ours) == repr(theirs)
    for name in "bits eps max min tiny smallest_normal resolution dtype".split():
        assert getattr(ours, name) == getattr(theirs, name), name
    assert ours == leafax.finfo(getattr(leafax, dtype))
    assert (ours == leafax.finfo()) is (theirs == torch.finfo())


@pytest.mark.parametrize("dtype", INTEGERS)
def test_iinfo(dtype: str) -> None:
    ours, theirs = (lib.iinfo(getattr(lib, dtype)) for lib in (leafax, torch))
    assert repr(ours) == repr(theirs)
    for name in "bits max min dtype".split():
        assert getattr(ours, name) == getattr(theirs, name), name


def shown(x: Any) -> Any:
    if isinstance(x, (torch.Tensor, leafax.Tensor)):
        return str(x.dtype), tuple(x.shape), str(x.device), x.tolist()
    if isinstance(x, (tuple, list)):
        return [shown(y) for y in x]
    return x if isinstance(x, (bool, int, float, str, type(None))) else repr(x)


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return shown(call(lib))
        except Exception as e:
            return type(e).__name__, str(e)


OPTIONS: dict[str, Any] = {"device": "cpu", "requires_grad": False, "pin_memory": False}


def options(t: Any) -> dict[str, Any]:
    return {**OPTIONS, "layout": t.strided}


def like(t: Any) -> dict[str, Any]:
    return {**OPTIONS, "layout": t.strided, "memory_format": t.preserve_format}


def debug_mode(t: Any, mode: Any) -> Any:
    t.set_deterministic_debug_mode(mode)
    told = (
        t.get_deterministic_debug_mode(),
        t.are_deterministic_algorithms_enabled(),
        t.is_deterministic_algorithms_warn_only_enabled(),
    )
    t.use_deterministic_algorithms(False)
    return told


def on_cpu(t: Any) -> Any:
    with t.device("cpu"):
        return t.zeros(2), t.get_default_device()


def precision(t: Any, wanted: str) -> Any:
    try:
        t.set_float32_matmul_precision(wanted)
        return t.get_float32_matmul_precision()
    finally:
        t.set_float32_matmul_precision("highest")


def default_type(t: Any) -> Any:
    try:
        t.set_default_tensor_type("torch.DoubleTensor")
        return t.tensor([1.5])
    finally:
        t.set_default_tensor_type(t.FloatTensor)


CASES: dict[str, Callable[[Any], Any]] = {
    "finfo of integers": lambda t: t.finfo(t.int32),
    "iinfo of floats": lambda t: t.iinfo(t.float32),
    "iinfo of bools": lambda t: t.iinfo(t.bool),
    "finfo of a number": lambda t: t.finfo(3),
    "constants": lambda t: [t.pi, t.e, t.inf, t.newaxis],
    "formats": lambda t: [t.strided, t.contiguous_format, t.channels_last, t.preserve_format],
    "layout": lambda t: [t.ones(2).layout, t.ones(2).layout is t.strided],
    "where a tensor is": lambda t: [
        t.ones(2).is_cpu, t.ones(2).is_cuda, t.ones(2).get_device(), t.ones(2).is_pinned(),
        t.ones(2).is_shared(), t.ones(2).is_xpu,
    ],
    "cpu": lambda t: [(x := t.ones(2)).cpu() is x, x.to("cpu") is x, x.to(t.device("cpu")) is x],
    "default device": lambda t: [
        t.get_default_device(), t.set_default_device("cpu"), t.get_default_device(),
        t.set_default_device(None),
    ],
    "device block": on_cpu,
    "devices": lambda t: [
        t.device("cuda:1"), str(t.device("cpu", 0)), t.device("cpu") == t.device("cpu", 0),
        t.device("cpu") == "cpu", t.device(type="cpu", index=0),
    ],
    "device of numbers": lambda t: t.device(1, 2),
    "device of no number": lambda t: t.device(-1),
    "device without an accelerator": lambda t: t.device(5),
    "device of a float": lambda t: t.device(1.5),
    "device of a bool": lambda t: t.device(True),
    "device before the first": lambda t: t.device("cpu", -1),
    "device of a fraction": lambda t: t.device("cuda", 1.5),
    "device too far": lambda t: t.device(2**70),
    "device string": lambda t: t.device("cpu:a"),
    "channels last of a vector": lambda t: t.ones(3).contiguous(memory_format=t.channels_last),
    "is channels last": lambda t: [
        t.ones(2, 3, 4, 5).is_contiguous(memory_format=t.channels_last),
        t.ones(2, 1, 4, 5).is_contiguous(memory_format=t.channels_last),
        t.ones(2, 4, 5, 3).permute(0, 3, 1, 2).is_contiguous(memory_format=t.channels_last),
        t.ones(2, 0, 3).transpose(0, 2).is_contiguous(),
    ],
    "no threads": lambda t: t.set_num_threads(0),
    "threads by name": lambda t: t.set_num_threads("a"),
    "too many threads": lambda t: t.set_num_threads(2**31),
    "far too many threads": lambda t: t.set_num_threads(2**65),
    "too many threads between ops": lambda t: t.set_num_interop_threads(2**31),
    "no number of threads between ops": lambda t: t.set_num_interop_threads(True),
    "deterministic 1": lambda t: t.use_deterministic_algorithms(1),
    "deterministic None": lambda t: t.use_deterministic_algorithms(None),
    "warning only 1": lambda t: t.use_deterministic_algorithms(True, warn_only=1),
    "debug modes": lambda t: [debug_mode(t, m) for m in (0, 1, 2, "warn", "default", "error")],
    "debug mode 5": lambda t: debug_mode(t, 5),
    "debug mode x": lambda t: debug_mode(t, "x"),
    "debug mode 1.5": lambda t: debug_mode(t, 1.5),
    "precision": lambda t: [precision(t, p) for p in ("high", "medium", "none")],
    "default type": default_type,
    "backends": lambda t: [
        t.backends.cudnn.enabled, t.backends.cudnn.benchmark, t.backends.cudnn.deterministic,
        t.backends.cudnn.is_available(), t.backends.mps.is_available(),
        t.backends.cuda.matmul.allow_tf32,
    ],
    "libraries": lambda t: [
        t.backends.cuda.preferred_linalg_library(), t.backends.cuda.preferred_blas_library(),
        t.backends.cuda.preferred_blas_library("default"), t.backends.nnpack.set_flags(False),
        t.backends.nnpack.set_flags(True),
    ],
    "unknown library": lambda t: t.backends.cuda.preferred_linalg_library("lapack"),
    "no library": lambda t: t.backends.cuda.preferred_blas_library(3),
    "cuda": lambda t: [
        t.cuda.is_available(), t.cuda.device_count(), t.cuda.memory_allocated(),
        t.cuda.empty_cache(), t.cuda.manual_seed_all(0),
    ],
    "typename": lambda t: [
        t.typename(x) for x in (t.ones(2), t.ones(2, dtype=t.int64), 3, "s", len)
    ],
    "zeros": lambda t: t.zeros(2, **options(t)),
    "full": lambda t: t.full((2,), 3.0, **options(t)),
    "arange": lambda t: t.arange(3, **options(t)),
    "linspace": lambda t: t.linspace(0, 1, 3, **options(t)),
    "logspace": lambda t: t.logspace(0, 1, 3, **options(t)),
    "eye": lambda t: t.eye(2, **options(t)),
    "drawn": lambda t: [
        t.rand(2, **options(t)).shape, t.randn(2, **options(t)).shape,
        t.randint(0, 5, (2,), **options(t)).shape, t.randperm(4, **options(t)).shape,
        t.normal(0.0, 1.0, (2,), **options(t)).shape, t.rand(size=(2,)).shape,
    ],
    "likes": lambda t: [
        t.zeros_like(t.ones(2), **like(t)), t.ones_like(t.ones(2), **like(t)),
        t.full_like(t.ones(2), 2.0, **like(t)), t.rand_like(t.ones(2), **like(t)).shape,
        t.randint_like(t.ones(2), 0, 5, **like(t)).shape,
    ],
    "news": lambda t: [
        t.ones(1).new_zeros(2, **options(t)), t.ones(1).new_full((2,), 3.0, **options(t)),
        t.ones(1).new_tensor([1.0], device="cpu"),
    ],
    "to": lambda t: t.ones(2).to("cpu", t.float64, non_blocking=True, copy=True),
    "asarray": lambda t: [(x := t.ones(2)), t.asarray(x) is x, t.asarray(x, copy=True) is x],
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_as_in_torch(case: str) -> None:
    assert outcome(CASES[case], leafax) == outcome(CASES[case], torch)


def test_a_device_block_leaves_no_trace() -> None:
    def default() -> Any:
        return jax.config.jax_default_device

    cpu, before = leafax.device("cpu"), default()
    with cpu, cpu:
        elsewhere: list[Any] = []
        thread = threading.Thread(target=lambda: elsewhere.append(default()))
        thread.start()
        thread.join()
        assert (default(), elsewhere) == (jax.local_devices(backend="cpu")[0], [before])
        leafax.set_default_device(None)  # for what follows the block
        assert default() is not None
    assert default() is before


def test_what_leafax_does_not_do_it_says() -> None:
    x = leafax.ones(2, 3)
    if not leafax.cuda.is_available():
        with pytest.raises(RuntimeError, match="no device of type cuda is available to JAX"):
            x.cuda()
    wanted = leafax.get_num_threads() + 1
    with pytest.warns(UserWarning, match="set_num_threads has no effect"):
        leafax.set_num_threads(wanted)
    assert leafax.get_num_threads() == wanted
    leafax._tensor.switches._threads.clear()


def test_the_head_of_a_usual_script() -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        device = t.device("cuda" if t.cuda.is_available() else "cpu")
        if t.cuda.is_available():
            t.cuda.manual_seed_all(0)
        if t is leafax:  # torch's own tests have locked its flags by now
            t.backends.cudnn.benchmark = True
        w = t.full((3, 2), 0.5, dtype=t.float64, device=device, requires_grad=True)
        x = t.arange(6.0, dtype=t.float64, device=device).view(2, 3)
        optimizer = t.optim.SGD([w], lr=0.1)
        for _ in range(3):
            loss = ((x.to(device, non_blocking=True) @ w) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return w.detach().cpu().numpy(), loss.item()

    (ours, loss), (theirs, expected) = run(leafax), run(torch)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert loss == pytest.approx(expected, rel=1e-12)


def test_errors_of_memory_are_found_where_scripts_look_for_them() -> None:
    error = leafax.OutOfMemoryError
    assert leafax.cuda.OutOfMemoryError is leafax.functional.OutOfMemoryError is error
    assert issubclass(error, RuntimeError), "so that older scripts catch it"
    assert pickle.loads(pickle.dumps(error("short"))).args == ("short",)
    (told,) = traceback.format_exception_only(error("short"))
    assert told == "leafax.functional.OutOfMemoryError: short\n"


def test_backends_are_modules() -> None:
    from leafax.backends import cuda, cudnn, mkldnn, opt_einsum

    assert importlib.import_module("leafax.backends.cudnn") is cudnn
    with cudnn.flags(enabled=True, deterministic=True), mkldnn.flags(enabled=False):
        assert (cudnn.enabled, cudnn.deterministic, mkldnn.enabled) == (True, True, False)
    assert (cudnn.enabled, cudnn.deterministic, mkldnn.enabled) == (True, False, True)
    assert not cudnn.is_acceptable(leafax.ones(2)) and opt_einsum.is_available()
    cuda.enable_flash_sdp(False)
    assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    cuda.enable_flash_sdp(True)
    with pytest.warns(FutureWarning, match="`torch.backends.cuda.sdp_kernel\\(\\)` is deprecated"):
        allowed = cuda.sdp_kernel(enable_math=False)
    with allowed:
        assert leafax.nn.attention.SDPBackend.MATH not in (
            leafax.nn.attention._cur_sdpa_kernel_backends()
        )
