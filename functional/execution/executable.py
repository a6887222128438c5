"""Executables: a program as `jax.jit` compiles it whole, with what a CPU needs beforehand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.extend.core import jaxpr_as_fun

from ..lowering.callbacks import watch_callbacks
from ..lowering.scopes import name_program
from ..lowering.vjp import has_gradients
from ..program.options import lowerings
from ..program.platform import platform, platform_of
from ..program.program import Node, Program
from .memory import check_memory
from .placement import sharding_options
from .single_ops import compiler_options_of
from .weight_gradients import transpose_products


class Executable(NamedTuple):
    """A compiled program.

    Attributes:
      jitted: what is called.
      compiled: the `jax.stages.Compiled`, to be asked about.
      raised: gets what host callbacks raise; None where there are none.
      name: of the program in XLA.
    """

    jitted: Any
    compiled: Any
    raised: list[BaseException] | None
    name: str


def compile_whole(
    flat: Callable[..., Any], program: Program, nodes: Sequence[Node], given: Sequence[Any],
    donate: tuple[int, ...], device: Any,
) -> Executable:  # fmt: skip
    """Compile a program for arguments like these.

    Args:
      flat: its JAX function.
      program, nodes: what it computes.
      given: the arguments.
      donate: which of them outputs may be written over.
      device: the one that it runs on; None if its arguments say that.

    Raises:
      OutOfMemoryError: it needs more memory than there is.
    """
    name = name_program(flat, "program", program)
    options: Any = {"keep_unused": bool(donate), **compiler_options_of(nodes)}
    options |= sharding_options(device)
    jitted: Any = jax.jit(flat, donate_argnums=donate, **options)
    traced = jitted.trace(*given)
    raised: list[BaseException] = []
    after = watched = watch_callbacks(traced.jaxpr, raised)
    calls = watched is not traced.jaxpr
    avals = [aval for entry in program.entries for aval in entry.avals]
    turns = has_gradients(nodes) and lowerings()["products"] == "auto"
    if turns and (platform_of(avals) or platform()) == "cpu":
        after = transpose_products(watched)
    if after is not traced.jaxpr:
        donate = () if calls else donate  # what a callback fails for must still be there
        whole = jaxpr_as_fun(after)

        def flat_after(*given: Any) -> Any:
            return whole(*given)

        name_program(flat_after, "program", program)
        jitted = jax.jit(flat_after, donate_argnums=donate, **options)
        traced = jitted.trace(*given)
    compiled = traced.lower().compile()  # JAX keeps it for the call
    check_memory(compiled, program)
    return Executable(jitted, compiled, raised if calls else None, name)
