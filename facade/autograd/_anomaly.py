"""Anomaly detection: which op's gradient is NaN, and where that op was recorded.

While it is on, backward looks at every gradient that a node passes on before it goes further, so
the pass is cut at every node: a mode for debugging, as in PyTorch. An op that was recorded while
it was on has a warning with its line, as an error in its gradient is raised.
"""

from __future__ import annotations

import sys
import traceback
import warnings
from typing import Any
from weakref import WeakKeyDictionary

from leafax.functional.execution.tracebacks import is_library_file

from .._autograd.engine.current_task import current_node
from .._core.grad_modes import no_grad
from .._core.trie import Mode, State, anomaly, local
from .._core.warn_once import warn as warn_user
from .._storage.shared_storage import detach
from ..func._running import debug_unwrap


class _State:
    """Hold the process's mode: this thread has it from now on, others as they start."""

    enabled = False
    check_nan = True

    def set(self, enabled: bool, check_nan: bool) -> None:
        self.enabled, self.check_nan = enabled, check_nan
        anomaly.watch = local.settings.watch = Watch() if enabled and check_nan else None
        anomaly.tell = local.settings.anomaly = warn if enabled else None
        mode = local.mode
        local.set_mode(Mode.of(mode.enabled, mode.inference, mode.autocast, anomaly=enabled))


state = _State()
_stacks: WeakKeyDictionary[State, str] = WeakKeyDictionary()  # where steps were recorded
_makers: WeakKeyDictionary[State, Any] = WeakKeyDictionary()  # `_made_by`, of steps of backward


class Watch:
    """Look for NaN in what nodes pass on."""

    def see(self, node: Any, passed: Any) -> None:
        """Raise PyTorch's error if a gradient that `node` passes on holds a NaN."""
        if all(g is None for g in passed or ()):
            return
        places = node.next_places()
        with no_grad():
            for k, place in enumerate(places):
                grad = None if place is None else passed[place]
                if grad is None or grad._v.dtype.kind not in "fcV":
                    continue
                if _all_examples(detach(grad)).isnan().any().item():
                    raise RuntimeError(
                        f"Function '{node.name()}' returned nan values in its {k}th output."
                    )


def _all_examples(grad: Any) -> Any:
    """Return the gradient; inside a `vmap` that of all examples."""
    if local.vmap is None:
        return grad
    return debug_unwrap(grad)


def warn(node: Any) -> None:
    """Tell where the op of `node` was recorded, if anomaly detection was on then.

    For a node that a backward pass made, what that pass was running then is told as well.
    """
    said = "Error detected in {}. Traceback of forward call that caused the error:\n"
    for name, stack in _made_by(node):
        _tell(_unknown(name) if stack is None else said.format(name) + stack)
        said = (
            "\n\nPrevious calculation was induced by {}. Traceback of forward call that induced "
            "the previous calculation:\n"
        )


def _made_by(node: Any) -> tuple[tuple[str, str | None], ...]:
    """List the name and lines of a node, of the node whose backward made it, and so on."""
    if node is None:
        return ()
    state = getattr(node, "state", None)
    if state is None:
        makers = _made_by(getattr(node, "_anomaly_parent", None))
    else:
        makers = _makers.get(state, ())
    return (node.name(), forward_stack(node)), *makers


def _unknown(name: str) -> str:
    return (
        f"Error detected in {name}. No forward pass information available. Enable detect "
        "anomaly during forward pass for more information."
    )


def _tell(text: str) -> None:
    """Warn; a filter that makes errors of warnings must not hide the error that is under way."""
    try:
        warn_user(text)
    except UserWarning:
        print(f"UserWarning: {text}", file=sys.stderr)


def forward_stack(node: Any) -> str | None:
    """Return the lines that recorded the op of `node`; None where anomaly detection was off."""
    made = getattr(node, "_stack", None)
    if made is not None:
        return str(made)
    state = getattr(node, "state", None)  # a leaf's node was recorded by nothing
    return None if state is None else _stacks.get(state)


def note_stack(state: State) -> None:
    """Note the user's stack for a step that is recorded now, and what is running then."""
    _stacks[state] = stack_now() or ""
    if (maker := current_node()) is not None:
        _makers[state] = _made_by(maker)


def stack_now() -> str | None:
    """Return the user's stack for a node that is made now; None where the detection is off."""
    if not state.enabled:
        return None
    frames = [f for f in traceback.extract_stack() if not is_library_file(f.filename)]
    return "".join(traceback.format_list(frames))


def parent_now() -> Any:
    """Return the node that this thread's backward pass runs, for one that is made now; or None."""
    return current_node() if state.enabled else None


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
    """Raise within the block for a NaN that appears in backward, and name the op that made it.

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
    """Tell if anomaly detection is on in this thread."""
    return bool(state.enabled)


def is_anomaly_check_nan_enabled() -> bool:
    """Tell if anomaly detection looks for NaN."""
    return bool(state.check_nan)


Mode.observe("anomaly", note_stack)
