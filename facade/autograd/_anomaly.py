"""Anomaly detection: which op's gradient is NaN, and where that op was recorded.

While it is on, backward records a flag beside every gradient that a node passes on. The flags
are looked at when the walk is over, all at once, so the pass still runs as one program.
"""

from __future__ import annotations

import linecache
import threading
import warnings
from typing import Any

from .._storage import detach
from .._trace import local


class _State(threading.local):
    enabled = False
    check_nan = True

    def set(self, enabled: bool, check_nan: bool) -> None:
        self.enabled, self.check_nan = enabled, check_nan
        local.watch = Watch if enabled and check_nan else None


state = _State()


class Watch:
    """What one backward pass passed on, to be looked at in the end."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, int, Any]] = []

    def see(self, node: Any, passed: Any) -> None:
        """Record whether the gradients that `node` passes on hold a NaN."""
        for k, grad in enumerate(passed or ()):
            if grad is not None and grad._v.dtype.kind in "fcV":
                self.seen.append((node, k, detach(grad).isnan().any()))

    def check(self) -> None:
        """Raise PyTorch's error for the first gradient that holds one."""
        for node, k, flag in self.seen:
            if flag.item():
                message = f"Function '{node.name()}' returned nan values in its {k}th output."
                warn(node)
                raise RuntimeError(message)


def warn(node: Any) -> None:
    """Tell where the op of `node` was recorded."""
    where = getattr(node, "where", None) or getattr(node.state, "where", None)
    begin = f"Error detected in {node.name()}. "
    if where is None:
        text = begin + (
            "No forward pass information available. Enable detect anomaly during forward pass "
            "for more information."
        )
    else:
        file, line = where
        source = linecache.getline(file, line).strip()
        text = begin + "Traceback of forward call that caused the error:\n"
        text += f'  File "{file}", line {line}\n' + (f"    {source}\n" if source else "")
    warnings.warn(text, UserWarning, stacklevel=6)


class set_detect_anomaly:
    """Switch anomaly detection on or off; as a context manager, until the block's end.

    Args:
      mode: whether a NaN in backward raises, with the op and the line that recorded it.
      check_nan: False to leave the gradients alone.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.before = (state.enabled, state.check_nan)
        state.set(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: object) -> None:
        state.set(*self.before)


class detect_anomaly:
    """Within the block, a NaN that appears in backward raises and names the op that made it.

    >>> import warnings, leafax
    >>> x = leafax.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings(), leafax.autograd.set_detect_anomaly(True):
    ...     warnings.simplefilter("ignore")
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        self.before = (state.enabled, state.check_nan)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should "
            "only be enabled for debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.before = (state.enabled, state.check_nan)
        state.set(True, self.check_nan)

    def __exit__(self, *args: object) -> None:
        state.set(*self.before)


def is_anomaly_enabled() -> bool:
    """Whether anomaly detection is on in this thread."""
    return bool(state.enabled)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether it looks for NaN."""
    return bool(state.check_nan)
