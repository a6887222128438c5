"""A profile as a trace of events, which chrome://tracing and Perfetto show."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterable
from typing import Any


def write(events: Iterable[Any], path: str, metadata: Any = None) -> None:
    """Write the events of a profile into a file, compressed if its name ends with `.gz`."""
    text = json.dumps(trace_of(events) | dict(metadata or {}))
    if str(path).endswith(".gz"):
        with gzip.open(path, "wt") as compressed:
            compressed.write(text)
    else:
        with open(path, "w") as file:
            file.write(text)


def trace_of(events: Iterable[Any]) -> dict[str, Any]:
    """Return the events in the form of Chrome's traces."""
    process, found = os.getpid(), []
    for event in events:
        kind = "user_annotation" if event.is_user_annotation else "cpu_op"
        found.append({
            "ph": "X", "cat": "kernel" if event.on_device else kind, "name": event.name,
            "pid": process, "tid": event.thread, "ts": event.time_range.start,
            "dur": event.time_range.elapsed_us(), "args": _facts(event),
        })  # fmt: skip
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": found}


def _facts(event: Any) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if event.where is not None:
        facts["Source Location"] = f"{event.where[0]}:{event.where[1]}"
    if event.path:
        facts["Module Hierarchy"] = event.path
    if event.input_shapes:
        facts["Input Dims"] = event.input_shapes
    if event.instruction is not None:
        facts["HLO Module"], facts["HLO Instruction"] = event.instruction
    return facts
