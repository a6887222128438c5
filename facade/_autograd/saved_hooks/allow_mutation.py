"""`allow_mutation_on_saved_tensors`: what is saved is copied when it is written to.

Saved tensors are packed into handles (keys into the context's tables). A write first looks
whether anything that shares its storage was saved at this version, and puts a copy in its place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from ..._core.trie import local
from ..graph.reachable import forget_dead
from .saved_tensors_hooks import paused, saved_tensors_hooks

_enabled = False  # PyTorch's flag is one for all threads, too


class _Key:
    """Stands for one saved tensor; lives as long as a node holds it."""


class _AllowMutationOnSavedContext:
    """Tables of the context manager, for debugging.

    Attributes:
      original: key -> the saved tensor while nobody has written to it.
      tid_to_weakhandle: `(id, version counter, version)` of a saved tensor -> its key.
      sid_to_tid: `(version counter, version)` of a storage -> those of the tensors saved of it.
    """

    def __init__(self) -> None:
        self._cloned: Any = WeakKeyDictionary()
        self.original: Any = WeakKeyDictionary()
        self.tid_to_weakhandle: Any = WeakValueDictionary()
        self.sid_to_tid: Any = defaultdict(set)

    @property
    def cloned(self) -> Any:
        """Key -> the copy of a tensor that was written to after it was saved."""
        forget_dead(local.trace)
        return self._cloned

    def clear(self) -> None:
        """Forget everything."""
        for table in (self._cloned, self.original, self.tid_to_weakhandle, self.sid_to_tid):
            table.clear()

    def pack(self, t: Any) -> _Key:
        """Note a tensor that is saved."""
        sid = _storage(t)
        tid = (id(t), *sid)
        self.sid_to_tid[sid].add(tid)
        key = self.tid_to_weakhandle.get(tid)
        if key is None:
            key = self.tid_to_weakhandle[tid] = _Key()
            self.original[key] = t
        return key  # type: ignore[no-any-return]

    def unpack(self, key: _Key) -> Any:
        """Get the tensor as it was when it was saved."""
        message = (
            "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"
            "in which the graph was originally recorded."
        )
        if not _enabled:
            raise AssertionError(message)
        if key in self._cloned:
            return self._cloned[key]
        if key not in self.original:
            raise AssertionError(message)
        return self.original[key]

    def before_write(self, t: Any) -> None:
        """Copy what is saved of the storage of `t`, which is about to be written to."""
        for tid in self.sid_to_tid.get(_storage(t), ()):
            key = self.tid_to_weakhandle.get(tid)
            if key is None or key in self._cloned:
                continue
            with paused():
                self._cloned[key] = self.original[key].clone()
            del self.original[key]


def _storage(t: Any) -> tuple[int, int]:
    if t._vc is None:
        t._vc = [0]
    return id(t._vc), t._version  # which inference tensors have not


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutationOnSavedContext]:
    """Allow in-place writes to saved tensors: backward uses what they held when saved.

    Forward and backward must both run inside the block.

    Raises:
      RuntimeError: inside another such block.

    >>> import leafax
    >>> with leafax.autograd.graph.allow_mutation_on_saved_tensors():
    ...     a = leafax.ones(2, requires_grad=True)
    ...     b = a.clone()
    ...     out = (b**2).sum()
    ...     b = b.sin_()
    ...     out.backward()
    >>> a.grad
    tensor([2., 2.])
    """
    global _enabled
    context = _AllowMutationOnSavedContext()
    before = local.autograd.guard
    with saved_tensors_hooks(context.pack, context.unpack):
        local.autograd.guard = context.before_write
        try:
            if _enabled:
                raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
            _enabled = True
            yield context
        finally:
            local.autograd.guard = before
            context.clear()
            _enabled = False
