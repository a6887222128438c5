"""The fields of a tensor: a mutable handle on a value of the running trace, or on an array."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar


class Shared:
    """A field that follows from a tensor's shared storage.

    No data descriptor: a field that was set is found in the instance, at no cost.

    Attributes:
      settle: works out what a view shares; `_storage.settle` installs it.
    """

    settle: ClassVar[Callable[[Any], None]]

    __slots__ = ("name", "default")

    def __init__(self, name: str, default: Any) -> None:
        self.name, self.default = name, default

    def __get__(self, t: Any, cls: Any = None) -> Any:
        if t is None:
            return self.default
        if t._viewed is not None or t._viewers is not None:
            Shared.settle(t)
            return t.__dict__.get(self.name, self.default)
        return self.default


class Handle:
    """The recorder's part of a tensor; `Tensor` adds all that users see.

    Attributes:
      _v: its `Value`: in the trace, or resting.
      _trace: the trace that `_v` belongs to, None or a finished one when it rests.
      _array: the JAX array (a NumPy one on its way there, see `host_transfer.py`), None while
        it is pending (or is a view that must be read anew).
      _store: the `Storage` shared with views and detached tensors, None while nobody shares.
      _shares: False where nothing is shared, for sure; quicker to ask for than `_store`.
      _lens: how to read this tensor from the storage: `(op, args, kwargs)` steps.
      _base_: the tensor that this one is a view of, and `_blens` how to read it from there.
      _creation: how a view was made, where that forbids writes later: "no_grad", "inference",
        "multi" (one of several results); else "".
      _behind: a view whose storage was written to since it got its history from its base; read
        anew or not, it gets another one when its base requires grad.
      _retains: `retain_grad()` was called.
      _ended: it is an argument of a transformed function that has returned: to other transforms
        a constant.
      _stale: set when the storage was written through another tensor: what `_v` was before.
      _node: its graph node once an earlier trace is done; `_out` is its output number.
      _grad: `.grad`.
      _given: that gradient was assigned while the tensor was frozen: it is no leftover.
      _duals: its tangents by level, see `dual_levels.py`; `_dual_root` is `(tensor, length of its
        lens)` of that whose tangent a view of it shares, with None for the tensor itself; None
        alone stands for the base.
      _grad_dtype: the dtype that `.grad` must have, in a tuple; None stands for the tensor's own.
      _vc: version counter, a list of one int shared with views; None stands for 0.
      _counts: an inference tensor that counts versions all the same: `detach()` and `.data` of one
        give such a tensor outside of the mode, and it may be written to there.
      _eventful: a gradient that is accumulated into it may meet a hook, a node that somebody holds
        or a dtype to be checked; False if there is none of them, for sure.
      _viewed, _viewers: what a view is of, and who views a tensor, until what they share is asked
        for: see `_storage/pending_views.py`. Fields of the kind `Shared` are never set to their
        defaults.
    """

    _array: Any = None
    _store: Any = Shared("_store", None)
    _lens: Any = Shared("_lens", ())
    _base_: Any = None
    _blens: Any = Shared("_blens", ())
    _stale: Any = None
    _node: Any = None
    _out: int = 0
    _grad: Any = None
    _given: bool = False
    _vc: Any = Shared("_vc", None)
    _hooks: Any = None
    _accumulator: Any = None
    _grad_dtype: Any = None
    _post_accumulate_hooks: Any = None
    _creation: str = ""
    _retains: bool = False
    _ended: bool = False
    _duals: Any = None
    _dual_root: Any = None
    _behind: bool = False
    _counts: bool = False
    _shares: bool = False
    _eventful: bool = False
    _viewed: Any = None
    _viewers: Any = None

    _v: Any
    _trace: Any

    if TYPE_CHECKING:  # methods that follow from the op table

        def __getattr__(self, name: str) -> Any: ...


_NO_DEFAULTS = frozenset({"_v", "_trace", "_held_while_collecting"})


def is_trained(t: Any) -> bool:
    """Return whether optimizers update `t` and gradient clipping counts its gradient.

    What is frozen is outside of both, though `backward()` may have left a gradient from before. One
    that was assigned to it since (evolution strategies, gradients of `func.grad`) is meant.
    """
    return t._grad is not None and (t._v.requires_grad or t._given)


def users_attributes(t: Any) -> dict[str, Any]:
    """Return the attributes that the user set on a tensor; copies and pickles take them along."""
    if len(t.__dict__) <= 3:  # `_v`, `_trace` and one that says where the data are
        return {}
    return {
        name: x
        for name, x in t.__dict__.items()
        if name not in _NO_DEFAULTS and not hasattr(Handle, name)
    }


def tensors_in(args: Any) -> Any:
    """Find the tensors among arguments and in their sequences."""
    for a in args.values() if isinstance(args, dict) else args:
        if isinstance(a, Handle):
            yield a
        elif isinstance(a, (tuple, list, dict)):
            yield from tensors_in(a)
