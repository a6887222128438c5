"""Memory that a program takes: refused before it runs where there cannot be so much.

XLA finds out that memory is short when it has begun, and what was donated to the program is gone
by then. What a program needs for its temporary values is known as soon as it is compiled.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax
import numpy as np
from jax.extend.core import Jaxpr, jaxprs_in_params

from ..program.program import Aval, Node, Program

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")


class OutOfMemoryError(RuntimeError):
    """A program needs more memory than the device has.

    Attributes:
      describe_held: tells what holds memory; who knows of tensors installs it.
    """

    __module__ = "leafax.functional"  # tracebacks tell where it is imported from
    describe_held: ClassVar[Callable[[], str]] = str

    def tell_held(self) -> None:
        """Add to the message what holds memory now."""
        self.args = (f"{self} {type(self).describe_held()}".rstrip(), *self.args[1:])


def check_memory(executable: Any, program: Program) -> None:
    """Refuse a compiled program whose temporary values cannot fit into the device's memory.

    Args:
      executable: a `jax.stages.Compiled`.
      program: what was compiled, for the message.

    Raises:
      OutOfMemoryError: it needs more than there is.
    """
    sizes = _analysis(executable)
    if sizes is None:
        return  # this backend does not tell
    device = _device_of(executable)
    needed, has = int(sizes.temp_size_in_bytes), device_memory(device)
    if has is not None and needed > has:
        raise OutOfMemoryError(
            f"{_device_name(device)} out of memory. This program needs {spell_bytes(needed)} for "
            f"temporary values, and the device has {spell_bytes(has)}. {describe_largest(program)}"
        )


def as_out_of_memory(
    error: BaseException, program: Program, executable: Any = None
) -> BaseException:
    """Return the error, or an `OutOfMemoryError` if memory was short.

    It says what the program needs beside what was held before, and names the largest value.

    Args:
      error: raised while the program ran.
      program: what ran.
      executable: a `jax.stages.Compiled`, where the program was compiled.
    """
    if not _is_short(error):
        return error
    told, sizes = _wanted(error), _analysis(executable)
    if sizes is not None:
        told += (
            f" The program needs {spell_bytes(sizes.temp_size_in_bytes)} for temporary values and "
            f"{spell_bytes(sizes.output_size_in_bytes - sizes.alias_size_in_bytes)} for results, "
            f"beside {spell_bytes(sizes.argument_size_in_bytes)} of inputs."
        )
    name = _device_name(None if executable is None else _device_of(executable))
    found = OutOfMemoryError(f"{name} out of memory. {told} {describe_largest(program)}".rstrip())
    for note in getattr(error, "__notes__", ()):
        found.add_note(note)
    return found


def copy_to(array: Any, place: Any) -> jax.Array:
    """Copy an array to a device of JAX, or a sharding; the copy goes on while the caller does.

    Raises:
      OutOfMemoryError: there is not so much memory.
    """
    try:
        return jax.device_put(array, place, may_alias=False)
    except Exception as error:
        if not _is_short(error):
            raise
        aval = f"{np.dtype(array.dtype).name}{list(array.shape)}"
        told = f"{_wanted(error)} It was for a copy of {aval}, {spell_bytes(array.nbytes)}."
        found = OutOfMemoryError(f"{_device_name(place)} out of memory. {told}")
        found.tell_held()
        raise found from error


def _is_short(error: BaseException) -> bool:
    if isinstance(error, OutOfMemoryError):
        return False
    return isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error)


def _wanted(error: BaseException) -> str:
    """Return XLA's words, or how much it tried to allocate if they say that."""
    words = str(error).strip().split("\n")[0].removeprefix("RESOURCE_EXHAUSTED: ")
    wanted = _BYTES.search(words)
    if wanted is None:
        return f"{words.rstrip('.')}."
    return f"Tried to allocate {spell_bytes(int(wanted[1]))}."


_BYTES = re.compile(r"allocat\w* (\d+) ?bytes", re.IGNORECASE)


def _analysis(executable: Any) -> Any:
    """Return the sizes of what a compiled program uses; None where the backend does not tell."""
    try:
        return executable.memory_analysis()
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return None


def _device_of(executable: Any) -> Any:
    """Return a device that a compiled program runs on, of this process."""
    for sharding in jax.tree.leaves(executable.output_shardings):
        return next(iter(sharding.addressable_devices))
    return jax.local_devices()[0]


def _device_name(device: Any = None) -> str:
    """Return the name of a device's kind, as PyTorch has it in its messages."""
    platform = str(getattr(device, "platform", None) or jax.default_backend())
    return "CUDA" if platform in ("gpu", "cuda", "rocm") else platform.upper()


def describe_largest(program: Program) -> str:
    """Name the op that computes the largest value, with the user's line that recorded it."""
    avals: list[Aval] = []
    found: tuple[int, Any, Any] = (0, None, None)
    for entry in program.entries:
        if isinstance(entry, Node):
            for aval in _values(entry, [avals[i] for i in entry.inputs]):
                size = int(aval.size) * aval.dtype.itemsize
                if size > found[0]:
                    found = size, entry, aval
        avals += entry.avals
    size, node, aval = found
    if node is None:
        return ""
    where = "" if node.where is None else f" at {node.where[0]}:{node.where[1]}"
    shape = f"{aval.dtype.name}{list(aval.shape)}"
    return f"Its largest value is {shape} in `{node.call}`{where}: {spell_bytes(size)}."


def _values(node: Node, operands: Sequence[Aval]) -> list[Any]:
    """Return all that a node computes, also on the way to its results."""
    try:
        with jax.enable_x64(True):
            traced = jax.make_jaxpr(node.call.evaluate)(*[a.struct() for a in operands])
    except Exception:
        return list(node.avals)
    return [*node.avals, *_inner(traced.jaxpr)]


def _inner(jaxpr: Jaxpr) -> list[Any]:
    found = []
    for eqn in jaxpr.eqns:
        found += [v.aval for v in eqn.outvars if hasattr(v.aval, "dtype")]
        for inner in jaxprs_in_params(eqn.params):
            found += _inner(inner)
    return found


def device_memory(device: Any) -> int | None:
    """Return the bytes of memory of a device; None if it does not tell."""
    if device.platform == "cpu":
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") + _swap()
        except (AttributeError, OSError, ValueError):
            return None
    stats = device.memory_stats() or {}
    return stats.get("bytes_limit")


def _swap() -> int:
    """Return the bytes of swap space, where the system tells."""
    try:
        with open("/proc/meminfo") as lines:
            return sum(int(x.split()[1]) << 10 for x in lines if x.startswith("SwapTotal"))
    except OSError:
        return 0


def spell_bytes(size: float) -> str:
    """Spell a size as people read it: `1.5 GiB`.

    >>> spell_bytes(3 << 29)
    '1.5 GiB'
    """
    for unit in _UNITS:
        if size < 1024 or unit == _UNITS[-1]:
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"


@functools.cache
def keep_freed_memory() -> None:
    """Make the C library keep the blocks that one step frees for the next one.

    glibc gives blocks above a threshold back to the kernel when they are freed, and their pages
    are faulted in again at every step: 250 faults, half a millisecond, of a 5 ms step. The
    threshold follows the largest block freed so far, up to 32 MiB, so a process that once freed
    one that large is spared that; its pages are never touched.
    """
    if jax.default_backend() == "cpu":
        np.empty((32 << 20) - (64 << 10), np.uint8)  # freed at once
