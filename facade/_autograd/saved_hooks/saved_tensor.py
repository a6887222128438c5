"""One saved tensor of a graph node: `grad_fn._raw_saved_self`, PyTorch's `SavedTensor`.

A place says where the tensor is: at a node that the recorder made, at one made under hooks, at a
Function's context, or with the `SavedTensor` itself. Each can be asked what was packed there, give
the tensor, and have it replaced by what a pair of hooks makes of it.
"""

from __future__ import annotations

from typing import Any

from ..._core.handle import Handle
from ..._core.trie import local
from ..._rules.error_texts import DETACHED, FREED
from ..graph.edges import edge_from
from ..graph.saved_origin import origin_of_tensor
from ..graph.version_checks import check_versions, latest_versions, modified
from .saved_tensors_hooks import Packed, pack_one

_SIGNATURE = (
    "(): incompatible function arguments. The following argument types are supported:\n    1. "
)


class SavedTensor:
    """A tensor that a node saved, as it is stored there.

    Attributes:
      data: what is stored: the tensor (without history if it is the node's own result), or what
        a pack hook made of it; None once it is freed.
      unpack_hook: the hook that will make it a tensor again, or None.
    """

    _place: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @staticmethod
    def at(place: Any) -> SavedTensor:
        """Make the saved tensor at a place."""
        made = object.__new__(SavedTensor)
        made._place = place
        return made

    def register_hooks(self, *hooks: Any) -> None:
        """Replace the saved tensor by `pack_hook` of it now, and by `unpack_hook` of that later.

        Args: `(pack_hook, unpack_hook)`.

        Raises:
          RuntimeError: if it is None or freed, or has hooks already.
        """
        if len(hooks) != 2 or not all(callable(h) for h in hooks):
            told = ", ".join(repr(a) for a in (self, *hooks))
            raise TypeError(
                f"register_hooks{_SIGNATURE}(self: torch._C._autograd.SavedTensor, arg0: "
                "collections.abc.Callable, arg1: collections.abc.Callable) -> None\n\nInvoked "
                f"with: {told}"
            )
        if self._place.freed():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved "
                "intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the "
                "graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if self._place.empty():
            raise RuntimeError(
                "Calling register_hooks on a saved tensor with value None is forbidden"
            )
        if self._place.packed() is not None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. "
                "Hint: only one pair of hooks is allowed at a time."
            )
        self._place.pack(hooks)

    @property
    def data(self) -> Any:
        if self._place.freed() or self._place.empty():
            return None
        packed = self._place.packed()
        return self._place.stored() if packed is None else packed.value

    @property
    def unpack_hook(self) -> Any:
        packed = None if self._place.freed() else self._place.packed()
        return None if packed is None else packed.hook

    def unpack(self) -> Any:
        """Unpack the tensor with its place in the graph, None if None was saved.

        Raises:
          RuntimeError: once it is freed, or if it was written to since.
        """
        if self._place.empty():
            return None
        if self._place.freed():
            raise RuntimeError(FREED)
        return self._place.unpack()


SavedTensor.__module__ = "leafax._C._autograd"


class AtNode:
    """The tensor of operand `index` (or of result `-1 - index`) of a node of the recorder."""

    def __init__(self, node: Any, index: int | None) -> None:
        self._node, self._index = node, index

    def empty(self) -> bool:
        return self._index is None

    def freed(self) -> bool:
        return self._node.is_freed()  # type: ignore[no-any-return]

    def packed(self) -> Any:
        return (self._node.packed or {}).get(self._index)

    def stored(self) -> Any:
        t = self._node.unpack(self._index)
        return t.detach() if self._index is not None and self._index < 0 else t

    def unpack(self) -> Any:
        node, index = self._node, self._index
        if index is not None and index < 0:
            raise RuntimeError(DETACHED)  # PyTorch does not know here whose result it is
        packed = self.packed()
        if packed is not None:
            return packed.unpack(node)
        latest = {}
        if node.saved is None and node.trace is local.trace:
            latest = latest_versions(local.trace.state)
        if node.saved is not None or node.trace is local.trace:
            check_versions(node, latest, index)
        return node.unpack(index)

    def pack(self, pair: Any) -> None:
        node, index = self._node, self._index
        assert index is not None
        edge = node.next_edges()[index] if index >= 0 else -1 - index
        packed = Packed(node.unpack(index).detach(), pair, edge)
        node.packed = {**(node.packed or {}), index: packed}
        if node.saved is not None:
            node.saved.pop(index, None)
        node.mark_hooked()


class AtHooked:
    """A tensor that hooks packed when the node was made."""

    def __init__(self, node: Any, index: int) -> None:
        self._node, self._index = node, index

    def empty(self) -> bool:
        return False

    def freed(self) -> bool:
        return bool(self._node.freed)

    def packed(self) -> Any:
        return self._node.packed[self._index]

    def unpack(self) -> Any:
        if self._index < 0:
            raise RuntimeError(DETACHED)
        return self.packed().unpack(self._node)


class AtContext:
    """The `k`-th tensor that a Function saved."""

    def __init__(self, ctx: Any, k: int) -> None:
        self._ctx, self._k = ctx, k

    def _saved(self) -> Any:
        return None if self._ctx._saved is None else self._ctx._saved[self._k]

    def empty(self) -> bool:
        return self._ctx._saved is not None and self._saved() is None

    def freed(self) -> bool:
        return self._ctx._saved is None

    def packed(self) -> Any:
        saved = self._saved()
        return None if isinstance(saved, tuple) else saved

    def stored(self) -> Any:
        return self._saved()[0][0]

    def unpack(self) -> Any:
        return self._ctx._unpack(self._saved())

    def pack(self, pair: Any) -> None:
        (t, _, _), own = self._saved()
        self._ctx._saved[self._k] = made_packed(t, pair, own)


class Loose:
    """A tensor that is saved nowhere else."""

    def __init__(self, t: Any, own: bool) -> None:
        own = own and not t._leaf  # a leaf is saved as it is
        self._packed = pack_one(t, 0 if own else None)
        self._t, self._own = t.detach() if own else t, own
        self._version = t._version
        if self._packed is not None:
            self._t = None

    def empty(self) -> bool:
        return False

    freed = empty

    def packed(self) -> Any:
        return self._packed

    def stored(self) -> Any:
        return self._t

    def unpack(self) -> Any:
        if self._own:  # there is no node that it would be the result of
            raise RuntimeError(DETACHED)
        if self._packed is not None:
            return self._packed.unpack(None)
        if self._t._version != self._version:
            raise modified(self._t._v, self._version, self._t._version, origin_of_tensor(self._t))
        return self._t

    def pack(self, pair: Any) -> None:
        self._packed, self._t = made_packed(self._t, pair, None), None


def made_packed(t: Any, pair: Any, own: tuple[int, bool] | None) -> Packed:
    """Pack `t` by a pair of hooks, which see it without its history.

    Args:
      own: which output of the saving node `t` is, and whether that requires grad; None if it
        is not one.
    """
    edge = edge_from(t) if own is None else (own[0] if own[1] else None)
    return Packed(t.detach(), pair, edge)


def make_saved_tensor(*args: Any, **kwargs: Any) -> SavedTensor:
    """Save a tensor, hooks included: `torch._C._autograd._make_saved_tensor`."""
    names = ("tensor", "is_output", "is_inplace_on_view")
    given = dict(zip(names, args, strict=False)) | kwargs
    wrong = not isinstance(given.get("tensor"), Handle) or not isinstance(
        given.get("is_output"), bool
    )
    if wrong or set(given) - set(names) or len(args) > len(names):
        told = ", ".join(repr(a) for a in args)
        named = ", ".join(f"{k}={v!r}" for k, v in kwargs.items())
        raise TypeError(
            f"_make_saved_tensor{_SIGNATURE}(tensor: torch.Tensor, is_output: bool, "
            "is_inplace_on_view: bool = False) -> torch._C._autograd.SavedTensor\n\nInvoked with: "
            + (f"{told}; kwargs: {named}" if told and named else told or f"kwargs: {named}")
        )
    return SavedTensor.at(Loose(given["tensor"], given["is_output"]))
