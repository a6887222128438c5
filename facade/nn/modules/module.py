"""`Module`: what layers and models derive from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._autograd.graph.hook_handle import RemovableHandle
from ..._replay.compiled import CompiledFunction
from ...utils.hooks import BackwardHook as BackwardHook
from ..parameter import Buffer as Buffer
from ..parameter import Parameter as Parameter
from ._module.attributes import Attributes
from ._module.calls import Everywhere, HookedCall
from ._module.extra_state import _EXTRA_STATE_KEY_SUFFIX as _EXTRA_STATE_KEY_SUFFIX
from ._module.hooks import Hooks, add
from ._module.loading import _IncompatibleKeys as _IncompatibleKeys
from ._module.moving import Moving
from ._module.old_backward_hooks import _WrappedHook as _WrappedHook
from ._module.printing import Printing
from ._module.printing import _addindent as _addindent
from ._module.registering import Registering
from ._module.state import State

__all__ = [
    "register_module_forward_pre_hook",
    "register_module_forward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_backward_hook",
    "register_module_full_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
    "Module",
]

Hook = Callable[..., Any]

# PyTorch's names for the hooks of all modules: tests and packages set them anew.
_global_buffer_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_parameter_registration_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_backward_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_backward_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_is_full_backward_hook: bool | None = None
_global_forward_pre_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_forward_hooks: OrderedDict[int, Hook] = OrderedDict()
_global_forward_hooks_always_called: OrderedDict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: OrderedDict[int, bool] = OrderedDict()


def _has_any_global_hook() -> Any:
    return (
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


def register_module_buffer_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when any module registers a buffer.

    What it returns, if not None, is registered instead.
    """
    return add(_global_buffer_registration_hooks, hook)  # type: ignore[no-any-return]


def register_module_module_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when any module registers a child.

    What it returns, if not None, is registered instead.
    """
    return add(_global_module_registration_hooks, hook)  # type: ignore[no-any-return]


def register_module_parameter_registration_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, name, param)` when any module registers a parameter.

    What it returns, if not None, is registered instead.
    """
    return add(_global_parameter_registration_hooks, hook)  # type: ignore[no-any-return]


def register_module_forward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, args)` before each call of any module."""
    return add(_global_forward_pre_hooks, hook)  # type: ignore[no-any-return]


def register_module_forward_hook(
    hook: Hook, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after each call of any module.

    Args:
      with_kwargs: it is called with the keyword arguments, too, after `args`.
      always_call: also where the call has raised.
    """
    handle = add(_global_forward_hooks, hook, _global_forward_hooks_always_called)
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle  # type: ignore[no-any-return]


def register_module_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)`, old style: see `register_backward_hook`."""
    return _add_backward(hook, False)


def register_module_full_backward_pre_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_output)` when gradients reach the results of any module."""
    return add(_global_backward_pre_hooks, hook)  # type: ignore[no-any-return]


def register_module_full_backward_hook(hook: Hook) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` when gradients of any module are computed."""
    return _add_backward(hook, True)


def _add_backward(hook: Hook, full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full
    return add(_global_backward_hooks, hook)  # type: ignore[no-any-return]


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Compute the result of a call; what subclasses define."""
    raise NotImplementedError(
        f'Module [{type(self).__name__}] is missing the required "forward" function'
    )


class Module(Attributes, Registering, Hooks, State, Moving, Printing):
    """The base class of layers and models.

    Parameters, buffers and other modules that are assigned to it are its own from then on.

    >>> import leafax
    >>> from leafax import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(leafax.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(leafax.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    >>> [name for name, _ in Scale().named_parameters()]
    ['factor']
    """

    dump_patches: bool = False
    _version: int = 1
    training: bool
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        new = object.__setattr__  # `__setattr__` looks for parameters, children and buffers
        new(self, "training", True)
        new(self, "_parameters", {})
        new(self, "_buffers", {})
        new(self, "_non_persistent_buffers_set", set())
        new(self, "_backward_pre_hooks", OrderedDict())
        new(self, "_backward_hooks", OrderedDict())
        new(self, "_is_full_backward_hook", None)
        for name in _HOOKS:
            new(self, name, OrderedDict())
        new(self, "_modules", {})
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        """Return the full hooks, then the others, those of all modules first."""
        found: tuple[list[Any], list[Any]] = ([], [])
        for is_full, hooks in (
            (_global_is_full_backward_hook, _global_backward_hooks),
            (self._is_full_backward_hook, self._backward_hooks),
        ):
            if is_full is not None:
                found[0 if is_full else 1].extend(hooks.values())
        return found

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _slow_forward(self, *input: Any, **kwargs: Any) -> Any:
        return self.forward(*input, **kwargs)

    def _wrapped_call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_impl(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        if not (
            self._backward_hooks
            or self._backward_pre_hooks
            or self._forward_hooks
            or self._forward_pre_hooks
            or _global_backward_pre_hooks
            or _global_backward_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
        ):
            return self.forward(*args, **kwargs)
        everywhere = Everywhere(
            _global_backward_pre_hooks,
            _global_backward_hooks,
            _global_forward_pre_hooks,
            _global_forward_hooks,
            _global_forward_hooks_always_called,
            _global_forward_hooks_with_kwargs,
        )
        call = HookedCall(self, args, kwargs, everywhere)
        try:
            return call.run()
        except Exception:
            call.run_always_called()
            raise

    __call__: Callable[..., Any] = _wrapped_call_impl

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        fields = self.__dict__
        fields.update(state)
        for name in (*_HOOKS, "_backward_pre_hooks"):
            if name not in fields and name != "_forward_hooks":
                fields[name] = OrderedDict()
        fields.setdefault("_non_persistent_buffers_set", set())
        fields.setdefault("_is_full_backward_hook", None)

    def _run_registration_hooks(self, kind: str, name: str, given: Any) -> Any:
        """Run the global hooks of a kind of member, which may replace what is being registered."""
        for hook in globals()[f"_global_{kind}_registration_hooks"].values():
            out = hook(self, name, given)
            if out is not None:
                given = out
        return given

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the calls of this module, as `torch.compile` compiles those of a function.

        Args:
          args, kwargs: as `torch.compile` takes them, all but the module.
        """
        del args
        fullgraph = bool(kwargs.get("fullgraph", False))
        vars(self)["_compiled_call_impl"] = CompiledFunction(self._call_impl, fullgraph)

    def _replicate_for_data_parallel(self) -> Any:
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


_HOOKS = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
