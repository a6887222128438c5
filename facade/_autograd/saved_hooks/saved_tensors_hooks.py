"""Hooks on saved tensors: `saved_tensors_hooks`, `save_on_cpu`, `disable_saved_tensors_hooks`.

Inside the block every op that saves something goes through `record_hooked`: it is recorded without
gradients, and its outputs' gradients go to a `HookedNode` that holds what the pack hook
returned, and nothing else of what it packed. A pack hook that looks at values (to write them to
disk) runs the program that far, as every observation does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._core.handle import Handle
from ..._core.locks import set_aside
from ..._core.trie import Mode, local
from ..graph.edges import edge_from
from ..graph.history import set_history

PACK_WROTE = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack "
    "hook cannot be modified by in-place operations as this can lead to unexpected side-effects. "
    "Please open an issue if you need to perform in-place operations on the input to a pack hook."
)


class _Active(threading.local):
    disabled: str | None = None
    for_checkpoints = False  # whether they are disabled, too
    frame: Any = None  # the outermost checkpointed call that is being recorded


_active = _Active()


def _switch() -> None:
    """Make the recorder ask for hooks exactly while a pair of them is in force."""
    mode = local.mode
    local.set_mode(
        Mode.of(mode.enabled, mode.inference, mode.autocast, bool(local.autograd.pack_hooks))
    )


@contextmanager
def unhooked() -> Iterator[None]:
    """Within the block none of the hooks around it are in force: a checkpoint has its own."""
    hooks, local.autograd.pack_hooks = local.autograd.pack_hooks, ()
    _switch()
    try:
        yield
    finally:
        local.autograd.pack_hooks = hooks
        _switch()


class saved_tensors_hooks:
    """Within the block, saved tensors are replaced by what `pack_hook` makes of them.

    Args:
      pack_hook: called with each tensor when it is saved; returns anything.
      unpack_hook: called in backward with what `pack_hook` returned; returns a tensor of the
        same value.

    >>> import leafax
    >>> x = leafax.tensor([2.0], requires_grad=True)
    >>> with leafax.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), leafax.from_numpy):
    ...     y = x.detach() * x
    >>> y.backward()
    >>> x.grad
    tensor([2.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        if _active.disabled is not None:
            raise RuntimeError(_active.disabled)
        if not (callable(self.pack_hook) and callable(self.unpack_hook)):
            raise TypeError(
                "_push_saved_tensors_default_hooks(): incompatible function arguments. The "
                "following argument types are supported:\n    1. (arg0: collections.abc.Callable, "
                "arg1: collections.abc.Callable) -> None\n\nInvoked with: "
                f"{self.pack_hook!r}, {self.unpack_hook!r}"
            )
        local.autograd.pack_hooks += ((self.pack_hook, self.unpack_hook),)
        _switch()

    def __exit__(self, *args: object) -> None:
        if not local.autograd.pack_hooks:
            raise RuntimeError(
                "is_initialized && !tls.stack.empty() INTERNAL ASSERT FAILED: no saved tensor "
                "hooks are in force"
            )
        local.autograd.pack_hooks = local.autograd.pack_hooks[:-1]
        _switch()


class save_on_cpu(saved_tensors_hooks):
    """Within the block, saved tensors wait in host memory until backward needs them."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(t: Any) -> Any:
            if pin_memory:  # a copy of its own, as in PyTorch
                return t.device, t.detach().clone().copy_(t)
            return t.device, t.detach().to("cpu")

        def unpack(packed: Any) -> Any:
            device, t = packed
            return t.to(device)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within the block, `saved_tensors_hooks` and checkpoints raise `error_message`."""
    before = _active.disabled, _active.for_checkpoints
    if local.autograd.pack_hooks:
        raise RuntimeError(error_message)
    _active.disabled, _active.for_checkpoints = error_message, True
    try:
        yield
    finally:
        _active.disabled, _active.for_checkpoints = before


@contextmanager
def disabled_in_transform(error_message: str) -> Iterator[None]:
    """Disable saved-tensor hooks for a function that may call checkpoints."""
    with disable_saved_tensors_hooks(error_message):
        _active.for_checkpoints = False
        yield


def check_checkpoint() -> None:
    """Raise where a checkpoint may not be made, for it is saved-tensor hooks in PyTorch."""
    if _active.disabled is not None and _active.for_checkpoints:
        raise RuntimeError(_active.disabled)


def hooks_are_enabled() -> bool:
    """False within `disable_saved_tensors_hooks`."""
    return _active.disabled is None


class Packed:
    """One saved tensor as a pack hook left it.

    Attributes:
      value: what it returned.
      edge: where the gradient of the unpacked tensor goes, None if it needs none; for a
        node's own output its number, since the node must not hold itself, or a function that
        tells it.
    """

    __slots__ = ("value", "hook", "edge", "node")

    def __init__(self, t: Any, pair: tuple[Any, Any], edge: Any) -> None:
        pack, self.hook = pair
        version = t._version
        with paused(), set_aside():
            self.value = pack(t)
        if t._version != version:
            raise RuntimeError(PACK_WROTE)
        self.edge: Any = edge
        self.node: Any = None

    def unpack(self, node: Any) -> Any:
        """Unpack the saved tensor, with its place in the graph."""
        t = self.hook(self.value)
        if not isinstance(t, Handle):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of "
                f"type {type(t).__name__}"
            )
        edge = self.edge() if callable(self.edge) else self.edge
        edge = (node, edge) if isinstance(edge, int) else edge
        out = t.detach()  # type: ignore[attr-defined]
        return out if edge is None else set_history(out, *edge)


@contextmanager
def saving(frame: Any) -> Iterator[None]:
    """Within the block `frame`, a checkpointed call, keeps what Functions save."""
    before = _active.frame
    if before is None:
        _active.frame = frame
    try:
        yield
    finally:
        _active.frame = before


def pack_one(t: Any, own: int | None) -> Any:
    """Pack a tensor that a Function saves, by hooks or a checkpoint; None to save it itself.

    Args:
      own: which output of the saving node `t` is, None if it is not one.
    """
    if not local.autograd.pack_hooks:
        return None if _active.frame is None else _active.frame.keep(t, own)
    edge = edge_from(t) if own is None else (own if t._tracked else None)
    return Packed(t, local.autograd.pack_hooks[-1], edge)


def pack_argument(a: Any) -> Any:
    """Pack an argument of a checkpointed function by the hooks in force."""
    if not local.autograd.pack_hooks or not isinstance(a, Handle):
        return a
    return Packed(a, local.autograd.pack_hooks[-1], edge_from(a))


@contextmanager
def paused() -> Iterator[None]:
    """Record without gradients within the block, as a pack hook does: it saves nothing so."""
    mode = local.mode
    local.set_mode(Mode.of(False, mode.inference, mode.autocast))
    try:
        yield
    finally:
        local.set_mode(
            Mode.of(mode.enabled, mode.inference, mode.autocast, bool(local.autograd.pack_hooks))
        )


def hooks_now() -> tuple[Any, Any]:
    return local.autograd.pack_hooks[-1]
