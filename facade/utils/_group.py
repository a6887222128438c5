"""Backward passes that compute a checkpointed function anew only once between them."""

from __future__ import annotations

import threading
from typing import Any


class _Current(threading.local):
    group: GraphExecGroup | None = None


_current = _Current()


class GraphExecGroup:
    """Within the block several backward passes share what checkpoints compute again.

    They must not overlap: two passes may not read the same saved tensor, even with `retain_graph`.
    Affects checkpoints with `use_reentrant=False`. A program that runs in between (someone
    looks at a value) ends the sharing.

    >>> import leafax
    >>> from leafax.utils.checkpoint import GraphExecGroup, checkpoint
    >>> x = leafax.tensor([2.0], requires_grad=True)
    >>> y, z = checkpoint(lambda x: (x.sin(), x.cos()), x, use_reentrant=False)
    >>> with GraphExecGroup():
    ...     y.backward()
    ...     z.backward()
    """

    def __enter__(self) -> GraphExecGroup:
        if _current.group is not None:
            raise RuntimeError(
                f"GraphExecGroup contexts cannot be nested. Already inside group {_current.group}"
            )
        _current.group = self
        return self

    def __exit__(self, *args: object) -> None:
        _current.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _current.group


GraphExecGroup.__module__ = "leafax.utils.checkpoint"


def owner(tasks: list[Any]) -> Any:
    """Return who may share a recomputation now: the group, or the pass that walks; None outside."""
    return _current.group or (tasks[-1] if tasks else None)
