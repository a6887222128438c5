"""Tensors that a `ctx` saves for backward and for `jvp`."""

from __future__ import annotations

import warnings
from typing import Any
from weakref import ref

from ..._core.dual_levels import copy_tangents
from ..._core.handle import Handle
from ..._core.trie import NOWHERE, local, resting
from ..._rules.error_texts import FREED, short_name
from ..._storage.autograd_roles import alias
from ..._storage.data_writes import has_been_rewritten
from ..._storage.enter import enter
from ..._tracing.infer import UNSAVED
from ..._tracing.inputs import make
from ..graph.history import set_history
from ..graph.python_node import CustomNode
from ..graph.saved_origin import origin_of_tensor
from ..graph.version_checks import modified
from .saved_tensor import AtContext, SavedTensor
from .saved_tensors_hooks import pack_one


class SavesTensors(CustomNode):
    """The part of a context that keeps tensors.

    Attributes:
      to_save, saved_for_forward: what forward told the methods below; None once it has returned.
    """

    _forward_cls: Any
    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None

    def __init__(self) -> None:
        super().__init__()
        self._saved: list[Any] | None = []
        self._accessed = False
        self._in_forward_mode = False

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (or None) for `ctx.saved_tensors`; writes to them are noticed."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors (or None) for `ctx.saved_tensors` in `jvp`."""
        if not all(t is None or isinstance(t, Handle) for t in tensors):
            raise AssertionError(
                "save_for_forward expects all arguments to be tensors; you should save non-tensors "
                "as attributes on ctx."
            )
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`; in `jvp`, those given to `save_for_forward`.

        Raises:
          RuntimeError: once backward freed them, or if one was written to since.
        """
        if self._in_forward_mode or self.saved_for_forward is not None:
            return self.saved_for_forward or ()
        once = self._forward_cls.clear_saved_tensors_on_access
        if once and self._accessed:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True "
                "is set on the autograd.Function. Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        if self.freed or self._saved is None:
            raise RuntimeError(FREED)
        found = tuple(self._unpack(s) for s in self._saved)
        if once:
            self._accessed, self._saved = True, []
        return found

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self.freed or self._saved is None:
            raise RuntimeError(FREED)
        return tuple(SavedTensor.at(AtContext(self, k)) for k in range(len(self._saved)))

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """`saved_tensors` by its old name."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def maybe_clear_saved_tensors(self) -> None:
        """Free what was saved, within a backward that does not keep the graph."""
        if local.autograd.tasks and not local.autograd.tasks[-1].keep_graph:
            self.free()

    def _save(self, outs: list[Any]) -> None:
        place = {id(o): k for k, o in enumerate(outs) if isinstance(o, Handle)}
        saved: list[Any] = []
        given, self.to_save = self.to_save or (), None  # a checkpoint may stop amid them
        for t in given:
            if t is None:
                saved.append(None)
                continue
            if t.is_inference():
                raise RuntimeError(UNSAVED)
            out = place.get(id(t))
            packed = pack_one(t, out)
            if packed is not None:
                packed.node = None
                saved.append(packed)
            elif out is None:
                saved.append(((t, t._version, t), None))
            else:  # its own output: kept without history, which would close a cycle
                vc = t._vc if t._vc is not None else [0]
                t._vc = vc
                saved.append(((snapshot(t), t._version, vc), (out, t._tracked, ref(t))))
        self._saved = saved

    def _unpack(self, saved: Any) -> Any:
        if saved is None:
            return None
        if not isinstance(saved, tuple):
            return saved.unpack(self)
        (t, version, vc), out = saved
        now = vc[0] if out is not None else vc._version
        if now != version:
            where = origin_of_tensor(t) if out is None else _own_origin(self, out)
            raise modified(t._v, version, now, where)
        if out is not None:
            t = rewritten(out[2](), t)
        if out is None or not out[1]:
            return t
        return set_history(copy_tangents(t, snapshot(t)), self, out[0])

    def keep_tangents(self, outs: list[Any]) -> None:
        """Give the outputs that were saved the tangents that `outs` have been given."""
        for saved in self._saved or ():
            if isinstance(saved, tuple) and saved[1] is not None:
                copy_tangents(outs[saved[1][0]], saved[0][0])


def snapshot(t: Any) -> Any:
    """Make a tensor of its own with what `t` holds now, without history."""
    trace = local.trace
    value = enter(t, trace)
    return make(alias(trace, value, resting(value.aval, False, NOWHERE), fresh=True), trace)


def rewritten(t: Any, before: Any) -> Any:
    """Give `before`, what the output `t` held, or what a write through `.data` made of it since."""
    if t is None or not has_been_rewritten(t) or tuple(t._v.shape) != tuple(before._v.shape):
        return before
    return copy_tangents(before, snapshot(t.detach()))


def _own_origin(node: Any, out: Any) -> str:
    return f", which is output {out[0]} of {short_name(node.name())},"
