"""`Tensor.set_`: let a tensor be another's memory."""

from __future__ import annotations

from typing import Any

from leafax.functional.ops.shape.strides import contiguous_strides
from leafax.functional.program.dtypes import cpp_name
from leafax.functional.program.op import Op

from ..._autograd.graph.edges import give_new_accumulator
from ..._core.handle import Handle
from ..._core.trie import LEAF, NODE, local
from ..._dispatch.record import record
from ..._storage.autograd_roles import keep_edge
from ..._storage.enter import enter
from ..._storage.shared_storage import adopt
from ..._storage.write import touch, write
from ..creation.storage_objects import UntypedStorage, check_source
from .apply_inplace import check_inplace, frozen, written_anyway

_FORMS = """, but expected one of:
 * ()
 * (Tensor source)
 * (Tensor source, int storage_offset, tuple of ints size, tuple of ints stride = None)
"""


def _taken(self: Any, source: Any) -> Any:
    return source


def _nothing(self: Any) -> Any:
    return self.reshape(-1)[:0]


_SET = Op(_taken, name="set_", backward="NotImplemented", overwrites=True)
_EMPTY = Op(_nothing, name="set_", backward="NotImplemented", overwrites=True)


def set_(
    self: Any, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None
) -> Any:
    """Make this tensor share the memory of `source`, with its shape; views of it stay behind.

    Args:
      source: a tensor of this one's dtype, or its storage; without one, this tensor has no
        elements from now on.
      storage_offset: with `size` and `stride`, which elements of the source's storage.

    Raises:
      RuntimeError: for another dtype; where autograd forbids the write; for a view whose write
        autograd would record, which has no meaning here.
      TypeError: for a source that is no tensor.

    >>> import leafax
    >>> x, y = leafax.zeros(2), leafax.ones(3)
    >>> x.set_(y).add_(1)
    tensor([2., 2., 2.])
    >>> y
    tensor([2., 2., 2.])
    """
    memory = source if isinstance(source, UntypedStorage) else None
    if memory is not None:
        source = None
        check_source(self, memory)
    if source is not None and not isinstance(source, Handle):
        raise TypeError(
            "set_() received an invalid combination of arguments - got "
            f"({type(source).__name__}){_FORMS}"
        )
    if source is not None and source.dtype != self.dtype:  # type: ignore[attr-defined]
        if size is None:
            raise RuntimeError(
                f"Could not set tensor of type {cpp_name(source._v.dtype)} to a tensor of type "
                f"{cpp_name(self._v.dtype)}"
            )
        memory, source = source.untyped_storage(), None  # type: ignore[attr-defined]
    differentiable = self.requires_grad or source is not None and source.requires_grad  # type: ignore[attr-defined]
    tracked = local.mode.grad and differentiable
    tracked = tracked and not (frozen(self) and (source is None or source._v.inference))  # type: ignore[attr-defined]
    check_inplace(self, tracked)
    if frozen(self):
        with written_anyway():
            given = source if memory is None else memory
            return set_(self, given, storage_offset, size, stride)
    if memory is not None:
        source = memory.whole(self.dtype)
    if source is not None and size is not None:
        if stride is None:
            stride = contiguous_strides(tuple(size))
        source = source.detach().as_strided(size, stride, storage_offset)  # type: ignore[attr-defined]
    if tracked and self._base_ is not None:
        raise RuntimeError(
            "set_() of a view that takes part in autograd is not supported: its gradient would "
            "go to memory that it no longer reads. Call it in torch.no_grad(), or on a clone."
        )
    if self._v.role == LEAF and not local.mode.inference:  # where autograd is not asked
        give_new_accumulator(self)
    if source is self and not tracked:
        touch(self)
        return self
    old = enter(self, local.trace)
    if source is None:
        state, trace = record(_EMPTY, (self,), {})
    else:
        state, trace = record(_SET, (self, source), {})
    value = state.value
    assert value is not None
    if old.requires_grad and not value.requires_grad and old.role:
        value = keep_edge(trace, value, old)
        if value.edge in trace.sources:
            trace.sources[value] = trace.sources[value.edge]
    if self._store is not None:
        self._store.let_go(self)
    self._base_, self._blens, self._creation = None, (), ""
    write(self, value, tracked and value.role == NODE)
    if source is not None:
        adopt(source, self)
    return self
