"""`state_dict`, and the hooks of saving and loading."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from ...._autograd.graph.hook_handle import RemovableHandle
from .extra_state import _EXTRA_STATE_KEY_SUFFIX, ExtraState, saves_more
from .hooks import add
from .loading import load_into, load_state_dict
from .old_backward_hooks import _WrappedHook

_POSITIONAL = (
    "Positional args are being deprecated, use kwargs instead. Refer to "
    "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for "
    "details."
)


class State(ExtraState):
    """Methods that save and load the state of a module."""

    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    load_state_dict = load_state_dict
    _load_from_state_dict = load_into

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return add(self._state_dict_hooks, hook)  # type: ignore[no-any-return]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after each `state_dict()`."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return add(self._state_dict_hooks, hook)  # type: ignore[no-any-return]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before each `state_dict()`."""
        return add(self._state_dict_pre_hooks, hook)  # type: ignore[no-any-return]

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        wrapped = _WrappedHook(hook, self if with_module else None)
        return add(self._load_state_dict_pre_hooks, wrapped)  # type: ignore[no-any-return]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook` before this module is loaded, with all that `_load_from_state_dict` gets.

        Its arguments are the module, state_dict, prefix, local_metadata, strict, missing_keys,
        unexpected_keys and error_msgs.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after each `load_state_dict`."""
        return add(self._load_state_dict_post_hooks, hook)  # type: ignore[no-any-return]

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        left_out = self._non_persistent_buffers_set
        for members in (self._parameters, self._buffers):
            for name, t in members.items():
                if t is None or members is self._buffers and name in left_out:
                    continue
                destination[prefix + name] = t if keep_vars else t.detach()
        if saves_more(self):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> Any:
        """Return parameters and persistent buffers by dotted path.

        Args:
          destination: the dict to add them to.
          prefix: what paths begin with.
          keep_vars: the tensors themselves, not detached.
        """
        if args:
            warnings.warn(_POSITIONAL, FutureWarning, stacklevel=2)
            if destination is None:
                destination = args[0]
            if len(args) > 1 and prefix == "":
                prefix = args[1]
            if len(args) > 2 and keep_vars is False:
                keep_vars = args[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()  # type: ignore[attr-defined]
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(
                    destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars
                )
        for hook in self._state_dict_hooks.values():
            out = hook(self, destination, prefix, metadata)
            if out is None:
                continue
            if getattr(hook, "_from_public_api", False):
                _refuse_result()
            destination = out
        return destination


def _refuse_result() -> NoReturn:
    raise RuntimeError("state_dict post-hook must return None")
