"""XLA's own compilations: counted as JAX reports them, and named by who asked for each.

A program that was compiled before is compiled again where an array comes with another sharding or
layout, and JAX does that in silence. JAX tells listeners of each compilation while the thread that
wants it waits, so that thread's frames tell what it is for; a step that compiles nothing pays
nothing.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary, ref

from jax import monitoring

from leafax.functional.execution.pieces import Piece
from leafax.functional.execution.plan import Plan
from leafax.functional.execution.single_ops import run_node

from .._core.run_log import Compilation, compilations, history
from .._core.warn_once import warn
from .._tracing.infer import user_line
from .compile_notice import Notice
from .persistent_cache import was_read
from .program_differences import difference, file_line

PATIENCE = 3  # compilations from one line that are one too many
_MOST_LINES = 1000
_COMPILE = "/jax/core/compile/backend_compile_duration"

#: By thread, programs that were compiled since it last told of them.
late: dict[int, list[tuple[Compilation, Plan]]] = {}
_notices: dict[int, Notice] = {}
_places: WeakKeyDictionary[Plan, list[Any]] = WeakKeyDictionary()  # of inputs, when last compiled
_lines: OrderedDict[Any, tuple[int, ref[Plan]]] = OrderedDict()  # compilations from each
_warns = False


def set_explain(mode: str | None) -> None:
    """Warn of lines from which programs are compiled again and again, or stop it.

    A loop compiles its program once, and perhaps once more. At the third compilation from one line
    a warning says what changed: a shape, a number, a flag, an op.

    Args:
      mode: `"warn"`, or `"off"` (also None), which it is at first.

    Raises:
      ValueError: another mode.

    >>> import leafax
    >>> leafax.set_explain("warn")
    >>> leafax.set_explain("off")
    """
    global _warns
    if mode not in ("warn", "off", None):
        raise ValueError(f"`mode` must be 'warn' or 'off', got {mode!r}")
    _warns = mode == "warn"


def tell() -> None:
    """Put right what the log says of this thread's last run, and warn where that is wanted."""
    told = set()
    for compilation, plan in late.pop(threading.get_ident(), ()):
        if plan in told:  # JAX compiled twice for one run
            continue
        told.add(plan)
        run = history[-1]
        if compilation.why:  # to leafax the program was compiled already
            history[-1] = run = run._replace(how="compiled", why=compilation.why)
        times, last = _lines.pop(run.where, (0, None))
        _lines[run.where] = times + 1, ref(plan)
        if len(_lines) > _MOST_LINES:
            _lines.popitem(last=False)
        if times + 1 == PATIENCE and _warns:
            before = None if last is None else last()
            why = compilation.why or difference(before, plan)
            warn(f"{file_line(run.where)} has compiled its program {PATIENCE} times: {why}")


def _asked_by() -> tuple[str, str, Plan | None, Any]:
    """Tell what is compiled: its kind, its name, and of a program the plan and its inputs."""
    frame: Any = sys._getframe(2)
    ours = False
    while frame is not None:
        code = frame.f_code
        if code is _COMPILES or code is _RUNS:
            held = frame.f_locals
            plan = held["self"]
            if plan.is_part:
                return "piece", f"a piece of {len(plan.nodes)} ops", None, ()
            again = code is _RUNS and held.get("how") == "cached"
            kind = "program again" if again else "program"
            return kind, f"a program of {len(plan.nodes)} ops", plan, held["args"]
        if code is _RUNS_ALONE:
            return "op alone", frame.f_locals["node"].call.name, None, ()
        if code is _RUNS_PIECE:
            return "piece", f"a piece of {len(frame.f_locals['self'].nodes)} ops", None, ()
        ours = ours or frame.f_globals.get("__name__", "").startswith("leafax")
        frame = frame.f_back
    return ("other" if ours else "yours"), "", None, ()


_COMPILES, _RUNS, _RUNS_PIECE, _RUNS_ALONE = (
    f.__code__ for f in (Plan._compile, Plan._run, Piece.compile, run_node)
)


def _begin(event: str, value: float | int, **facts: Any) -> None:
    if event == _COMPILE and sys.stderr is not None and sys.stderr.isatty():
        kind, name, *_ = _asked_by()
        if kind != "yours":
            name = name or str(facts.get("fun_name"))
            _notices[threading.get_ident()] = Notice(f"{name} at {file_line(user_line())}")


def _end(event: str, duration_secs: float, **facts: Any) -> None:
    if event != _COMPILE:
        return
    if _notices and (notice := _notices.pop(threading.get_ident(), None)) is not None:
        notice.end(duration_secs)
    kind, name, plan, args = _asked_by()
    why = ""
    if plan is not None:
        places = [_place(x) for x in args]
        if kind == "program again":
            why = _moved(_places.get(plan, []), places)
        _places[plan] = places
    name = name or str(facts.get("fun_name"))
    compilation = Compilation(kind, name, user_line(), duration_secs, why, was_read())
    compilations.append(compilation)
    if plan is not None:
        late.setdefault(threading.get_ident(), []).append((compilation, plan))


def _place(x: Any) -> tuple[Any, Any, Any]:
    """Return where an array lies: its sharding, whether that was asked for, and its layout."""
    sharding = getattr(x, "sharding", None)
    try:
        layout = x.format.layout
    except (AttributeError, RuntimeError, ValueError):  # a number, or data that were given away
        layout = None
    return sharding, getattr(x, "committed", None), layout


def _moved(before: list[Any], now: list[Any]) -> str:
    """Say which input lies elsewhere than when the program was compiled last."""
    for i, (old, new) in enumerate(zip(before, now, strict=False)):
        if old[0] != new[0]:
            return f"input {i} has a new sharding, {new[0]}, where it had {old[0]}"
        if old[2] != new[2]:
            return f"input {i} has a new layout, {new[2]}, where it had {old[2]}"
        if old[1] != new[1]:
            return f"input {i} is {'' if new[1] else 'no longer '}bound to its device"
    return "JAX had dropped the executable"


monitoring.register_scalar_listener(_begin)
monitoring.register_event_duration_secs_listener(_end)
