"""Identities whose gradient is an error, or no gradient at all."""

from __future__ import annotations

from typing import Any

from ..._core.trie import NOWHERE, local, resting
from ..._storage.autograd_roles import alias
from ..._storage.enter import enter
from ..._tracing.inputs import make
from .edges import edge_from
from .history import set_history
from .python_node import CustomNode

_FIRST = 2**64 - 1  # PyTorch gives the error's node this number: nothing that is ready runs before


class _Passing(CustomNode):
    """A node whose outputs are its inputs."""

    def __init__(self) -> None:
        super().__init__()
        self._kinds: list[Any] = []

    def name(self) -> str:
        return f"torch::autograd::{type(self).__name__}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {hex(id(self))}>"

    def output_kinds(self) -> list[Any]:
        return self._kinds

    def pass_through(self, tensors: tuple[Any, ...]) -> tuple[Any, ...]:
        """Get the data of `tensors` (or None), with this node as their history.

        Where nothing is recorded it leads nowhere, as in PyTorch.
        """
        trace = local.trace
        tracked = any(t is not None and t.requires_grad for t in tensors)
        recorded = local.mode.enabled
        outs: list[Any] = []
        for t in tensors:
            if t is None:
                outs.append(None)
                continue
            value = enter(t, trace)
            kind = resting(value.aval, False, NOWHERE, value.inference)
            outs.append(make(alias(trace, value, kind, fresh=True), trace))
        if tracked:
            if recorded:
                self._edges = [None if t is None else edge_from(t) for t in tensors]
            self._kinds = [None if t is None else t._v.resting for t in outs]
            for k, t in enumerate(outs):
                if t is not None:
                    set_history(t, self, k)
        return tuple(outs)


class Error(_Passing):
    """The node of `DelayedError`: its gradient is an exception."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message
        self._set_sequence_nr(_FIRST)

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        raise RuntimeError(self.message)


class UndefinedGradBackward(_Passing):
    """The node of `UndefinedGrad`: it passes no gradients on."""

    def apply_custom(self, grads: list[Any], needed: set[Any]) -> list[Any]:
        return [None] * len(self._edges)


class DelayedError:
    """`DelayedError(message, count)(*tensors)`: the tensors; their backward raises `message`."""

    def __init__(self, message: str | bytes, num_inputs: int) -> None:
        self.message = message.decode() if isinstance(message, bytes) else message
        self.num_inputs = num_inputs

    def __call__(self, *tensors: Any) -> Any:
        outs = Error(self.message).pass_through(tensors)
        return outs[0] if len(outs) == 1 else outs


class UndefinedGrad:
    """`UndefinedGrad()(*tensors)`: the tensors; no gradient goes beyond them."""

    def __call__(self, *tensors: Any) -> Any:
        outs = UndefinedGradBackward().pass_through(tensors)
        return outs[0] if len(outs) == 1 else outs
