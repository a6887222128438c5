"""Registering the hooks of a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ...._autograd.graph.hook_handle import RemovableHandle
from .old_backward_hooks import warn_of_missing

_BOTH = (
    "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use "
    "only one of them."
)


def add(hooks: OrderedDict[int, Any], hook: Any, extra: Any = None, first: bool = False) -> Any:
    """Add a hook, and return the handle that takes it off.

    Args:
      extra: dictionaries that the handle takes the hook's number off, too.
      first: it comes before those that are there.
    """
    handle = RemovableHandle(hooks, extra_dict=extra)
    hooks[handle.id] = hook
    if first:
        hooks.move_to_end(handle.id, last=False)
    return handle


class Hooks:
    """Registration of a module's hooks."""

    #: Fields that no call reads, or none where another is empty.
    _unwatched = frozenset({
        "_non_persistent_buffers_set", "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
        "_forward_pre_hooks_with_kwargs", "_state_dict_hooks", "_state_dict_pre_hooks",
        "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
    })  # fmt: skip

    _backward_pre_hooks: OrderedDict[int, Any]
    _backward_hooks: OrderedDict[int, Any]
    _is_full_backward_hook: bool | None
    _forward_hooks: OrderedDict[int, Any]
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: OrderedDict[int, Any]
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments.

        Args:
          prepend: before the hooks that are there.
          with_kwargs: call `hook(module, args, kwargs)`, which returns None or both.
        """
        extra = self._forward_pre_hooks_with_kwargs
        handle = add(self._forward_pre_hooks, hook, extra, prepend)
        if with_kwargs:
            extra[handle.id] = True
        return handle  # type: ignore[no-any-return]

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns replaces the output.

        Args:
          prepend: before the hooks that are there.
          with_kwargs: call `hook(module, args, kwargs, output)`.
          always_call: also where the call has raised.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = add(self._forward_hooks, hook, extra, prepend)
        if with_kwargs:
            extra[0][handle.id] = True
        if always_call:
            extra[1][handle.id] = True
        return handle  # type: ignore[no-any-return]

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when gradients reach the outputs.

        What it returns, if not None, is used in their place.
        """
        return add(self._backward_pre_hooks, hook, None, prepend)  # type: ignore[no-any-return]

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` with what the last node of the call has.

        PyTorch's old kind of hook; `register_full_backward_hook` is what is meant.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(_BOTH)
        self._is_full_backward_hook = False
        return add(self._backward_hooks, hook)  # type: ignore[no-any-return]

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of inputs are known.

        What it returns, if not None, replaces `grad_input`.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(_BOTH)
        self._is_full_backward_hook = True
        return add(self._backward_hooks, hook, None, prepend)  # type: ignore[no-any-return]

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        warn_of_missing(inputs, result, grad_fn)
