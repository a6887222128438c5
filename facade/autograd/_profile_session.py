"""One profile by JAX's profiler: started, stopped, and read into events."""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax

from leafax.functional.execution.instructions import Op, ops_of
from leafax.functional.lowering.scopes import read_scope

from .._core.run_log import profiles
from .._runtime.observation import synchronize
from .profiler_util import EventList, FunctionEvent

_BLOCK = "leafax_block"  # the statistic by which blocks that users named are known
_DISPATCH = re.compile(r"PjitFunction\((\w+)\)")
_DISPATCHED = "dispatch of a program"
_NUMBER = re.compile(r"[.\d]+$")
_TPU_LINE = "XLA Ops"  # beside lines that have whole programs and steps
_ALONE = "jit_leafax_op_"

_SHARP = "\u266f"  # for "#", with which JAX separates a name from what else it is told


def open_span(name: str) -> Any:
    """Begin a block that a user named, and return its annotation; None if nobody profiles."""
    if not profiles:
        return None
    span = jax.profiler.TraceAnnotation(name.replace("#", _SHARP), **{_BLOCK: 1})
    span.__enter__()
    return span


class Session:
    """A profile that JAX records from now on.

    Args:
      with_stack: record calls of Python's functions, too.

    Raises:
      RuntimeError: another profile is being recorded.
    """

    def __init__(self, with_stack: bool = False) -> None:
        if profiles:
            raise RuntimeError("another profile is being recorded: leafax records one at a time")
        synchronize()  # what was recorded before is no part of it
        self.folder = tempfile.mkdtemp(prefix="leafax-profile-")
        weakref.finalize(self, shutil.rmtree, self.folder, True)
        options = jax.profiler.ProfileOptions()
        options.python_tracer_level = int(with_stack)
        jax.profiler.start_trace(self.folder, profiler_options=options)
        profiles.append(self)

    def stop(self, record_shapes: bool = False) -> EventList:
        """Run what is pending, stop, and return the events.

        Args:
          record_shapes: give the events the shapes of the inputs.
        """
        try:
            synchronize()
        finally:
            profiles.remove(self)
            jax.profiler.stop_trace()
        return read_events(self.files(), record_shapes)

    def files(self) -> list[Path]:
        """Return the files that JAX wrote, one a host."""
        return sorted(Path(self.folder).rglob("*.xplane.pb"))


def read_events(files: list[Path], record_shapes: bool = False) -> EventList:
    """Read the events of a profile that JAX wrote."""
    read = _Reader(record_shapes)
    for file in files:
        for plane in jax.profiler.ProfileData.from_file(str(file)).planes:
            read.plane(plane)
    events = sorted(read.events, key=lambda event: event.time_range.start)
    return EventList(events, read.device)


class _Reader:
    """Reads the planes of a profile: a plane is a device, a line a thread or a stream.

    Attributes:
      events: those that were read.
      device: the type of the accelerator that there were events of.
    """

    def __init__(self, record_shapes: bool) -> None:
        self.events: list[FunctionEvent] = []
        self.device: str | None = None
        self._shapes, self._threads, self._numbers = record_shapes, 0, itertools.count()
        self._ops: dict[str, Mapping[str, Op] | None] = {}

    def plane(self, plane: Any) -> None:
        """Read one plane."""
        on_device = plane.name.startswith("/device:")
        if not on_device and not plane.name.startswith("/host:CPU"):
            return
        lines = list(plane.lines)
        if any(line.name == _TPU_LINE for line in lines):
            lines = [line for line in lines if line.name == _TPU_LINE]
        if on_device and any(list(line.events) for line in lines):
            kind = plane.name.removeprefix("/device:").partition(":")[0].lower()
            self.device = "cuda" if kind == "gpu" else kind
        for line in lines:
            self._threads += 1
            made = [event for raw in line.events for event in self._event(raw, on_device)]
            self.events += _nested(made)

    def _event(self, raw: Any, on_device: bool) -> Iterator[FunctionEvent]:
        facts = dict(raw.stats)
        known: dict[str, Any] = {}
        if "hlo_op" in facts:
            name, known = self._op(str(facts["hlo_module"]), str(facts["hlo_op"]))
        elif (scope := read_scope(str(facts.get("tf_op", "")))) is not None:  # of a TPU
            name = _key(scope.op)
            known |= {"where": (scope.file, scope.line), "path": scope.path}
            known["instruction"] = (scope.path, raw.name)
        elif on_device or _BLOCK in facts:
            name, known["is_user_annotation"] = raw.name.replace(_SHARP, "#"), _BLOCK in facts
        elif dispatched := _DISPATCH.fullmatch(raw.name):
            name = _DISPATCHED if "leafax" in dispatched[1] else raw.name
        else:
            return
        start = raw.start_ns / 1e3
        end = start + raw.duration_ns / 1e3
        yield FunctionEvent(
            next(self._numbers), name, self._threads, start, end, on_device=on_device, **known
        )

    def _op(self, module: str, instruction: str) -> tuple[str, dict[str, Any]]:
        """Return the name of an instruction's op, and what is known of it."""
        if module not in self._ops:
            self._ops[module] = ops_of(module)
        ops = self._ops[module]
        known: dict[str, Any] = {"instruction": (module, instruction)}
        if module.startswith(_ALONE):
            return _key(module.removeprefix(_ALONE)), known
        if ops is None:  # JAX code of the user's own, or a program that was forgotten
            return f"jax::{module.removeprefix('jit_')}", known
        op = ops.get(instruction)
        if op is None:  # XLA's own: a copy, a loop around instructions
            return f"xla::{_NUMBER.sub('', instruction)}", known
        known |= {"where": op.where, "path": op.scope.path, "calls": op.calls}
        if self._shapes:
            known["input_shapes"] = [list(shape) for shape in op.shapes]
        return _key(op.scope.op), known


def _key(name: str) -> str:
    """Return PyTorch's name of an op."""
    return name if "." in name.removesuffix(".backward") else f"aten::{name}"


def _nested(events: list[FunctionEvent]) -> list[FunctionEvent]:
    """Note which events of a thread are within another; JAX tells of a dispatch twice."""
    events.sort(key=lambda event: (event.time_range.start, -event.time_range.end))
    around: list[FunctionEvent] = []
    found = []
    for event in events:
        while around and around[-1].time_range.end < event.time_range.end:
            around.pop()
        within = around[-1] if around else None
        if within is not None and within.name == event.name == _DISPATCHED:
            continue
        if within is not None:
            within.append_child(event)
        around.append(event)
        found.append(event)
    return found
