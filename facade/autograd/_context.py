"""The context of an `autograd.Function` call: the user's `ctx`, and a node of the graph."""

from __future__ import annotations

import warnings
from typing import Any

from .._autograd.graph.copy_slices import rebase
from .._autograd.graph.edges import edge_from, retain_at
from .._autograd.graph.history import external, set_history
from .._core.handle import Handle
from .._core.trie import LEAF, local
from .._ops.writes.apply_inplace import check_inplace
from .._storage.autograd_roles import tag
from .._storage.enter import enter, was_leaf
from .._storage.write import touch, write
from ._anomaly import parent_now, stack_now
from ._context_backward import ContextInBackward

DIRTY_VIEW = (
    "If your Function modifies inplace an input that is a view of another Tensor, your Function "
    "cannot return more than one Tensor. This is not supported by the current autograd engine. You "
    "should either make sure the input is not a view (using .clone() for example) or make your "
    "Function only return one Tensor (potentially splitting it into two Functions: one doing the "
    "inplace that returns a single Tensor and a second one that does the other operations). You "
    "can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
)
NOT_AN_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
    "mutated should be passed to ctx.mark_dirty()."
)
PURE_VIEW = (
    "Pure view custom Function can only have one input Tensor and one output Tensor. Open an "
    "issue if you need to support more."
)


class FunctionCtx(ContextInBackward):
    """Serve `forward` and `backward` as `ctx`, and the outputs as their `grad_fn`.

    Attributes:
      needs_input_grad: for each argument of forward, whether a gradient for it is needed.
      dirty_tensors, non_differentiable: what forward told the methods below; None once it has
        returned.
    """

    _forward_cls: Any
    needs_input_grad: tuple[bool, ...] | None = None
    dirty_tensors: tuple[Any, ...] | None = None
    non_differentiable: tuple[Any, ...] | None = None

    def __init__(self) -> None:
        super().__init__()
        self._materialize = True
        self._materialize_non_diff_grads = True
        self._is_tensor: tuple[bool, ...] = ()
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._plain_places: set[int] = set()
        self._stack, self._anomaly_parent = stack_now(), parent_now()

    def __repr__(self) -> str:
        return f"<{type(self).__module__}.{self.name()} object at {hex(id(self))}>"

    # ------------------------------------------------------------ what forward calls

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward wrote to; they must be outputs as well."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs need no gradient."""
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Do nothing but warn: memory that tensors share is known."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def set_materialize_grads(self, value: bool) -> None:
        """Set if missing gradients reach backward as zeros, the default, or as None.

        Raises:
          TypeError: for what is no bool.
        """
        if not isinstance(value, bool):
            given = (
                ", ".join(f"!{type(v).__name__}!" for v in value) if type(value) is tuple else ""
            )
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got "
                f"({given}), but expected (bool)"
            )
        self._materialize = value

    materialize_grads = property(None, set_materialize_grads)

    # ------------------------------------------------------------ around forward

    def _begin(self, args: tuple[Any, ...]) -> bool:
        """Note what forward is given; returns whether its outputs require grad."""
        tensors: list[Any] = [a for a in args if isinstance(a, Handle)]
        self.needs_input_grad = tuple(isinstance(a, Handle) and a._tracked for a in args)  # type: ignore[attr-defined]
        self._is_tensor = tuple(isinstance(a, Handle) for a in args)
        records = local.mode.enabled and any(self.needs_input_grad)
        if records:
            self._edges = [edge_from(t) for t in tensors]
            self._inputs = [t._v.resting for t in tensors]
        return records

    def check_marks(self, separate: bool, records: bool) -> None:
        """Look at what forward set or marked, in PyTorch's order.

        Args:
          separate: there is a `setup_context`; without one `saved_for_forward` is not looked at.
          records: there will be a node; without one nothing is saved.

        Raises:
          RuntimeError: for what is no tuple, and marks of what is no tensor.
          TypeError: for what is saved and no tensor.
        """
        if separate:
            self._marked("saved_for_forward")
        for i, t in enumerate(self._marked("to_save")):
            if records and t is not None and not isinstance(t, Handle):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type "
                    f"{type(t).__name__}"
                )
        if not all(isinstance(t, Handle) for t in self._marked("non_differentiable")):
            raise RuntimeError("mark_non_differentiable only accepts variable arguments, but got ")
        if not all(isinstance(t, Handle) for t in self._marked("dirty_tensors")):
            raise RuntimeError("mark_dirty can only accept variables, but argument ")

    def _marked(self, name: str) -> tuple[Any, ...]:
        marked = getattr(self, name)
        if marked is None:
            return ()
        if not isinstance(marked, tuple):
            raise RuntimeError(
                f"autograd internal error: {name} attribute is expected to be a tuple but is "
            )
        return marked

    def refuse_inputs_saved(self, outputs: tuple[Any, ...], tensors: list[Any]) -> None:
        """Raise if an input that is an output is saved by a `setup_context`.

        Unless it was written to, or is cut off as an output.
        """
        saved = (*(self.to_save or ()), *(self.saved_for_forward or ()))
        kept = {id(t) for t in saved if t is not None}
        kept &= {id(t) for t in tensors} - {id(t) for t in self.dirty_tensors or ()}
        kept -= {id(t) for t in self.non_differentiable or () if _tracked(t)}
        if any(id(o) in kept for o in outputs):
            raise RuntimeError(
                "An input that has been returned as-is as output is being saved for backward. This "
                "is not supported if you override setup_context. You should return and save a view "
                "of the input instead, e.g. with x.view_as(x) or setup ctx inside the forward "
                "function itself."
            )

    def _prepare(self, outputs: tuple[Any, ...], tensors: list[Any]) -> list[Any]:
        """Return the outputs, with views in place of untouched inputs."""
        inputs = {id(t) for t in tensors}
        dirty = {id(t) for t in self.dirty_tensors or ()}
        plain = {id(t) for t in self.non_differentiable or ()}
        if not dirty <= {id(o) for o in outputs}:
            for t in self.dirty_tensors or ():  # PyTorch counts first
                touch(t)
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as "
                "output. The inputs that are modified inplace must all be outputs of the Function."
            )
        outs = []
        for o in outputs:
            lost = _tracked(o) and not self._edges
            if isinstance(o, Handle) and id(o) in inputs and (lost or id(o) not in dirty):
                cut = lost or (id(o) in plain and _tracked(o))
                viewed = o.detach() if cut else o.view_as(o)  # type: ignore[attr-defined]
                if id(o) in plain:
                    self.non_differentiable = (*(self.non_differentiable or ()), viewed)
                o = viewed
            outs.append(o)
        return outs

    def _finish(self, outs: list[Any], tensors: list[Any], records: bool) -> list[Any]:
        plain = {id(t) for t in self.non_differentiable or ()}
        dirty = {id(t) for t in self.dirty_tensors or ()}
        pure = getattr(self, "_is_pure_view", False)
        if pure and (len(tensors) != 1 or len(outs) != 1):
            raise RuntimeError(PURE_VIEW)
        for o in outs:
            if isinstance(o, Handle) and o._base_ is not None and id(o) not in dirty:
                o._creation = "" if pure and records else "function"
        if not records:
            self.to_save = None
            for t in self.dirty_tensors or ():
                touch(t)
            return outs
        self._outputs = [o._v.resting if isinstance(o, Handle) else None for o in outs]
        made = 0
        self._plain_places = {k for k, o in enumerate(outs) if id(o) in plain}
        for k, o in enumerate(outs):
            if not isinstance(o, Handle) or id(o) in plain:
                continue
            if o._v.dtype.kind not in "fcV":  # V: bfloat16
                continue
            if id(o) in dirty:
                if any(o is later for later in outs[k + 1 :]):  # its history is that of the last
                    made += 1
                    continue
                marks = sum(o is t for t in self.dirty_tensors or ())
                try:
                    if o._base_ is not None and len(outs) > 1 and not _is_leaf(o):
                        for _ in range(marks):
                            touch(o)
                        raise RuntimeError(DIRTY_VIEW)
                    self._rebase(o, k, next((i for i, x in enumerate(tensors) if x is o), -1))
                    for _ in range(marks - 1):
                        touch(o)
                except RuntimeError:
                    for rest in outs[k + 1 :]:  # PyTorch counts all writes first
                        if id(rest) in dirty:
                            touch(rest)
                    raise
            else:
                set_history(o, self, k)
            made += 1
        if made > 1:
            for o in outs:
                if isinstance(o, Handle) and o._base_ is not None:
                    o._creation = "multi"
        self._views = {k: o._creation for k, o in enumerate(outs) if _is_view(o)}
        self._save(outs)
        return outs

    def _rebase(self, t: Any, k: int, place: int) -> None:
        """Give the input in this place, which was written to, its new history."""
        if place < 0:
            if t._base_ is not None:
                raise RuntimeError(NOT_AN_INPUT)
            warnings.warn(NOT_AN_INPUT, stacklevel=5)
        if _is_leaf(t):
            touch(t)
            raise RuntimeError(
                "a leaf Variable that requires grad has been used in an in-place operation."
            )
        if t._base_ is not None:
            try:
                check_inplace(t, True)
            except RuntimeError:
                touch(t)  # PyTorch counts first
                raise
        t._grad = None  # it was that of what is written over
        if t._base_ is not None:
            rebase(self, t, place)
            return
        trace = local.trace
        value = enter(t, trace)
        value = tag(trace, value, value, value.storage, value.version + 1)
        if t._retains:
            retain_at(t, self, k)
        write(t, external(value, self, k))
        t._node, t._out = self, k


def _tracked(t: Any) -> bool:
    return isinstance(t, Handle) and bool(t._tracked)  # type: ignore[attr-defined]


def _is_leaf(t: Any) -> bool:
    """Tell if `t` requires grad and had no history when it was last asked for it."""
    if t._stale is not None and t._store is not None:
        return bool(t._tracked and was_leaf(t))
    return bool(t._tracked and t._v.role <= LEAF)


def _is_view(o: Any) -> bool:
    return isinstance(o, Handle) and o._base_ is not None  # type: ignore[attr-defined]
