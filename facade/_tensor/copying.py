"""Copies of tensors: `copy`, `deepcopy` and pickle."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np

from leafax.functional.program.meta import MetaArray

from .._autograd.graph.edges import gradient_edge, has_no_history
from .._core.handle import users_attributes
from .._core.vmap_checks import refuse_in_vmap
from .._ops.creation.from_arrays import from_numpy, wrap
from .._ops.creation.legacy_constructors import of_class
from .._ops.views.deepcopy import copied
from .._rules.strides.layouts import is_dense
from .._storage.lay_out import lay_out
from .._storage.shared_storage import of_mode
from .._storage.write import written_once
from .._tracing import inputs


def _warn_of_hooks(t: Any) -> None:
    """Warn of the tensor's hooks: a copy does not have them."""
    if t._stale is not None and has_no_history(t):
        return
    if t.is_leaf:
        hooks = list((t._hooks or {}).values())
    else:
        node, out = gradient_edge(t)
        hooks = [hook for k, hook in node.tensor_hooks.values() if k == out]
    for hook in hooks:
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=3,
            )


def _rebuild(array: Any, requires_grad: bool, strides: tuple[int, ...] | None = None) -> Any:
    """Make a tensor that was pickled, row by row if its memory had gaps or overlaps."""
    meta = isinstance(array, MetaArray)
    out = wrap(array) if meta else from_numpy(np.array(array, order="C"))
    if strides is not None and is_dense(array.shape, strides):
        lay_out(out, strides)
    written_once(out)
    return out.requires_grad_() if requires_grad else out


def _rebuild_as(cls: type, *given: Any) -> Any:
    """Make a tensor of a derived class that was pickled."""
    return of_class(_rebuild(*given), cls)


def __deepcopy__(self: Any, memo: Any) -> Any:  # noqa: N807
    """Copy a leaf, its gradient and what users gave it."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may "
            "be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    refuse_in_vmap("storage", self)
    out = copied(self, memo)
    if type(self) is not type(out):
        out.__class__ = type(self)
    memo[id(self)] = out
    out.__dict__.update(copy.deepcopy(users_attributes(self), memo))
    if self.requires_grad:  # else not even asked for: inside transforms that raises
        out.requires_grad_()
    if self._grad is not None:
        out._grad = copy.deepcopy(self._grad, memo)
        out._note_given(self._given)
    return out


def __copy__(self: Any) -> Any:  # noqa: N807
    """Make another tensor on the same data."""
    refuse_in_vmap("storage", self)
    _warn_of_hooks(self)
    out = written_once(of_mode(self.data))
    if type(self) is not type(out):
        out.__class__ = type(self)
    out.__dict__.update(users_attributes(self))
    return out.requires_grad_() if self.requires_grad else out


def pickled_array(t: Any) -> Any:
    """Return the array that a pickle holds of a tensor."""
    return MetaArray(t.shape, t._v.dtype) if t.is_meta else t._value("pickling")


def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
    """Tell pickle how the tensor is made again."""
    _warn_of_hooks(self)
    array = pickled_array(self)
    strides = None if self.is_contiguous() else self.stride()
    given = array, self.requires_grad, strides
    made = (
        (_rebuild, given)
        if type(self) is inputs._tensor_class
        else (_rebuild_as, (type(self), *given))
    )
    return (*made, users_attributes(self) or None)
