"""Fixtures of all tests; helpers that tests import are in `helpers/`."""

import contextlib
import gc
import itertools
import os
import shutil
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest
from helpers.cheap_programs import compiled_cheaply
from jax._src.lru_cache import _CACHE_SUFFIX, LRUCache

import leafax
from leafax._core.trie import local
from leafax._tracing.novelty import forget_passes

os.environ.setdefault("LEAFAX_TRACEBACK", "full")  # what fails in a test is most often leafax
os.environ.setdefault("OMP_NUM_THREADS", "1")  # torch's threads would wait for those of others


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of processes: none for chosen files, else up to four, as memory allows."""
    if config.invocation_params.args and config.args != config.getini("testpaths"):
        return 0
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if os.name == "posix" else 0
    return max(1, min(4, os.cpu_count() or 1, memory // (8 << 30)))  # compiled programs stay


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part", metavar="SEED/N", help="one N-th of the tests: which one, SEED (any word) says"
    )


@pytest.hookimpl(tryfirst=True)  # before `-m` reads the marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what the quick suite leaves out, and keep the chosen part.

    `@pytest.mark.quick(n)` keeps `n` cases of a parametrised test in the quick suite;
    `quick(n, each="name")` keeps `n` for each value of an argument. Which ones their ids say, so
    a new case changes nothing of the others. All other cases become exhaustive.
    """
    families: dict[tuple[str, ...], list[pytest.Item]] = {}
    for item in items:
        if (mark := item.get_closest_marker("quick")) is not None:
            each = mark.kwargs.get("each")
            value = repr(item.callspec.params[each]) if each else ""  # type: ignore[attr-defined]
            families.setdefault((item.nodeid.partition("[")[0], value), []).append(item)
    for family in families.values():
        mark = family[0].get_closest_marker("quick")
        assert mark is not None
        for item in sorted(family, key=_number)[mark.args[0] :]:
            item.add_marker(pytest.mark.exhaustive)
    if config.option.part:
        seed, _, count = config.option.part.rpartition("/")
        kept = [item for item in items if _number(item, seed) % int(count) == 0]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept


def _number(item: pytest.Item, seed: str = "") -> int:
    """Make a number of a test's id, the same in every process."""
    return zlib.crc32(f"{seed} {item.nodeid}".encode())


_COMPILED = "LEAFAX_TESTS_COMPILED"


def pytest_configure(config: pytest.Config) -> None:
    """Have what one process compiled read by others: they meet many of the same little programs."""
    if any("::" in arg for arg in config.args) and config.option.markexpr == "not exhaustive":
        config.option.markexpr = ""  # tests that are named run
    if not hasattr(config, "workerinput"):
        os.environ[_COMPILED] = tempfile.mkdtemp(prefix="leafax-tests-")
    jax.config.update("jax_compilation_cache_dir", os.environ[_COMPILED])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    LRUCache.put = _at_once(LRUCache.put)  # type: ignore[method-assign]


def _at_once(put: Callable[..., None]) -> Callable[..., None]:
    """Have an entry appear when it is whole: JAX writes it in place, where others read it."""

    def put_at_once(self: LRUCache, key: str, value: bytes) -> None:
        own = f"{key}-{os.getpid()}-{threading.get_ident()}"
        put(self, own, value)
        os.replace(self.path / f"{own}{_CACHE_SUFFIX}", self.path / f"{key}{_CACHE_SUFFIX}")

    return put_at_once


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(os.environ[_COMPILED], ignore_errors=True)


@pytest.fixture
def key() -> jax.Array:
    """A JAX PRNG key, the same in every run."""
    return jax.random.key(20260713)


@pytest.fixture
def strict_promotion() -> Iterator[None]:
    """JAX without implicit dtype promotion: pure code that needs none must run under it."""
    with jax.numpy_dtype_promotion("strict"):
        yield


# Of these XLA computes each op, whatever NumPy could do.
_OF_VALUES = (
    "device/test_ops", "ops/test_error_inputs", "ops/test_halves", "ops/test_op_db",
    "ops/creation/test_creation",
    "ops/elementwise/test_elementwise", "ops/fft/test_spectral",
    "ops/indexing/test_gather_and_scatter", "ops/indexing/test_indexing",
    "ops/linalg/test_factored", "ops/linalg/test_linalg", "ops/linalg/test_matmul",
    "ops/linalg/test_products", "ops/nn/test_activation", "ops/nn/test_conv.", "ops/nn/test_grid",
    "ops/nn/test_image", "ops/nn/test_linear", "ops/nn/test_loss", "ops/nn/test_norm",
    "ops/nn/test_pool", "ops/reduction/test_reduction", "ops/shape/test_shape",
    "ops/shape/test_views", "ops/special/test_special", "storage/test_layout_of_gradients",
    "tensor/on_four_devices",
)  # fmt: skip

# Of these XLA optimizes the programs: numbers are compared to the last bit with those of PyTorch
# and of other processes.
_OPTIMIZED = ("distributed/test_state_dicts", "files/test_written")


@pytest.fixture(autouse=True, scope="module")
def programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compile without optimizing, which would take most of the time of tests.

    What asks for the memory of a program compiles it once more, with `OPTIMIZED`.
    """
    name = request.path.relative_to(Path(__file__).parent).as_posix()
    if name.startswith(_OPTIMIZED):
        yield
        return
    with compiled_cheaply(by_numpy=not name.startswith(_OF_VALUES)):
        yield


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    """A test's first program is its own: what an earlier one left behind has run before."""
    with contextlib.suppress(Exception):  # also what is wrong with it
        leafax.synchronize()


@pytest.fixture(autouse=True)
def no_loops_known() -> None:
    """A test's loops are its own: those of earlier tests do not say that they never repeat."""
    forget_passes()


_tests = itertools.count(1)
_MAPPINGS = 30_000  # about half of what Linux allows a process; a compiled program takes six


@pytest.fixture(autouse=True)
def few_programs() -> Iterator[None]:
    """Drop what was compiled before the process has more memory mappings than it may have.

    What is left then is old: the collector need not walk it each time a test asks for cycles.
    """
    yield
    if next(_tests) % 50 == 1:
        if _mappings() > _MAPPINGS:
            jax.clear_caches()
            gc.unfreeze()
            gc.collect()
        gc.freeze()


def _mappings() -> int:
    if not os.path.exists("/proc/self/maps"):
        return 0
    with open("/proc/self/maps") as maps:
        return sum(1 for _ in maps)


@pytest.fixture(scope="session", autouse=True)
def one_copy_of_each_module() -> Iterator[None]:
    """Fail when a test imported our folders by name: every module would exist twice."""
    yield
    twice = {"facade", "functional", "adapters"} & set(sys.modules)
    assert not twice, f"import {sorted(twice)} through `leafax`, not by folder"


@pytest.fixture
def all_recorded() -> Iterator[None]:
    """Record ops on small data on the host as well, which NumPy computes at once else."""
    local.cuts.at_once = False
    yield
    local.cuts.at_once = True
