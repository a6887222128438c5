"""Hooks of tensors: on their gradients, and after those were accumulated."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .._autograd.graph import edges
from .._autograd.graph.hook_handle import RemovableHandle
from .data_attribute import DataMixin


class HooksMixin(DataMixin):
    """`register_hook` and its kin, and the dictionaries that PyTorch keeps them in."""

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook(grad)` when this tensor's gradient is known; it may return another.

        Returns:
          A handle; `handle.remove()` takes the hook off.
        """
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.is_leaf:
            if self._hooks is None:
                self._hooks, self._eventful = {}, True
            handle = RemovableHandle(self._hooks)
            self._hooks[handle.id] = hook
            return handle
        node, out = edges.gradient_edge(self)
        handle = RemovableHandle(node.tensor_hooks)
        node.tensor_hooks[handle.id] = (out, hook)
        node.mark_hooked()
        return handle

    @property
    def _post_accumulate_grad_hooks(self) -> Any:
        hooks = self._post_accumulate_hooks
        return None if hooks is None else OrderedDict(hooks)

    @_post_accumulate_grad_hooks.setter
    def _post_accumulate_grad_hooks(self, hooks: Any) -> None:
        self._post_accumulate_hooks, self._eventful = hooks, True

    @_post_accumulate_grad_hooks.deleter
    def _post_accumulate_grad_hooks(self) -> None:
        raise RuntimeError("Deletion of _post_accumulate_grad_hooks not allowed!")

    @property
    def _backward_hooks(self) -> Any:
        """Return the hooks by their number; None if there never was one."""
        if self._leaf:
            return None if self._hooks is None else OrderedDict(self._hooks)
        node, out = edges.gradient_edge(self)
        hooks = {k: hook for k, (n, hook) in node.tensor_hooks.items() if n == out}
        return OrderedDict(hooks) or None

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        if self._leaf:
            self._hooks, self._eventful = hooks, True
            return
        node, out = edges.gradient_edge(self)
        node.tensor_hooks.update({k: (out, hook) for k, hook in (hooks or {}).items()})

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> Any:
        """Call `hook(tensor)` after a gradient was accumulated into this leaf."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError(
                "post accumulate grad hooks cannot be registered on non-leaf tensors"
            )
        if self._post_accumulate_hooks is None:
            self._post_accumulate_hooks, self._eventful = {}, True
        handle = RemovableHandle(self._post_accumulate_hooks)
        self._post_accumulate_hooks[handle.id] = hook
        return handle
