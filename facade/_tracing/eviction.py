"""Keeping the trie small: what was not walked for long is forgotten.

Compiled programs are cached by structure elsewhere, so forgetting a path costs no compile, only
the inference of its steps when it is met again.
"""

from __future__ import annotations

from typing import Any

from .._core.trie import Local, State

MAX_STATES = 200_000


def bound(recorder: Local) -> None:
    """Forget the least recently used paths if the trie has more than `MAX_STATES` states.

    Called between traces. What stays are the paths to the programs that ran last, up to half
    of the limit.
    """
    if recorder.trie.states <= MAX_STATES:
        return
    ends = [s for s in _states(recorder) if s.used]
    ends.sort(key=lambda s: s.used, reverse=True)
    keep: set[State] = set()
    for end in ends:
        path: list[State] = []
        state: State | None = end
        while state is not None and state not in keep:
            path.append(state)
            state = state.parent
        if len(keep) + len(path) > MAX_STATES // 2:
            break
        keep.update(path)
    keep.update(recorder.trie.roots.values())
    for state in keep:
        state.next = {k: v for k, v in state.next.items() if _leads_to_kept(v, keep)}
    recorder.trie.states = len(keep)


def _states(recorder: Local) -> list[State]:
    found: dict[State, None] = {}
    stack = list(recorder.trie.roots.values())
    while stack:
        state = stack.pop()
        if state not in found:  # a step may be known by more than one key
            found[state] = None
            stack += [v for v in state.next.values() if isinstance(v, State)]
    return list(found)


def _leads_to_kept(step: Any, keep: set[State]) -> bool:
    """Return whether a state, or a remembered pass, leads to a state that is kept."""
    target = step if isinstance(step, State) else getattr(step, "state", None)
    return target is None or target in keep
