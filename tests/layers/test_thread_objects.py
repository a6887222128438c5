"""The objects that every op meets stay small: rare facts stand in groups by topic."""

from collections.abc import Callable

import pytest

from leafax._core.trie import Local, State, Trace
from leafax._core.trie import local as recorder

MOST = 12


def fields_of(instance: object) -> set[str]:
    """List the fields of an object, and those that its class declares."""
    names = {*getattr(instance, "__dict__", ()), *type(instance).__annotations__}
    names.update(getattr(type(instance), "__slots__", ()))
    return names - {"__weakref__"}


def new_trace() -> Trace:
    return Trace(State(None, None, recorder.mode))


@pytest.mark.parametrize("make", [new_trace, Local], ids=["trace", "thread"])
def test_hot_objects_and_their_groups_have_few_fields(make: Callable[[], object]) -> None:
    whole = make()
    groups = [part for part in map(whole.__getattribute__, fields_of(whole)) if is_group(part)]
    assert len(groups) >= 3
    for part in [whole, *groups]:
        assert 0 < len(fields_of(part)) <= MOST, type(part).__name__


def is_group(part: object) -> bool:
    """Tell a group of a thread's or trace's own facts by where it is defined."""
    return type(part).__module__.endswith((".trie.trace", ".trie.thread_state"))
