"""`make_functional` and its kin, which came before `func.functional_call`: modules as functions."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any

from leafax.functional.program.op import TABLE as _TABLE

from .._ops.calls.functions import function as _function
from .._ops.creation.factories import empty_like
from ..func._functional_call import check_ensemble, functional_call
from ..nn.modules.module import Module
from ..nn.parameter import Parameter

_stack = _function(_TABLE["stack"])


def _stack_detached(states: Iterable[Sequence[Any]]) -> tuple[Any, ...]:
    return tuple(_stack([t.detach() for t in tensors]) for tensors in zip(*states, strict=True))


def _take_tensors_out(model: Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a module's parameters and buffers, and leave such as hold no data in their places."""
    params, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    stand_ins: dict[Any, Any] = {
        t: empty_like(t, device="meta") for t in [*params.values(), *buffers.values()]
    }
    for t in params.values():
        stand_ins[t] = Parameter(stand_ins[t], t.requires_grad)
    for module in model.modules():
        for owned in (module._parameters, module._buffers):
            owned.update((name, stand_ins[t]) for name, t in owned.items() if t is not None)
    return params, buffers


class FunctionalModuleWithBuffers(Module):
    """A module that is called with its parameters and buffers, besides its arguments."""

    def __init__(
        self, stateless_model: Module, param_names: Sequence[str], buffer_names: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(param_names)
        self.buffer_names = tuple(buffer_names)

    def forward(
        self, params: Iterable[Any], buffers: Iterable[Any], *args: Any, **kwargs: Any
    ) -> Any:
        """Call the module with these tensors, which come in the order of their names."""
        names = [*self.param_names, *self.buffer_names]
        tensors = dict(zip(names, [*params, *buffers], strict=True))
        return functional_call(self.stateless_model, tensors, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers that is called with its parameters, besides its arguments."""

    def forward(self, params: Iterable[Any], *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Call the module with these parameters, which come in the order of their names."""
        return super().forward(params, (), *args, **kwargs)


def _parted(kind: Any, model: Module, disable_autograd_tracking: bool) -> tuple[Any, Any, Any]:
    own = copy.deepcopy(model)
    params, buffers = _take_tensors_out(own)
    if disable_autograd_tracking:
        for p in params.values():
            p.requires_grad_(False)
    made = kind(own, tuple(params), tuple(buffers))
    return made, tuple(params.values()), tuple(buffers.values())


def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Any, ...]]:
    """Return a module as a function of its parameters and arguments, and copies of its parameters.

    Args:
      model: a module without buffers.
      disable_autograd_tracking: whether the copies require no gradients.

    Raises:
      RuntimeError: the module has buffers.
    """
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    made, params, _ = _parted(FunctionalModule, model, disable_autograd_tracking)
    return made, params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return a module as a function of its tensors and arguments, and copies of both its tensors.

    Args:
      model: a module.
      disable_autograd_tracking: whether the copies require no gradients.
    """
    return _parted(FunctionalModuleWithBuffers, model, disable_autograd_tracking)


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[FunctionalModuleWithBuffers, tuple[Any, ...], tuple[Any, ...]]:
    """Return one of several modules of a class as a function, and the tensors of all, stacked.

    Raises:
      RuntimeError: for no module, and for different classes or modes.
    """
    check_ensemble(models, "combine_state_for_ensemble")
    made, params, buffers = zip(*[make_functional_with_buffers(m) for m in models], strict=True)
    return made[0], _stack_detached(params), _stack_detached(buffers)
