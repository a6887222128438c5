"""PyTorch's `torch.autograd.profiler_util`: the events of a profile, and their averages."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from . import _chrome_trace, _profiler_table
from ._profiler_table import spell_time

__all__ = ["EventList", "FormattedTimesMixin", "FunctionEvent", "FunctionEventAvg", "Interval"]


def _spelled(name: str) -> Any:
    return property(lambda self: spell_time(getattr(self, name)))


class FormattedTimesMixin:
    """Base of events: averages of their times, and times as text.

    Attributes:
      count: how often it ran.
      cpu_time_total, self_cpu_time_total: microseconds on the host, with and without what ran
        within it; where JAX computes on the CPU, the ops' as well.
      device_time_total, self_device_time_total: the same on an accelerator.
    """

    count: int
    cpu_time_total: float
    device_time_total: float
    self_cpu_time_total: float
    self_device_time_total: float
    cpu_time_str, device_time_str = _spelled("cpu_time"), _spelled("device_time")
    cpu_time_total_str = _spelled("cpu_time_total")
    device_time_total_str = _spelled("device_time_total")
    self_cpu_time_total_str = _spelled("self_cpu_time_total")
    self_device_time_total_str = _spelled("self_device_time_total")
    node_id, overload_name, is_async, is_remote, is_legacy, flops = -1, "", False, False, False, 0
    cpu_memory_usage = self_cpu_memory_usage = 0
    device_memory_usage = self_device_memory_usage = 0
    cpu_parent: Any = None
    instruction: tuple[str, str] | None = None

    @property
    def cpu_time(self) -> float:
        """Return the average time on the host."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Return the average time on an accelerator."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time
    cuda_time_total = property(lambda self: self.device_time_total)
    self_cuda_time_total = property(lambda self: self.self_device_time_total)


class Interval:
    """Times in microseconds at which an event began and ended."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """Return the microseconds between the two."""
        return self.end - self.start


class FunctionEvent(FormattedTimesMixin):
    """An event of a profile: an instruction of an op, a block that was named, a dispatch.

    Attributes:
      name, key: of the op or the block.
      path: of the module, and the blocks, in which the op was recorded first; "" outside of any.
      where: the user's file and line of the op; None of other events.
      stack: the same as text, in a list.
      input_shapes: of the op, where they were asked for.
      time_range: when it was.
      thread: a number for its thread, or stream.
      instruction: the HLO module and the instruction of an op; None of other events.
      calls: how many ops of the module have this name, line and path.
    """

    def __init__(
        self, id: int, name: str, thread: int, start_us: float, end_us: float, *,  # noqa: A002
        on_device: bool = False, where: tuple[str, int] | None = None, path: str = "",
        input_shapes: list[list[int]] | None = None, instruction: tuple[str, str] | None = None,
        calls: int = 1, is_user_annotation: bool = False,
    ) -> None:  # fmt: skip
        self.id, self.name, self.key, self.thread, self.count = id, name, name, thread, 1
        self.time_range, self.on_device = Interval(start_us, end_us), on_device
        self.where, self.path, self.calls = where, path, calls
        self.stack = [] if where is None else [f"{where[0]}({where[1]}): {path or '<module>'}"]
        self.input_shapes, self.instruction = input_shapes or [], instruction
        self.is_user_annotation = is_user_annotation
        self.kernels: list[Any] = []
        self.cpu_children: list[FunctionEvent] = []
        spent = end_us - start_us
        self.cpu_time_total = self.self_cpu_time_total = 0.0 if on_device else spent
        self.device_time_total = self.self_device_time_total = spent if on_device else 0.0

    def append_child(self, child: FunctionEvent) -> None:
        """Take the time of an event within this one out of this one's own."""
        child.cpu_parent = self
        self.cpu_children.append(child)
        self.self_cpu_time_total -= child.cpu_time_total
        self.self_device_time_total -= child.device_time_total

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"device_time={self.device_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} thread={self.thread} stack={self.stack}>"
        )


class FunctionEventAvg(FormattedTimesMixin):
    """Sum of the events that have something in common.

    Attributes:
      key: the name that they have.
      stack, input_shapes, path, where: of the first of them.
    """

    def __init__(self, key: str = "", events: Iterable[FunctionEvent] = ()) -> None:
        self.key, self.path = key, ""
        self.stack: list[str] = []
        self.input_shapes: list[Any] = []
        self.where: tuple[str, int] | None = None
        self.is_user_annotation = False
        self.cpu_time_total = self.device_time_total = 0.0
        self.self_cpu_time_total = self.self_device_time_total = 0.0
        self.count, self._times = 0, {}  # type: ignore[var-annotated]
        for event in events:
            self.add(event)

    def add(self, event: FunctionEvent) -> FunctionEventAvg:
        """Add an event."""
        if not self._times and not self.count:
            self.stack, self.input_shapes = event.stack, event.input_shapes
            self.path, self.where = event.path, event.where
            self.is_user_annotation = event.is_user_annotation
        inside = event.cpu_parent is not None and event.cpu_parent.key == event.key
        if not inside:
            self.cpu_time_total += event.cpu_time_total
            self.device_time_total += event.device_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.self_device_time_total += event.self_device_time_total
        if event.instruction is None:
            self.count += event.count
            return self
        # An op is several instructions, each of which ran as often as the op.
        place = event.instruction[0], event.where, event.path
        ran = self._times.setdefault(place, {})
        before = max(ran.values(), default=0)
        ran[event.instruction[1]] = ran.get(event.instruction[1], 0) + 1
        self.count += (max(ran.values()) - before) * event.calls
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes or ''} "
            f"cpu_memory_usage=0 cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """The events of a profile, or their averages.

    >>> import leafax
    >>> with leafax.profiler.profile() as profiler:
    ...     _ = (leafax.ones(3) + 1).tolist()
    >>> isinstance(profiler.key_averages(), EventList)
    True
    """

    def __init__(self, events: Iterable[Any] = (), use_device: str | None = None) -> None:
        super().__init__(events)
        self.use_device = use_device

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Return the microseconds that all events took on the host."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int = 75,
        max_name_column_width: int = 55, max_shapes_column_width: int = 80,
        header: str | None = None, top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:  # fmt: skip
        """Return a table of the events.

        Args:
          sort_by: a column, as the name of the attribute: "self_cpu_time_total"; the largest come
            first. By default they stay in their order.
          row_limit: how many rows there are at most; -1 for all.
          max_src_column_width, max_name_column_width, max_shapes_column_width: of these columns.
          header: a line above the table.
          top_level_events_only: leave out what is within another event.
          time_unit: "s", "ms" or "us" for all times; by default each is spelled as it reads best.
        """
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        events: list[Any] = list(self)
        if sort_by is not None:
            name = sort_by.replace("cuda", "device")
            events.sort(key=lambda event: getattr(event, name), reverse=True)
        if top_level_events_only:
            events = [event for event in events if event.cpu_parent is None]
        shown = events if row_limit < 0 else events[:row_limit]
        return _profiler_table.table_of(
            events, shown, widths, header, time_unit, (self.use_device or "cuda").upper()
        )

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """Return the sums of the events of one name.

        Args:
          group_by_input_shapes: and of one shape of the inputs.
          group_by_stack_n: other than 0 for: and of one line, in one module.
          group_by_overload_name: accepted for PyTorch's sake.
        """

        def key(event: FunctionEvent) -> Hashable:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            return event.key, shapes, tuple(event.stack) if group_by_stack_n else ()

        found = self._grouped(key, lambda event: event.key)
        for average in found:
            average.stack = average.stack if group_by_stack_n else []
            average.input_shapes = average.input_shapes if group_by_input_shapes else []
        return found

    def by_line(self) -> EventList:
        """Return the sums of the ops of each of the user's lines, "train.py:12" for instance."""
        return self._of_ops(lambda event: f"{event.where[0].rpartition('/')[2]}:{event.where[1]}")

    def by_module(self) -> EventList:
        """Return the sums of the ops of each module, or block: `GPT.blocks.0.attn`."""
        return self._of_ops(lambda event: event.path or "<none>")

    def _of_ops(self, key: Callable[[Any], str]) -> EventList:
        ops = EventList((e for e in self if e.where is not None), self.use_device)
        found = ops._grouped(key, key)
        for average in found:
            average.stack, average.input_shapes = [], []
        return found

    def _grouped(self, key: Callable[[Any], Hashable], name: Callable[[Any], str]) -> EventList:
        found: dict[Hashable, FunctionEventAvg] = {}
        for event in self:
            place = key(event)
            if place not in found:
                found[place] = FunctionEventAvg(name(event))
            found[place].add(event)
        return EventList(found.values(), self.use_device)

    def total_average(self) -> FunctionEventAvg:
        """Return the sum of all events."""
        return FunctionEventAvg("Total", self)

    def export_chrome_trace(self, path: str) -> None:
        """Write the events for chrome://tracing and Perfetto, compressed if it ends with `.gz`."""
        _chrome_trace.write(self, path)

    def export_stacks(self, path: str, metric: str) -> None:
        """Write the times by module and line, for flame graphs.

        Args:
          path: of the file.
          metric: "self_cpu_time_total" or "self_cuda_time_total".

        Raises:
          ValueError: another metric.
        """
        metrics = ["self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total"]
        if metric not in metrics:
            raise ValueError("metric should be one of: " + str(metrics))
        with open(path, "w") as file:
            for event in self.key_averages(group_by_stack_n=1):
                spent = int(getattr(event, metric.replace("xpu", "cuda")))
                if event.where is not None and spent > 0:
                    parts = [*filter(None, event.path.split("/")), *event.stack, event.key]
                    file.write(";".join(part.replace(" ", "_") for part in parts) + f" {spent}\n")
