"""PyTorch's `torch.profiler.profiler`: a profile by JAX's profiler, of the steps of a schedule."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .._core.absent.stand_ins import do_nothing, refuse
from ..autograd._chrome_trace import write as write_trace
from ..autograd._profile_session import Session
from ..autograd.profiler import record_function, step_mark
from ..autograd.profiler_util import EventList
from ._schedules import RECORDING, parse_activities
from ._schedules import ProfilerAction as ProfilerAction
from ._schedules import ProfilerActivity as ProfilerActivity
from ._schedules import schedule as schedule
from ._schedules import supported_activities as supported_activities

__all__ = [
    "ProfilerAction", "ProfilerActivity", "profile", "schedule", "supported_activities",
    "tensorboard_trace_handler",
]  # fmt: skip


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:  # fmt: skip
    """Make a handler that writes each trace into a folder, for TensorBoard.

    Beside PyTorch's file for Chrome and Perfetto it writes JAX's, which TensorBoard's profile
    plugin (xprof) reads.

    Args:
      dir_name: the folder; it is made where it is missing.
      worker_name: what files begin with; by default the host and the process.
      use_gzip: compress PyTorch's file.
      use_python_export: accepted for PyTorch's sake.
    """
    name = worker_name or f"{socket.gethostname()}_{os.getpid()}"

    def handle(profiler: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        file = f"{name}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        profiler.export_chrome_trace(os.path.join(dir_name, file))
        profiler.copy_jax_trace(dir_name)

    return handle


class _KinetoProfile:
    """A profile that is started and stopped by hand.

    Args:
      activities: the kinds of events; all that there are, whatever is asked for, are recorded.
      record_shapes: give the events the shapes of their inputs.
      with_stack: record calls of Python's functions for JAX's trace, too. Each op has its line in
        any case.
      options: PyTorch's others, which change nothing.
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None, record_shapes: bool = False,
        profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
        with_modules: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        given = supported_activities() if activities is None else parse_activities(activities)
        self.activities, self.record_shapes, self.with_stack = given, record_shapes, with_stack
        self._session: Session | None = None
        self._events: EventList | None = None
        self._metadata: dict[str, Any] = {}

    def start(self) -> None:
        """Begin to record."""
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        """Run what is pending, and stop recording."""
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Do nothing: JAX's profiler needs no warming up."""

    def start_trace(self) -> None:
        """Begin to record; what was there is forgotten."""
        self._session, self._events = Session(self.with_stack), EventList()

    def stop_trace(self) -> None:
        """Run what is pending, and stop recording."""
        if self._session is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self._events = self._session.stop(self.record_shapes)

    def _found(self, wanted: str) -> EventList:
        if self._events is None:
            raise AssertionError(f"Profiler must be initialized before {wanted}")
        return self._events

    def events(self) -> EventList:
        """Return the events, as they were recorded."""
        return self._found("accessing events")

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:  # fmt: skip
        """Return the sums of the events of one name.

        Args:
          group_by_input_shape: and of one shape of the inputs.
          group_by_stack_n: other than 0 for: and of one of the user's lines, in one module.
          group_by_overload_name: accepted for PyTorch's sake.
        """
        found = self._found("getting key averages")
        return found.key_averages(group_by_input_shape, group_by_stack_n)

    def by_line(self) -> EventList:
        """Return the sums of the ops of each of the user's lines."""
        return self._found("getting key averages").by_line()

    def by_module(self) -> EventList:
        """Return the sums of the ops of each module, or block."""
        return self._found("getting key averages").by_module()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Write the events for chrome://tracing and Perfetto, compressed for a name with `.gz`."""
        write_trace(self._found("exporting chrome trace"), path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Write the times by module and line, for flame graphs."""
        self._found("exporting stacks").export_stacks(path, metric)

    def copy_jax_trace(self, folder: str) -> None:
        """Copy the files that JAX's profiler wrote, which xprof reads, into a folder."""
        if self._session is None:
            raise AssertionError("Profiler must be initialized before exporting chrome trace")
        shutil.copytree(self._session.folder, folder, dirs_exist_ok=True)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the traces that are written."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, as JSON, into the traces that are written."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json
    toggle_collection_dynamic = do_nothing
    export_memory_timeline = refuse(
        "profiler.profile.export_memory_timeline", "`jax.profiler` saves a profile of memory"
    )


class profile(_KinetoProfile):  # noqa: N801 # PyTorch's name
    """Profile a loop by a schedule, or a block: the times of its ops, with the user's lines.

    Args:
      activities: the kinds of events; all that there are, whatever is asked for, are recorded.
      schedule: what to do in a step, by its number; by default it records all.
      on_trace_ready: called with the profiler when a cycle of the schedule has ended.
      use_cuda: deprecated for `activities`.
      options: see `_KinetoProfile`: `record_shapes`, `with_stack`, and what changes nothing.

    >>> import leafax
    >>> with leafax.profiler.profile() as profiler:
    ...     _ = (leafax.ones(3) + 1).tolist()
    >>> isinstance(profiler.key_averages().table(sort_by="cpu_time_total"), str)
    True
    """

    def __init__(
        self, *, activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None, use_cuda: bool | None = None,
        **options: Any,
    ) -> None:  # fmt: skip
        super().__init__(activities=activities, **options)
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead", FutureWarning,
                stacklevel=2,
            )  # fmt: skip
            change = set.add if use_cuda else set.discard
            change(self.activities, ProfilerActivity.CUDA)
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        self._marks_steps = schedule is not None
        self.schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self.on_trace_ready, self.step_num = on_trace_ready, 0
        self._mark: record_function | None = None
        self.current_action = self.schedule(0)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with what the schedule says of the present step."""
        self._change(ProfilerAction.NONE, self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """End, and call the handler if the schedule is in a recording step."""
        self._end_step()
        self._change(self.current_action, None)

    def step(self) -> None:
        """Begin the next step."""
        self._end_step()
        before, self.step_num = self.current_action, self.step_num + 1
        self.current_action = self.schedule(self.step_num)
        self._change(before, self.current_action)
        self._begin_step()

    def _begin_step(self) -> None:
        if self._marks_steps:
            self._mark = step_mark(self.step_num)
            self._mark.__enter__()

    def _end_step(self) -> None:
        mark, self._mark = self._mark, None
        if mark is not None:
            mark.__exit__(None, None, None)

    def _change(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """Start and stop as the schedule asks from one step to the next; None ends it."""
        saves = before is ProfilerAction.RECORD_AND_SAVE
        if before in RECORDING and (now not in RECORDING or saves):
            if now is not None and not saves:
                warnings.warn(f"Incorrect schedule: RECORD followed by {now.name}", stacklevel=4)
            self.stop_trace()
            if (saves or now is None) and self.on_trace_ready is not None:
                self.on_trace_ready(self)
        if before is ProfilerAction.WARMUP and now is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)
        if now in RECORDING and (before not in RECORDING or saves):
            self.prepare_trace()
            self.start_trace()
