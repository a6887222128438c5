"""`Tensor.data`: the values without history, and other memory for a tensor that keeps its own."""

from __future__ import annotations

import sys
from typing import Any
from weakref import ref

from leafax.functional.program.meta import META

from .._autograd.graph import edges
from .._core.handle import Handle
from .._core.locks import sharing
from .._core.python_data import name_of_type
from .._core.trie import LEAF, NOWHERE, local, resting
from .._core.vmap_checks import refuse_in_vmap
from .._storage.autograd_roles import alias, keep_edge, tag
from .._storage.data_writes import note_new_data, note_replaced_data
from .._storage.enter import enter, was_leaf
from .._storage.shared_storage import adopt, detach
from .._storage.write import rebind
from .._tracing.inputs import Source
from .._tracing.jax_transforms import refuse_write
from .._tracing.undo import note_write

# References to the right-hand side of `x.data = y` if `y` is a temporary.
_UNSHARED = 3


class DataMixin(Handle):
    """`data`, which PyTorch's older code reads and sets."""

    @property
    def data(self) -> Any:
        """Return this tensor's data without history or shared version counter."""
        refuse_in_vmap("data", self)
        return detach(self, own=True)

    @data.setter
    def data(self, other: Any) -> None:
        if not isinstance(other, DataMixin):
            raise TypeError("Variable data has to be a tensor, but got " + name_of_type(other))
        refuse_in_vmap("set_data", self)
        refuse_write(self)
        if (self._v.device is META) != (other._v.device is META):
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                "incompatible tensor type."
            )
        requires_grad = self._tracked  # type: ignore[attr-defined]
        if requires_grad and not (other.is_floating_point() or other.is_complex()):  # type: ignore[attr-defined]
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex "
                "dtype"
            )
        with sharing:
            if _is_same_memory(self, other):
                return
            if self._v.role == LEAF and self._v.dtype != other._v.dtype:
                edges.give_new_accumulator(self)
            store = self._store  # views that were made before see the old memory
            for member in [] if store is None else [m() for m in store.members]:
                if member is None or member is self or member._creation:
                    continue
                if member._stale is not None:
                    enter(member, local.trace)
            if self._stale is not None and edges.has_no_history(self):
                self._replace_alone(other)
                return
            self._replace(other)
            if store is not None:
                store.let_go(self)
            # The two share memory from now on; nothing to do for a tensor that nobody else holds.
            if other._store is not None or sys.getrefcount(other) > _UNSHARED:
                if self._vc is None:
                    self._vc = [0]
                adopt(other, self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def _known(self) -> Any:
        """Return this tensor's value; of a view whose base was written to, that from before."""
        return self._v if self._stale is None else self._stale

    def _interior(self) -> bool:
        """Tell whether autograd knows this tensor as no leaf.

        A view whose base got a history is a leaf still until it is asked for its own, or written
        to itself.
        """
        if self._known().role > LEAF:
            return True
        base = self._base_
        return self._stale is not None and base is not None and base._tracked and not was_leaf(self)

    def _replace(self, other: Any) -> None:
        """Hold the value of `other`; the way of the gradient stays."""
        old, trace = self._v, local.trace
        local.turned |= old.shape != other._v.shape
        here = self._trace is trace and old.index >= 0
        if not here and old.role > LEAF and self._node is None:
            self._node, self._out = edges.gradient_edge(self)
        note_new_data(self)
        note_replaced_data(trace, self, self._known())
        aval, strides = other._v.aval, other._v.strides
        kind = resting(aval, old.requires_grad, old.role, other._v.inference, strides)
        if here and old.role > LEAF:
            value = without_role(trace, self._entered(other))
            value = keep_edge(trace, value, old, value.inference)
            self._v, self._array, self._stale = value, None, None
            if old.edge in trace.sources:
                trace.sources[self._v] = trace.sources[old.edge]
        elif other._array is not None:
            if self._array is not None:
                note_write(trace, self, ref(self))
            self._v, self._trace, self._array, self._stale = kind, None, other._array, None
            trace.entered.pop(id(self), None)
        else:
            value = tag(trace, self._entered(other), kind)
            history = self._node, self._out
            rebind(self, value)
            self._node, self._out = history
            if value.role:
                trace.sources[value] = self if value.role == LEAF else Source(*history)

    def _entered(self, other: Any) -> Any:
        """Return the value of `other` in this trace, as memory whose writes this tensor counts."""
        trace = local.trace
        entered = enter(other, trace)
        value = alias(trace, entered, entered.resting, fresh=True)
        trace.versions[value.storage] = 0 if self._vc is None else self._vc[0]
        return value

    def _replace_alone(self, other: Any) -> None:
        """Hold the value of `other`, and still refuse to tell a history."""
        old, has = self._v, other._v
        local.turned |= old.shape != has.shape
        note_new_data(self)
        self._store.let_go(self)
        adopt(other, self)
        self._v = resting(has.aval, old.requires_grad, old.role, has.inference, has.strides)
        self._trace = self._array = None


def _is_same_memory(t: Any, other: Any) -> bool:
    """Tell whether `t.data = other` would change nothing."""
    if other is t:
        return True
    store = t._store
    alike = store is not None and other._store is store and other._lens == t._lens
    return alike and bool(other._v.inference == t._v.inference)


def without_role(trace: Any, value: Any) -> Any:
    """Step to `value` without a part in autograd."""
    return alias(trace, value, resting(value.aval, False, NOWHERE, value.inference))
