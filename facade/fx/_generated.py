"""Code that was written of graphs: run, and shown where it fails."""

from __future__ import annotations

import itertools
import linecache
import sys
import traceback
from collections.abc import Callable
from typing import Any

_numbers = itertools.count()


def _exec_with_source(src: str, globals_: dict[str, Any]) -> None:
    """Run code whose lines tracebacks show."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = len(src), None, src.splitlines(keepends=True), name
    exec(compile(src, name, "exec"), globals_)


def _forward_from_src(src: str, globals_: dict[str, Any]) -> Callable[..., Any]:
    names = dict(globals_)
    _exec_with_source(src, names)
    made: Callable[..., Any] = names["forward"]
    return made


class _WrappedCall:
    """Calls a graph's module and shows the line of its code that failed."""

    def __init__(self, cls: type, cls_call: Any) -> None:
        self.cls, self.cls_call = cls, cls_call

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return super(self.cls, obj).__call__(*args, **kwargs)  # type: ignore[misc, arg-type]
        except Exception as e:
            frames = traceback.StackSummary.extract(traceback.walk_tb(e.__traceback__))
            if frames and "eval_with_key" in frames[-1].filename:
                print(_place_of(frames[-1]), file=sys.stderr)
                raise e.with_traceback(None)  # noqa: B904
            raise


def _place_of(frame: traceback.FrameSummary) -> str:
    number, lines = frame.lineno or 1, linecache.getlines(frame.filename)
    marker = "~" * len(frame.line or "") + "~~~ <--- HERE"
    said = (
        f"Call using an FX-traced Module, line {number} of the traced Module's generated forward "
        "function:"
    )
    before, after = "".join(lines[number - 2 : number]), "\n".join(lines[number : number + 2])
    return "\n".join([traceback.format_exc(), said, before, marker, after])
