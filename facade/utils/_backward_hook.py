"""`BackwardHook`: the backward hooks of one call of a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from .._core import grad_modes
from .._core.handle import Handle
from ..autograd.function import Function

_OUTPUTS_ONLY = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since "
    "no inputs require gradients. See "
    "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
    "#torch.nn.Module.register_full_backward_hook for more details."
)


class BackwardHookFunction(Function):
    """The identity, whose node holds a module's backward hooks."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        """Return the arguments, as views where they require grad."""
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Return the gradients."""
        return args


class BackwardHook:
    """Calls a module's backward hooks with the gradients of its outputs, then of its inputs.

    Args:
      module: what the hooks get first.
      user_hooks: called with the gradients of inputs and outputs once both are known.
      user_pre_hooks: called with the gradients of outputs.
    """

    def __init__(self, module: Any, user_hooks: Sequence[Any], user_pre_hooks: Sequence[Any]):
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.module = module
        self.grad_outputs: Any = None
        self.n_outputs = -1
        self.output_tensors_index: list[int] | None = None
        self.n_inputs = -1
        self.input_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: Any) -> Any:
        """Return the arguments of the module, where tensors pass a node that calls the hooks."""
        made, self.input_tensors_index = _through_node(args, self._hook_inputs)
        self.n_inputs = len(args)
        return made

    def setup_output_hook(self, args: Any) -> Any:
        """Return the results of the module, where tensors pass a node that calls the pre-hooks."""
        alone = not isinstance(args, tuple)
        given = (args,) if alone else args
        made, self.output_tensors_index = _through_node(given, self._hook_outputs)
        self.n_outputs = len(given)
        return made[0] if alone else made

    def _hook_inputs(self, node: Any) -> None:
        def hook(grad_input: Any, _: Any) -> Any:
            if self.grad_outputs is None:
                # A pre-hook of this node has not run: a gradient of an input alone was asked for.
                return None
            index = self.input_tensors_index or []
            grads = _spread(index, grad_input, self.n_inputs)
            for user_hook in self.user_hooks:
                out = user_hook(self.module, grads, self.grad_outputs)
                if out is None:
                    continue
                if len(out) != len(grads):
                    raise RuntimeError(
                        "Backward hook returned an invalid number of grad_input, got "
                        f"{len(out)}, but expected {len(grads)}"
                    )
                grads = out
            self.grad_outputs = None
            return tuple(grads[i] for i in index)

        node.register_hook(hook)

    def _hook_outputs(self, node: Any) -> None:
        def hook(_: Any, grad_output: Any) -> Any:
            index = self.output_tensors_index or []
            self.grad_outputs = _spread(index, grad_output, self.n_outputs)
            for pre_hook in self.user_pre_hooks:
                out = pre_hook(self.module, self.grad_outputs)
                if out is None:
                    continue
                if len(out) != len(self.grad_outputs):
                    raise RuntimeError(
                        "Backward pre hook returned an invalid number of grad_output, got "
                        f"{len(out)}, but expected {len(self.grad_outputs)}"
                    )
                self.grad_outputs = out
            given = self.grad_outputs
            if self.input_tensors_index is None:
                self._call_without_inputs()
            return tuple(given[i] for i in index)

        node.register_hook(hook)

    def _call_without_inputs(self) -> None:
        warnings.warn(_OUTPUTS_ONLY, stacklevel=6)
        none = _spread([], [], self.n_inputs)
        for user_hook in self.user_hooks:
            out = user_hook(self.module, none, self.grad_outputs)
            if out is None or isinstance(out, tuple) and all(x is None for x in out):
                continue
            raise RuntimeError(
                "Backward hook for Modules where no input requires gradient should always return "
                "None or None for all gradients."
            )
        self.grad_outputs = None


def _spread(index: Sequence[int], values: Any, size: int) -> tuple[Any, ...]:
    """`values` at these places of a tuple that is None elsewhere."""
    found: list[Any] = [None] * size
    for i, value in zip(index, values, strict=True):
        found[i] = value
    return tuple(found)


def _through_node(args: Any, hook: Callable[[Any], None]) -> tuple[Any, list[int] | None]:
    """Return the arguments with their tensors passed through one node, and where these are.

    None instead of the places if nothing requires grad, and the arguments as they are.
    """
    index = [i for i, x in enumerate(args) if isinstance(x, Handle)]
    tracked: bool = any(args[i].requires_grad for i in index)
    if not (tracked and grad_modes.is_grad_enabled()):
        return args, None
    passed = BackwardHookFunction.apply(*[args[i] for i in index])
    nodes = [
        t.grad_fn
        for t in passed
        if t.grad_fn is not None and t.grad_fn.name() == "BackwardHookFunctionBackward"
    ]
    if not nodes:
        raise RuntimeError(
            "Error while setting up backward hooks. Please open an issue with a code sample to "
            "reproduce this."
        )
    hook(nodes[0])
    made = list(args)
    for i, t in zip(index, passed, strict=True):
        made[i] = t
    return tuple(made) if type(args) is tuple else type(args)(*made), index


BackwardHookFunction.__module__ = "leafax.nn.modules._functions"
BackwardHook.__module__ = "leafax.utils.hooks"
