"""Full backward hooks: identities where a submodule's inputs enter and its outputs leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

import leafax
from leafax.autograd import Function


class BackwardState:
    """One call of a submodule with full backward hooks: they see the gradients of its inputs
    and outputs together, as soon as all are there."""

    def __init__(self, part: Any, hooks: list[Callable[..., Any]]) -> None:
        self.part, self.hooks = part, hooks
        self.outputs: tuple[Any, ...] = ()
        self.entered = False

    def enter(self, value: Any) -> Any:
        """Return the inputs of the call, with a node where they enter."""
        value, self.places, self.n = self._through(_Inputs, value)
        self.entered |= bool(self.places)
        return value

    def leave(self, value: Any) -> Any:
        """Return the call's outputs, with a node where they leave."""
        return self._through(_Outputs, value)[0]

    def _through(self, identity: type[_Identity], value: Any) -> tuple[Any, list[int], int]:
        """Put a node behind the tensors of `value` that require grad; return places and count."""
        flat, treedef = jax.tree.flatten(value, is_leaf=_is_tensor)
        places = [i for i, t in enumerate(flat) if _is_tensor(t) and t.requires_grad]
        if places:
            out = identity.apply(self, *[flat[i] for i in places])
            for i, t in zip(places, out if isinstance(out, tuple) else (out,), strict=True):
                flat[i] = t
        return jax.tree.unflatten(treedef, flat), places, len(flat)

    def call(self, grads: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        full: Any = [None] * self.n
        for i, g in zip(self.places, grads or (), strict=False):
            full[i] = g
        for hook in self.hooks:
            new = hook(self.part, tuple(full), self.outputs)
            if new is not None and grads is not None:
                new = new if isinstance(new, tuple) else (new,)
                if len(new) != len(full):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, got "
                        f"{len(new)}, but expected {len(full)}"
                    )
                full = list(new)
        return tuple(full[i] for i in self.places)


class _Identity(Function):
    """A node that a call's tensors pass unchanged."""

    @staticmethod
    def forward(ctx: Any, state: BackwardState, *xs: Any) -> Any:
        ctx.state = state
        return tuple(x.clone() for x in xs)


class _Inputs(_Identity):
    """The node where a submodule's inputs enter."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *(ctx.state.call(grads) or ()))


class _Outputs(_Identity):
    """The node where a submodule's outputs leave."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.state.outputs = grads
        if not ctx.state.entered:  # its inputs have no gradient
            ctx.state.call(None)
        return (None, *grads)


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)
