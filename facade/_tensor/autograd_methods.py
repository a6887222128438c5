"""The autograd side of `Tensor`: flags, gradients, detaching."""

from __future__ import annotations

import warnings
from typing import Any

from .._autograd.graph import edges
from .._core.transforms_running import active
from .._core.trie import LEAF, NODE, NOWHERE, local, resting
from .._core.vmap_checks import hides_grad
from .._runtime.recomputation import compute_elsewhere
from .._storage.autograd_roles import alias
from .._storage.data_writes import note_flag
from .._storage.enter import drop_grad_fn, enter, was_leaf
from .._storage.shared_storage import detach as _detach
from .._storage.shared_storage import flag, flag_views
from .._tracing.inputs import renew_entry
from .data_attribute import without_role
from .grad_methods import GradMixin


class AutogradMixin(GradMixin):
    """Methods and properties that PyTorch's autograd documentation speaks of."""

    @property
    def requires_grad(self) -> bool:
        """Tell whether gradients are computed for this tensor."""
        return self._tracked and (local.vmap is None or not _hidden(self))

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if self._tracked and _begins(self):
            return  # PyTorch has a flag of the example's own, that nobody but the function sees
        if value and self._interior():
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        self._set_requires_grad(value, "floating point and complex")

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @property
    def _tracked(self) -> bool:
        """Return `requires_grad` in the trace; an example of a `vmap` has that of its batch."""
        old, base = self._stale, self._base_
        if old is not None and base is not None:
            return bool(old.role or base._tracked)
        return bool(self._v.requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Change whether gradients are computed for this leaf, in place; returns it.

        Raises:
          RuntimeError: for a tensor that is not a leaf, or whose dtype is not floating point
            or complex.
        """
        if active.depth:
            raise RuntimeError(
                "You are attempting to call Tensor.requires_grad_() (or perhaps using "
                "torch.autograd.functional.* APIs) inside of a function being transformed by a "
                "functorch transform. This is unsupported, please attempt to use the functorch "
                "transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() "
                "outside of a function being transformed instead."
            )
        return self._set_requires_grad(requires_grad, "floating point")

    def _set_requires_grad(self, requires_grad: bool, dtypes: str = "floating point") -> Any:
        v = self._v
        if self._interior() and not requires_grad:
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        if requires_grad and not (self.dtype.is_floating_point or self.dtype.is_complex):
            raise RuntimeError(f"only Tensors of {dtypes} dtype can require gradients")
        if v.inference and requires_grad and not local.mode.inference:
            raise RuntimeError(
                "Setting requires_grad=True on inference tensor outside InferenceMode is not "
                "allowed."
            )
        written = self._stale is not None and self._base_ is not None
        if written and self._base_._tracked:
            return self  # a view whose base was written to is what its base is
        if self._stale is None and v.role == NOWHERE and v.requires_grad:
            if requires_grad:  # so far it did because its base does
                self._set_role(True)
            return self
        if bool(requires_grad) == self._tracked:
            return self
        if requires_grad and active.differentiating:
            active.leaves += (self,)
        self._set_role(bool(requires_grad))
        return self

    def _note_given(self, given: bool) -> None:
        if given or self._given:  # a field that most tensors go without
            self._given = given

    def _set_role(self, leaf: bool) -> None:
        self._note_given(False)
        v, role = self._v, LEAF if leaf else NOWHERE
        kind = resting(v.aval, leaf, role, v.inference, v.strides)
        trace = local.trace
        away = self._array is None and self._trace is not trace
        if self._stale is not None or (away and self._store is not None):
            enter(self, trace)
        elif away:  # another thread has it pending
            self._array = compute_elsewhere(self)
        if self._v.index >= 0 and self._trace is trace:
            note_flag(trace, self, self._v)
            value = _with_role(trace, self._v, kind)
            if leaf:
                trace.sources[value] = self
            self._v = value
            renew_entry(trace, self, value)
        else:
            self._v = kind
            self._trace = None if self._array is not None else self._trace
        if self._node is not None:
            drop_grad_fn(self)
        if not leaf and self._base_ is not None and self._base_._tracked:
            flag(self, True)
        flag_views(self)

    @property
    def is_leaf(self) -> bool:
        """Return True for tensors that no recorded op made, or that need no gradient."""
        return self._leaf or _begins(self)

    @property
    def _leaf(self) -> bool:
        """Return `is_leaf` in the trace; an example of a `vmap` is one of its batch."""
        if self._stale is not None:
            edges.renew_history(self)
        return bool(self._v.role <= LEAF)

    @property
    def grad_fn(self) -> Any:
        """Return the node of the graph that made this tensor, None for leaves."""
        return None if _begins(self) else edges.grad_fn(self)

    # No `__delattr__` says what may not be deleted: a class that has one is asked for its stores
    # as well, and each of the recorder's then takes seven times as long.

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    def detach(self) -> Any:
        """Return a tensor that shares this one's storage and is cut from the graph."""
        return _detach(self)

    def detach_(self) -> Any:
        """Cut this tensor from the graph, in place; returns it."""
        if local.mode.inference or self.is_inference():  # autograd is not asked
            return self
        if self._base_ is not None:
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using "
                "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set "
                "as True, gradients are views of DDP buckets, and hence detach_() cannot be "
                "called on these gradients. To fix this error, please refer to the "
                "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
            )
        if self.requires_grad:
            writer = self._store.writer if self._store is not None else None
            view = writer() if writer is not None else None
            if view is not None and view._stale is not None and not view._creation:
                enter(view, local.trace)  # PyTorch makes its history anew when it is written to
            if self._v.role == NODE and self._trace is local.trace:
                local.trace.graph.detached |= {self._v}
            self._set_role(False)
        self._duals = None
        return self

    @property
    def volatile(self) -> bool:
        """Return False: what was once `volatile=True` is `no_grad` today."""
        warnings.warn(
            "volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2
        )
        return False

    @volatile.setter
    def volatile(self, value: bool) -> None:
        warnings.warn(
            "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
            UserWarning,
            stacklevel=2,
        )

    @property
    def _version(self) -> int:
        if self._v.inference and not self._counts:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._vc is None else int(self._vc[0])

    @property
    def _base(self) -> Any:
        return self._base_

    def _is_view(self) -> bool:
        return self._base_ is not None

    @property
    def output_nr(self) -> int:
        """Return the number of the output of `grad_fn` that this tensor is."""
        if self._creation and self._stale is not None:  # it has no history to be asked for
            edge = self._stale.edge
            return int(self._out if edge is None or edge.role != NODE else edge.out)
        return 0 if was_leaf(self) or self.is_leaf else int(edges.gradient_edge(self)[1])

    def is_inference(self) -> bool:
        """Tell whether this tensor was made in inference mode."""
        return bool(self._v.inference)


def _begins(t: Any) -> bool:
    """Tell whether `t` has no history to the function that is transformed, though it is traced."""
    if not active.depth:
        return False
    return any(t is a for a in active.arguments) or local.vmap is not None and _hidden(t)


def _hidden(t: Any) -> bool:
    """Tell whether `t` is of a `vmap` whose batches have the flags; a leaf was made one inside."""
    return t._v.role != LEAF and not active.pulling and hides_grad(t)


def _with_role(trace: Any, value: Any, kind: Any) -> Any:
    """Step to `value` with the role of `kind`, as `alias` does, or with no role if it has none."""
    if kind.role == NOWHERE:
        return without_role(trace, value)
    return alias(trace, value, kind)
