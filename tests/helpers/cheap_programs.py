"""Programs that are compiled in a fraction of the time, and run slower."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

import jax
from jax._src import compiler

from leafax.functional.execution.numpy import evaluator

# Optimizing would take most of the time, and so would starting LLVM for each of several parts.
CHEAP = {
    "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1,
}  # fmt: skip
#: The same for XLA_FLAGS, of processes that tests start.
FLAGS = " ".join(f"--{name}={str(value).lower()}" for name, value in CHEAP.items())
# For `Lowered.compile`, too, where a test asks what XLA makes of a program: its memory, its text.
OPTIMIZED = {
    "xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}  # fmt: skip


@contextlib.contextmanager
def compiled_with(options: Mapping[str, Any]) -> Iterator[None]:
    """Give XLA further options for all that JAX compiles, whoever asks for it."""
    options_of = compiler.get_compile_options

    def with_further(**asked: Any) -> Any:
        asked["env_options_overrides"] = {**options, **(asked["env_options_overrides"] or {})}
        return options_of(**asked)

    with mock.patch.object(compiler, "get_compile_options", with_further):
        yield


@contextlib.contextmanager
def compiled_cheaply(by_numpy: bool = False) -> Iterator[None]:
    """Compile programs without optimizing them, on a CPU: others know no such options.

    Args:
      by_numpy: leave ops on few elements to NumPy, as they are outside of tests.
    """
    if jax.default_backend() != "cpu":
        yield
        return
    most = evaluator.MOST if by_numpy else -1
    with compiled_with(CHEAP), mock.patch.object(evaluator, "MOST", most):
        yield
