"""PyTorch's `torch.autograd.profiler`: times of ops by JAX's profiler.

Nothing runs while it is recorded, so an op's time is the time of the instructions that XLA made of
it, wherever the program runs. Each op has the user's line and the module that recorded it first.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from .._core.absent.stand_ins import Block
from .._tracing.user_lines import blocks
from ._profile_session import Session, open_span
from .profiler_util import EventList, FunctionEvent, FunctionEventAvg

__all__ = [
    "EventList", "FunctionEvent", "FunctionEventAvg", "emit_itt", "emit_nvtx", "kineto_available",
    "profile", "record_function",
]  # fmt: skip


class record_function(Block):  # noqa: N801 # PyTorch's name
    """Name a block for a profiler, also as a decorator.

    A profile has the time that the block took on the host. The ops that were recorded in it for
    the first time have its name in their paths, and in XLA's metadata.

    Args:
      name: its name.
      args: what else to say of it.
    """

    _names_ops = True

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._spans: list[Any] = []  # a decorated function may call itself

    def __enter__(self) -> record_function:
        self._spans.append(open_span(self.name))
        if self._names_ops:
            blocks.names.append(self.name)
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self._names_ops:
            blocks.names.pop()
        span = self._spans.pop()
        if span is not None:
            span.__exit__(None, None, None)


class _StepMark(record_function):
    """A step of a profiled loop: ops are not named after it, as they are the same in each."""

    _names_ops = False


def step_mark(number: int) -> record_function:
    """Return the block of a step of a profiled loop."""
    return _StepMark(f"ProfilerStep#{number}")


class emit_nvtx(Block):  # noqa: N801 # PyTorch's name
    """Mark a block for NVIDIA's profiler: XLA does so by itself."""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled, self.record_shapes = enabled, record_shapes


class emit_itt(emit_nvtx):  # noqa: N801 # PyTorch's name
    """Mark a block for Intel's profiler: nothing does."""


class profile:  # noqa: N801 # PyTorch's name
    """Profile a block: the times of its ops, with the user's lines.

    What is pending at its end is run, as a part of it.

    Args:
      enabled: False makes the block an ordinary one.
      record_shapes: give the events the shapes of their inputs.
      with_stack: record calls of Python's functions for JAX's trace, too.
      options: PyTorch's others, which change nothing.

    >>> import leafax
    >>> with leafax.autograd.profiler.profile() as found:
    ...     _ = (leafax.ones(3) + 1).tolist()
    >>> found.table().startswith("---")
    True
    """

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, with_stack: bool = False,
        **options: Any,
    ) -> None:  # fmt: skip
        self.enabled, self.record_shapes, self.with_stack = enabled, record_shapes, with_stack
        self.entered = False
        self.session: Session | None = None
        self.function_events: EventList | None = None

    def __enter__(self) -> Any:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self.session = Session(self.with_stack)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        if self.session is not None:
            self.function_events = self.session.stop(self.record_shapes)

    def __repr__(self) -> str:
        if self.function_events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def __str__(self) -> str:
        return repr(self) if self.function_events is None else str(self.function_events)

    def _events(self) -> EventList:
        return EventList() if self.function_events is None else self.function_events

    @property
    def self_cpu_time_total(self) -> float:
        """Return the microseconds that all events took on the host."""
        return self._events().self_cpu_time_total

    def table(self, *args: Any, **options: Any) -> str:
        """Return a table of the events; see `EventList.table`."""
        return self._events().table(*args, **options)

    def key_averages(self, *args: Any, **options: Any) -> EventList:
        """Return the sums of the events of one name; see `EventList.key_averages`."""
        return self._events().key_averages(*args, **options)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum of all events."""
        return self._events().total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing and Perfetto."""
        self._events().export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the times by module and line, for flame graphs."""
        self._events().export_stacks(path, metric)


def kineto_available() -> bool:
    """Return True: there is a profiler, though it is JAX's."""
    return True
