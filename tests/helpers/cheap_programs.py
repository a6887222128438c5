"""Programs that are compiled in a fraction of the time, and run slower."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import jax
from jax._src import compiler

from leafax.functional.execution.numpy import evaluator

# Optimizing would take most of the time, and so would starting LLVM for each of several parts.
OPTIONS = {
    "xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True,
    "xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1,
}  # fmt: skip
# For `Lowered.compile`, where a test asks what XLA makes of a program: its memory, its text.
OPTIMIZED = {
    "xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False,
    "xla_cpu_use_fusion_emitters": True,
}  # fmt: skip


@contextlib.contextmanager
def compiled_cheaply(by_numpy: bool = False) -> Iterator[None]:
    """Compile programs without optimizing them, on a CPU: others know no such options.

    All that JAX compiles is meant, whoever asks for it: also what tests compare with.

    Args:
      by_numpy: leave ops on few elements to NumPy, as they are outside of tests.
    """
    if jax.default_backend() != "cpu":
        yield
        return
    options_of = compiler.get_compile_options

    def cheap(**asked: Any) -> Any:
        asked["env_options_overrides"] = {**OPTIONS, **(asked["env_options_overrides"] or {})}
        return options_of(**asked)

    most = evaluator.MOST if by_numpy else -1
    with (
        mock.patch.object(compiler, "get_compile_options", cheap),
        mock.patch.object(evaluator, "MOST", most),
    ):
        yield
