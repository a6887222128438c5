"""The table of a profile, in the columns of PyTorch's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_WIDTH = 12
_GAP = "  "


def spell_time(microseconds: float, unit: str | None = None) -> str:
    """Spell a time in the unit in which it reads best, or in the one that is asked for.

    >>> spell_time(1234.5), spell_time(1234.5, "us")
    ('1.234ms', '1234.500us')
    """
    if unit not in _UNITS:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def table_of(
    events: Sequence[Any], shown: Sequence[Any], widths: tuple[int, int, int],
    header: str | None, unit: str | None, device: str,
) -> str:  # fmt: skip
    """Return a table of events.

    Args:
      events: all of them, for the sums.
      shown: those that have a row.
      widths: the most of the columns of names, shapes and lines.
      header: a line above it.
      unit: of all times; None for each its own.
      device: the accelerator's name in the headings.
    """
    if not events:
        return ""
    host = sum(event.self_cpu_time_total for event in events)
    there = sum(event.self_device_time_total for event in events)
    headings = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    if there:
        headings += [f"Self {device}", f"Self {device} %", f"{device} total", f"{device} time avg"]
    headings.append("# of Calls")
    rows = [[_cut(event.key, widths[0]), *_times(event, host, there, unit)] for event in shown]
    columns = [_width(events, lambda e: e.key, widths[0])] + [_WIDTH] * (len(headings) - 1)
    for heading, most, name in (
        ("Input Shapes", widths[1], "input_shapes"), ("Source Location", widths[2], "stack"),
    ):  # fmt: skip
        if any(getattr(event, name) for event in events):
            headings.append(heading)
            columns.append(_width(events, lambda e, name=name: _text(e, name), most))  # type: ignore[misc]
            for row, event in zip(rows, shown, strict=True):
                row.append(_end(_text(event, name), columns[-1], name == "stack"))
    line = "".join("-" * width + _GAP for width in columns)
    lines = [line, _row(headings, columns), line, *[_row(row, columns) for row in rows], line]
    if header is not None:
        lines = ["=" * (len(line) - len(_GAP)), header, *lines]
    lines.append(f"Self CPU time total: {spell_time(host, unit)}")
    if there:
        lines.append(f"Self {device} time total: {spell_time(there, unit)}")
    return "\n".join(lines) + "\n"


def _times(event: Any, host: float, there: float, unit: str | None) -> list[str]:
    """Return the columns between an event's name and its inputs."""
    found = [
        _share(event.self_cpu_time_total, host), spell_time(event.self_cpu_time_total, unit),
        _share(event.cpu_time_total, host), spell_time(event.cpu_time_total, unit),
        spell_time(event.cpu_time, unit),
    ]  # fmt: skip
    if there:
        found += [
            spell_time(event.self_device_time_total, unit),
            _share(event.self_device_time_total, there),
            spell_time(event.device_time_total, unit), spell_time(event.device_time, unit),
        ]  # fmt: skip
    return [*found, str(event.count)]


def _share(part: float, whole: float) -> str:
    return f"{part * 100 / whole:.2f}%" if whole else "NaN"


def _text(event: Any, name: str) -> str:
    value = getattr(event, name)
    return str(value[0] if name == "stack" and value else value or "")


def _width(events: Sequence[Any], text: Any, most: int | None) -> int:
    width = max(len(text(event)) for event in events) + 4
    return max(width if most is None else min(width, most), _WIDTH)


def _cut(name: str, most: int | None) -> str:
    return name if most is None or len(name) < most - 3 else name[: most - 3] + "..."


def _end(text: str, width: int, last: bool) -> str:
    """Cut a text; of a file and line the end says most."""
    if len(text) <= width:
        return text
    return "..." + text[len(text) - width + 3 :] if last else text[:width]


def _row(values: Sequence[str], columns: Sequence[int]) -> str:
    return "".join(f"{value:>{width}}{_GAP}" for value, width in zip(values, columns, strict=True))
