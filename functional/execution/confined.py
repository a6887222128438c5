"""A process in which XLA must not run, such as a forked worker: NumPy computes all there.

XLA's threads do not come along when a process forks, so what waits for them waits forever. In a
confined process programs run op by op, by NumPy, and what NumPy has no rule for is an error.
"""

from __future__ import annotations

from typing import Any, NoReturn

#: Why this process is confined, as errors say it; empty where it is not.
confined: list[str] = []


def confine(why: str) -> None:
    """Forbid XLA to run in this process from now on.

    Args:
      why: begins the errors: "in a worker process of a DataLoader".

    >>> from leafax.functional.execution.confined import confine
    >>> confine("in a worker process")  # doctest: +SKIP
    """
    confined[:] = [why]


def is_confined() -> bool:
    """Return True if `confine` was called in this process.

    Returns:
      True if only NumPy computes here.

    >>> from leafax.functional.execution.confined import is_confined
    >>> is_confined()
    False
    """
    return bool(confined)


def refuse_xla(what: str) -> NoReturn:
    """Raise what a confined process says of something that XLA would have to do.

    Args:
      what: the thing that was asked for, "the op conv2d".

    Raises:
      RuntimeError: always.

    >>> from leafax.functional.execution.confined import refuse_xla
    >>> refuse_xla("the op conv2d")
    Traceback (most recent call last):
    ...
    RuntimeError: the op conv2d would need XLA, which does not run here
    """
    where = confined[0] if confined else "here"
    raise RuntimeError(f"{what} would need XLA, which does not run {where}")


def name_of(call: Any) -> str:
    """Name a call as errors do."""
    op = getattr(call, "op", None) or getattr(getattr(call, "call", None), "op", None)
    return f"the op {op.name}" if op is not None else "this computation"
