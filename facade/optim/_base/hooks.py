"""Hooks of optimizers: around `step()`, and around saving and loading their state.

`step()` of a class is wrapped when its first instance is made, as PyTorch does it: so an optimizer
that a user writes, with a `step` of its own, has hooks as well, and ends the step's program.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from itertools import chain
from typing import Any

from ..._autograd.graph.hook_handle import RemovableHandle
from ..._core.faults import check_ready_faults
from ..._core.run_log import STEP
from ..._core.trie import local
from ..._runtime.cut import abandon, cut
from ..._tracing.undo import take_back

Hooks = OrderedDict[int, Callable[..., Any]]

_BEFORE_ALL: Hooks = OrderedDict()
_AFTER_ALL: Hooks = OrderedDict()
_KINDS = ("step", "state_dict", "load_state_dict")


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of any optimizer.

    Args:
      hook: may return other `(args, kwargs)` for the step, or None.

    Returns:
      A handle whose `remove()` takes the hook off.
    """
    return _added(_BEFORE_ALL, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of any optimizer.

    Returns:
      A handle whose `remove()` takes the hook off.
    """
    return _added(_AFTER_ALL, hook)


def _whole(func: Callable[..., Any], optimizer: Any) -> Any:
    """Record a step; one that is interrupted leaves parameters and states as they were."""
    trace = local.trace
    state, inputs, notes = trace.state, len(trace.arrays), len(trace.memory.undo)
    try:
        return func(optimizer)
    except Exception:
        raise
    except BaseException as interrupt:
        if local.trace is trace:
            take_back(trace, trace.arrays, notes)
            trace.state = state
            del trace.arrays[inputs:]
            abandon(trace, interrupt)
        raise


class Hooked:
    """Holder of an optimizer's hooks, with the methods that register them."""

    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    #: A tensor that is not 0 if the step must have no effect; `GradScaler` sets it.
    found_inf: Any = None
    step: Any

    def _make_hooks(self) -> None:
        """Make room for hooks, where there is none yet, and let `step` call them."""
        for kind in _KINDS:
            for when in ("pre", "post"):
                vars(self).setdefault(f"_optimizer_{kind}_{when}_hooks", OrderedDict())
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        cls: Any = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = self.profile_hook_step(cls.step)
            cls.step.hooked = True

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a `step` method: it calls the hooks, and then runs the program."""
        undoes_itself = getattr(func, "undoes_itself", False)

        @functools.wraps(func)
        def step(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            if _BEFORE_ALL or self._optimizer_step_pre_hooks:
                args, kwargs = self._before(func, args, kwargs)
            # A `step` of the user's knows nothing of `found_inf`, so it must be observed.
            if undoes_itself and len(args) == 1 and not kwargs:
                out = _whole(func, self)
            elif self.found_inf is None or undoes_itself or not self.found_inf.item():
                out = func(*args, **kwargs)
            else:
                out = None
            if _AFTER_ALL or self._optimizer_step_post_hooks:
                for hook in chain(self._optimizer_step_post_hooks.values(), _AFTER_ALL.values()):
                    hook(self, args, kwargs)
            check_ready_faults()
            if local.cuts.capture is not None:  # the whole call is one program
                local.cuts.capture.stepped = True
            elif self.found_inf is None:  # else the scaler's update belongs to the step
                cut(STEP)
            return out

        return step

    def _before(self, func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Call the hooks before a step; return the arguments that they leave it."""
        for hook in chain(_BEFORE_ALL.values(), self._optimizer_step_pre_hooks.values()):
            changed = hook(self, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    f"{_own(func, type(self))} must return None or a tuple of (new_args, "
                    f"new_kwargs), but got {changed}."
                )
            args, kwargs = changed
        return args, kwargs

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step.

        Args:
          hook: may return other `(args, kwargs)` for the step, or None.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step, as part of its program.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict()`.

        Args:
          prepend: before the hooks that are there already.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict()`.

        Args:
          hook: may change the dict, or return another.
          prepend: before the hooks that are there already.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict()`.

        Args:
          hook: may change the dict, a shallow copy of the caller's, or return another.
          prepend: before the hooks that are there already.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict()`.

        Args:
          prepend: before the hooks that are there already.

        Returns:
          A handle whose `remove()` takes the hook off.
        """
        return _added(self._optimizer_load_state_dict_post_hooks, hook, prepend)


def _own(func: Any, cls: type) -> Any:
    """Return the function under the name that PyTorch has: `<function SGD.step at 0x...>`."""
    if func.__qualname__ != "Optimizer.step":
        return func
    return f"<function {cls.__name__}.step at {id(func):#x}>"


def _added(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle
