"""Calls of modules that have hooks."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from ...._core.handle import Handle
from ....utils._backward_hook import BackwardHook
from .old_backward_hooks import register_old

_SILENCED = (
    "{}module forward hook with ``always_call=True`` raised an exception that was silenced as "
    "another error was raised in forward: {}"
)


class Everywhere(NamedTuple):
    """The hooks of all modules, by number."""

    backward_pre: dict[int, Any]
    backward: dict[int, Any]
    pre: dict[int, Any]
    forward: dict[int, Any]
    always_called: dict[int, bool]
    with_kwargs: dict[int, bool]


class HookedCall:
    """One call of a module with hooks.

    Args:
      module: it, called with `args` and `kwargs`.
      everywhere: the hooks of all modules.
    """

    def __init__(self, module: Any, args: Any, kwargs: Any, everywhere: Everywhere) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        self.everywhere = everywhere
        self.result: Any = None
        self.called: set[int] = set()  # hooks with `always_call` that ran

    def run(self) -> Any:
        """Return the result of the call."""
        module, everywhere = self.module, self.everywhere
        pre: list[Any] = []
        full: list[Any] = []
        old: list[Any] = []
        if module._backward_pre_hooks or everywhere.backward_pre:
            pre = module._get_backward_pre_hooks()
        if module._backward_hooks or everywhere.backward:
            full, old = module._get_backward_hooks()
        self.run_pre_hooks()
        backward = BackwardHook(module, full, pre) if full or pre else None
        if backward is not None:
            self.args = backward.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self.run_hooks()
        if backward is not None:
            if not isinstance(self.result, (Handle, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple "
                    f"of Tensors but received {type(self.result)}",
                    stacklevel=5,
                )
            self.result = backward.setup_output_hook(self.result)
        if old:
            grad_fn = _first_tensor(self.result).grad_fn
            if grad_fn is not None:
                register_old(grad_fn, old, module)
                module._maybe_warn_non_full_backward_hook(self.args, self.result, grad_fn)
        return self.result

    def run_pre_hooks(self) -> None:
        """Run the hooks before the call, which may change its arguments."""
        module, everywhere = self.module, self.everywhere
        with_kwargs = module._forward_pre_hooks_with_kwargs
        for number, hook in (
            *everywhere.pre.items(),
            *module._forward_pre_hooks.items(),
        ):
            if number in with_kwargs:
                out = hook(module, self.args, self.kwargs)
                if out is None:
                    continue
                if not (isinstance(out, tuple) and len(out) == 2):
                    raise RuntimeError(
                        "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                        f"but got {out}."
                    )
                self.args, self.kwargs = out
            else:
                out = hook(module, self.args)
                if out is not None:
                    self.args = out if isinstance(out, tuple) else (out,)

    def run_hooks(self) -> None:
        """Run the hooks after the call, which may change its result."""
        module, everywhere = self.module, self.everywhere
        for number, hook in (*everywhere.forward.items(), *module._forward_hooks.items()):
            if number in module._forward_hooks_always_called or number in everywhere.always_called:
                self.called.add(number)
            self.call(number, hook)

    def call(self, number: int, hook: Any) -> None:
        """Call a hook with the result, and take what it returns."""
        module, everywhere = self.module, self.everywhere
        if number in module._forward_hooks_with_kwargs or number in everywhere.with_kwargs:
            out = hook(module, self.args, self.kwargs, self.result)
        else:
            out = hook(module, self.args, self.result)
        if out is not None:
            self.result = out

    def run_always_called(self) -> None:
        """Run what is to run where the call has raised, unless it did."""
        module, everywhere = self.module, self.everywhere
        for whose, hooks, always in (
            ("global ", everywhere.forward, everywhere.always_called),
            ("", module._forward_hooks, module._forward_hooks_always_called),
        ):
            for number, hook in hooks.items():
                if number not in always or number in self.called:
                    continue
                try:
                    self.call(number, hook)
                except Exception as error:
                    warnings.warn(_SILENCED.format(whose, error), stacklevel=4)


def _first_tensor(result: Any) -> Any:
    while not isinstance(result, Handle):
        if isinstance(result, dict):
            result = next(v for v in result.values() if isinstance(v, Handle))
        else:
            result = result[0]
    return result
