"""`torch.cuda` and `torch.accelerator`: without a GPU as PyTorch without one, with one from JAX."""

import contextlib
import pickle
import sys
import time
import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import pytest
import torch

import leafax

MODULES = ("cuda", "accelerator", "cpu", "mtia", "xpu", "mps")
NOT_HERE = {  # of CUDA's own, for which nobody looks without using it
    "cuda": {"jiterator", "sparse", "tunable"},
}


@pytest.mark.parametrize("module", MODULES)
def test_public_names_are_there(module: str) -> None:
    theirs, ours = getattr(torch, module), getattr(leafax, module)
    names = getattr(theirs, "__all__", None) or [
        n for n, v in vars(theirs).items() if getattr(v, "__module__", "") == theirs.__name__
    ]
    missing = {n for n in names if not n.startswith("_") and not hasattr(ours, n)}
    assert missing <= NOT_HERE.get(module, set()) | {"profiler"}


ASKED = [
    "can_device_access_peer(0, 1)", "current_device()", "current_stream()", "default_stream()",
    "device(-1).__enter__()", "device('cpu')", "device_count()", "device_of(x).__enter__()",
    "empty_cache()", "Event()", "get_arch_list()", "get_device_capability()",
    "get_device_name()", "get_device_properties(0)", "get_gencode_flags()",
    "get_per_process_memory_fraction()", "get_rng_state()", "get_rng_state_all()",
    "get_sync_debug_mode()", "has_half", "has_magma", "host_memory_stats()",
    "host_memory_stats_as_nested_dict()", "init()", "initial_seed()", "ipc_collect()",
    "is_available()", "is_bf16_supported()", "is_initialized()", "list_gpu_processes()",
    "manual_seed(0)", "manual_seed_all(0)", "max_memory_allocated()", "max_memory_cached()",
    "max_memory_reserved()", "mem_get_info()", "memory_allocated()", "memory_cached()",
    "memory_reserved()", "memory_stats()", "memory_stats_as_nested_dict()", "seed()", "seed_all()",
    "set_device(-1)", "set_rng_state(torch.get_rng_state())", "set_rng_state_all([])",
    "set_sync_debug_mode(0)", "stream(None).__enter__()", "Stream()", "synchronize()",
    "utilization()", "temperature()", "power_draw()", "clock_rate()", "memory_usage()",
    "device_memory_used()",
]  # fmt: skip
ASKED_OF_ACCELERATOR = [
    "current_accelerator()", "current_device_index()", "current_stream()", "device_count()",
    "device_index(None).__enter__()", "empty_cache()", "empty_host_cache()",
    "get_memory_info()", "is_available()", "max_memory_reserved()", "memory_stats()",
    "reset_accumulated_memory_stats()", "reset_peak_memory_stats()", "synchronize()", "Graph()",
]  # fmt: skip


def answer(t: Any, module: str, asked: str) -> Any:
    names = {"torch": t, "x": t.ones(2)}
    with contextlib.suppress(ModuleNotFoundError):
        names["m"] = getattr(t, module)
    try:
        found = eval(f"m.{asked}", names)
    except Exception as error:
        return type(error).__name__, str(error)
    return found if found is None or isinstance(found, (bool, int, str, list, dict)) else str(found)


@pytest.mark.skipif(leafax.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize(
    "module,asked",
    [("cuda", a) for a in ASKED] + [("accelerator", a) for a in ASKED_OF_ACCELERATOR],
)
def test_without_a_gpu_answers_are_pytorchs(module: str, asked: str) -> None:
    assert answer(leafax, module, asked) == answer(torch, module, asked)


def test_seeding_gpus_that_are_not_there_changes_nothing() -> None:
    if not leafax.cuda.is_available():
        before = leafax.get_rng_state().tolist()
        leafax.cuda.manual_seed_all(5)
        leafax.cuda.seed_all()
        assert leafax.get_rng_state().tolist() == before
        assert leafax.cuda.default_generators == ()


class FakeGpu:
    """A device as JAX describes a GPU."""

    platform, device_kind, compute_capability, core_count = "gpu", "NVIDIA H100", "9.0", 132

    def __init__(self, number: int) -> None:
        self.id = self.local_hardware_id = number
        self.peak = 5 << 30

    def memory_stats(self) -> dict[str, int]:
        return {
            "bytes_in_use": 3 << 30, "peak_bytes_in_use": self.peak, "bytes_limit": 64 << 30,
            "pool_bytes": 8 << 30, "peak_pool_bytes": 8 << 30, "num_allocs": 7,
            "largest_alloc_size": 1 << 30,
        }  # fmt: skip


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[FakeGpu]]:
    """Make JAX tell of two GPUs."""
    found = [FakeGpu(0), FakeGpu(1)]
    real = jax.local_devices

    def devices(*args: Any, backend: str | None = None, **options: Any) -> Any:
        return found if backend in ("cuda", "gpu") else real(*args, backend=backend, **options)

    monkeypatch.setattr(jax, "local_devices", devices)
    yield found
    leafax.cuda.memory._peaks.clear()
    leafax._core.jax_devices.chosen.gpu = 0


def test_gpus_are_described(gpus: list[FakeGpu]) -> None:
    cuda = leafax.cuda
    assert cuda.is_available() and cuda.device_count() == 2 and cuda.is_initialized()
    assert cuda.get_device_name(1) == cuda.get_device_name("cuda:1") == "NVIDIA H100"
    assert cuda.get_device_capability() == (9, 0)
    assert cuda.is_bf16_supported() and cuda.is_tf32_supported()
    found = cuda.get_device_properties(leafax.device("cuda", 1))
    assert (found.major, found.total_memory, found.multi_processor_count) == (9, 64 << 30, 132)
    assert repr(found) == (
        "_CudaDeviceProperties(name='NVIDIA H100', major=9, minor=0, total_memory=65536MB, "
        "multi_processor_count=132)"
    )
    assert cuda.can_device_access_peer(0, 1) and not cuda.can_device_access_peer(0, 0)
    with pytest.raises(RuntimeError, match="no device of type cuda:2"):
        cuda.get_device_name(2)
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.get_device_name("cpu")
    accelerator = leafax.accelerator
    assert accelerator.current_accelerator() == leafax.device("cuda")
    assert accelerator.get_memory_info() == cuda.mem_get_info()
    assert leafax.get_device_module() is cuda
    assert len(cuda.default_generators) == 2
    assert leafax.profiler.supported_activities() == {
        leafax.profiler.ProfilerActivity.CPU, leafax.profiler.ProfilerActivity.CUDA
    }  # fmt: skip


def test_a_thread_has_a_current_gpu(gpus: list[FakeGpu], monkeypatch: Any) -> None:
    cuda = leafax.cuda
    entered: list[Any] = []

    def default_device(device: Any) -> Any:
        entered.append(device)
        return contextlib.nullcontext()

    monkeypatch.setattr(jax, "default_device", default_device)
    assert cuda.current_device() == 0
    with cuda.device(1):
        assert cuda.current_device() == 1
        assert leafax._core.jax_devices.jax_device(leafax.device("cuda")) is gpus[1]
        with cuda.device(None), cuda.device(-1):
            assert cuda.current_device() == 1
    assert cuda.current_device() == 0 and entered == [gpus[1]]
    cuda.set_device("cuda:1")
    assert cuda.current_device() == leafax.accelerator.current_device_index() == 1
    cuda.set_device(-1)
    assert cuda.current_device() == 1
    leafax.accelerator.set_device_index(0)
    assert cuda.current_device() == 0


def test_memory_is_told(gpus: list[FakeGpu]) -> None:
    cuda = leafax.cuda
    assert cuda.memory_allocated() == 3 << 30 and cuda.max_memory_allocated() == 5 << 30
    assert cuda.memory_reserved() == 8 << 30 == cuda.max_memory_reserved(1)
    assert cuda.mem_get_info() == (61 << 30, 64 << 30)
    stats = cuda.memory_stats()
    assert list(stats) == sorted(stats) and stats["allocated_bytes.all.current"] == 3 << 30
    nested = cuda.memory_stats_as_nested_dict()
    assert nested["allocated_bytes"]["all"] == {"current": 3 << 30, "peak": 5 << 30}
    cuda.reset_peak_memory_stats()
    assert cuda.max_memory_allocated() == 3 << 30  # nothing more is known
    stats = cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == stats["active_bytes.all.peak"] == 3 << 30
    gpus[0].peak = 6 << 30
    assert cuda.max_memory_allocated() == 6 << 30
    table = cuda.memory_summary()
    assert "PyTorch CUDA memory summary, device ID 0" in table
    lines = table.strip().split("\n")
    assert {len(line) for line in lines} == {77}
    row = next(line for line in lines if "Allocated memory" in line)
    assert row.split("|")[2:4] == ["    3.0 GiB ", "    6.0 GiB "]
    assert len(cuda.memory_summary(abbreviated=True)) < len(table)
    with pytest.warns(UserWarning, match="XLA_PYTHON_CLIENT_MEM_FRACTION=0.5"):
        cuda.set_per_process_memory_fraction(0.5)
    with pytest.raises(ValueError, match=r"Invalid fraction value: 2\.0\. Allowed range: 0~1"):
        cuda.set_per_process_memory_fraction(2.0)


def test_without_a_gpu_a_summary_tells_what_holds_memory() -> None:
    held = leafax.nn.Parameter(leafax.zeros(100))
    leafax.synchronize()
    table = leafax.cuda.memory_summary()
    assert "| parameters" in table and held.numel() == 100


def test_events_measure_what_ran(gpus: list[FakeGpu]) -> None:
    cuda = leafax.cuda
    start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
    with pytest.raises(RuntimeError, match="Both events must be recorded before"):
        start.elapsed_time(end)
    x = leafax.ones(64, 64)
    start.record()
    y: Any = x @ x
    assert y._array is None
    time.sleep(0.002)
    end.record()
    assert y._array is not None  # it has run
    assert 2 <= start.elapsed_time(end) < 10_000
    with pytest.raises(ValueError, match="enable_timing=True"):
        cuda.Event().elapsed_time(end)
    assert start.query() and start.device == leafax.device("cuda:0")


def test_streams_are_names(gpus: list[FakeGpu]) -> None:
    cuda = leafax.cuda
    default, stream = cuda.current_stream(), cuda.Stream()
    assert default == cuda.default_stream() and default != stream
    with cuda.stream(stream):
        assert cuda.current_stream() is stream
        with cuda.stream(None):
            assert cuda.current_stream() is stream
        assert cuda.current_stream(1) == cuda.default_stream(1)
    assert cuda.current_stream() == default
    cuda.set_stream(stream)
    assert leafax.accelerator.current_stream() is stream
    cuda.set_stream(default)
    stream.wait_stream(default)
    assert stream.record_event().query() and len({stream, stream, default}) == 2
    assert repr(cuda.Stream(1)).startswith("<torch.cuda.Stream device=cuda:1 cuda_stream=0x")


def test_nvidias_figures_come_from_its_library(
    gpus: list[FakeGpu], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def answer(value: Any) -> Callable[..., Any]:
        return lambda handle, *args: value

    library = types.SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByIndex=lambda i: asked.append(i),
        nvmlDeviceGetUtilizationRates=answer(types.SimpleNamespace(gpu=97, memory=40)),
        nvmlDeviceGetTemperature=answer(55), nvmlDeviceGetPowerUsage=answer(310_000),
        nvmlDeviceGetClockInfo=answer(1980),
        nvmlDeviceGetMemoryInfo=answer(types.SimpleNamespace(used=5 << 30)),
        nvmlDeviceGetComputeRunningProcesses=answer(
            [types.SimpleNamespace(pid=12, usedGpuMemory=3 << 20)]
        ),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pynvml", library)
    cuda = leafax.cuda
    found = cuda.utilization(1), cuda.memory_usage(1), cuda.temperature(1), cuda.power_draw(1)
    assert found == (97, 40, 55, 310_000) and {*asked} == {1}
    assert cuda.clock_rate() == 1980 and cuda.device_memory_used() == 5 << 30
    processes = cuda.list_gpu_processes().split("\n")
    assert processes == ["GPU:0", "process         12 uses        3.000 MB GPU memory"]


def test_what_leafax_has_not_it_says(gpus: list[FakeGpu]) -> None:
    leafax.cuda.check_error(leafax.cuda.cudaStatus.SUCCESS)
    with pytest.raises(leafax.cuda.CudaError, match=r"CUDA error \(3\)"):
        leafax.cuda.check_error(3)
    with pytest.raises(NotImplementedError, match="untyped_storage"):
        leafax.cuda.FloatStorage(3)
    with pytest.raises(NotImplementedError, match="leafax.explain"):
        leafax.cuda.set_sync_debug_mode("warn")
    with pytest.raises(NotImplementedError, match="one program already"):
        leafax.accelerator.Graph()
    with pytest.raises(NotImplementedError, match="XLA allocates"):
        leafax.cuda.caching_allocator_alloc(3)


def test_generators_are_of_devices(gpus: list[FakeGpu]) -> None:
    generator = leafax.Generator(device="cuda")
    assert generator.device == leafax.device("cuda", 0)
    assert leafax.Generator("cuda:1").device.index == 1
    generator.manual_seed(3)
    first = leafax.rand(2, generator=generator).tolist()
    assert leafax.rand(2, generator=leafax.Generator("cuda:1").manual_seed(3)).tolist() == first
    copied = pickle.loads(pickle.dumps(generator))
    assert copied.device == generator.device
    assert leafax.rand(2, generator=copied).tolist() != first
    with pytest.raises(RuntimeError, match="no device of type cuda:7"):
        leafax.Generator("cuda:7")


def test_gpus_have_seeds_and_states_of_their_own(gpus: list[FakeGpu]) -> None:
    cuda = leafax.cuda
    first, second = cuda.default_generators
    assert (first.device, second.device) == (leafax.device("cuda", 0), leafax.device("cuda", 1))
    with leafax.random.fork_rng(devices=[0, 1]):
        leafax.manual_seed(3)
        assert cuda.initial_seed() == second.initial_seed() == leafax.initial_seed() == 3
        cuda.manual_seed_all(11)
        states = cuda.get_rng_state_all()
        assert [g.initial_seed() for g in (first, second)] == [11, 11]
        drawn = [leafax.rand(3, generator=g).tolist() for g in (first, second, second)]
        assert drawn[0] == drawn[1] != drawn[2]
        cuda.set_rng_state_all(states)
        cuda.set_rng_state(cuda.get_rng_state(0), 1)
        assert leafax.rand(3, generator=second).tolist() == drawn[1]
        cuda.manual_seed(4)
        cuda.seed()
        assert second.initial_seed() == 11 and cuda.initial_seed() not in (4, 11)
        cuda.seed_all()
        assert second.initial_seed() == cuda.initial_seed() != 11 and leafax.initial_seed() == 3


def test_a_generator_for_a_gpu_needs_one() -> None:
    if not leafax.cuda.is_available():
        with pytest.raises(RuntimeError, match="no device of type cuda is available to JAX"):
            leafax.Generator(device="cuda")
    for t in (leafax, torch):
        with pytest.raises(RuntimeError, match="META device type not an accelerator."):
            t.Generator("meta")
