"""PyTorch's `torch.distributed.checkpoint.state_dict`: state dicts by plain names.

Names are those that a module has without what wraps it. Tensors that are split over devices stay so
unless whole ones are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._core.processes.group import default_group, is_initialized
from ..._core.processes.objects import gather_objects
from ...nn.parallel.distributed import DistributedDataParallel
from ..tensor._dtensor import DTensor

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict",
    "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

_WRAPPERS = ("_fsdp_wrapped_module", "_orig_mod", "_checkpoint_wrapped_module")


@dataclass
class StateDictOptions:
    """Settings of a state dict.

    Attributes:
      full_state_dict: tensors are whole.
      cpu_offload: they are on the CPU; whole ones are in the first process alone then.
      ignore_frozen_params: parameters that require no grad are left out.
      strict: what is loaded has all names, and no others.
      broadcast_from_rank0: the first process's state dict is loaded in all.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(
    model: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """Return a module's state dict.

    Args:
      model: the module, wrapped or not.
      submodules: not used.
      options: settings.
    """
    options = options or StateDictOptions()
    names = _Names(model)
    found = {names.plain(name): value for name, value in model.state_dict().items()}
    if options.ignore_frozen_params:
        for name, p in model.named_parameters():
            if not p.requires_grad:
                found.pop(names.plain(name), None)
    return _given(found, options)


def set_model_state_dict(
    model: Any, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Load a state dict into a module, wherever its tensors lie.

    Returns:
      The names that are missing, and those that are not known.
    """
    options = options or StateDictOptions()
    given = _from_first(model_state_dict, options)
    plain = _Names(model).plain
    names = {plain(name): name for name in model.state_dict()}
    found = {names.get(name, name): value for name, value in given.items()}
    return model.load_state_dict(found, strict=options.strict)


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Return the state of optimizers by the names of the parameters.

    Args:
      model: the module whose parameters they train.
      optimizers: one or several.
      submodules: not used.
      options: settings.
    """
    options = options or StateDictOptions()
    if options.flatten_optimizer_state_dict:
        raise NotImplementedError(
            "leafax has no flat state dicts of optimizers: leave flatten_optimizer_state_dict out"
        )
    names = _Names(model).of_parameters(model)
    state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    for optimizer in _several(optimizers):
        own = optimizer.state_dict()
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        state |= {order[i]: value for i, value in own["state"].items()}
        groups += [{**g, "params": [order[i] for i in g["params"]]} for g in own["param_groups"]]
    return _given({"state": state, "param_groups": groups}, options)


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Load the state of optimizers, as `get_optimizer_state_dict` returns it."""
    given = _from_first(optim_state_dict, options or StateDictOptions())
    names = _Names(model).of_parameters(model)
    groups = iter(given["param_groups"])
    for optimizer in _several(optimizers):
        order = [names[id(p)] for group in optimizer.param_groups for p in group["params"]]
        places = {name: i for i, name in enumerate(order)}
        state = {places[n]: value for n, value in given["state"].items() if n in places}
        own = []
        for group in optimizer.param_groups:
            loaded = next(groups)
            own.append({**loaded, "params": [places[names[id(p)]] for p in group["params"]]})
        optimizer.load_state_dict({"state": state, "param_groups": own})


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the state dicts of a module and of its optimizers."""
    return (
        get_model_state_dict(model, options=options),
        get_optimizer_state_dict(model, optimizers, options=options),
    )


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Load the state dicts of a module and of its optimizers."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _several(optimizers: Any) -> Iterable[Any]:
    return optimizers if isinstance(optimizers, (list, tuple)) else (optimizers,)


class _Names:
    """Names of a module's tensors, and those without what wraps modules.

    Args:
      model: the module.
    """

    def __init__(self, model: Any) -> None:
        self._wrapped = {
            _without_wrappers(f"{path}.module".lstrip("."))
            for path, part in model.named_modules()
            if isinstance(part, DistributedDataParallel)
        }

    def plain(self, name: str) -> str:
        """Return a name without what wraps modules."""
        found: list[str] = []
        path = ""
        for part in _without_wrappers(name).split("."):
            path = f"{path}.{part}".lstrip(".")
            if path not in self._wrapped:
                found.append(part)
        return ".".join(found)

    def of_parameters(self, model: Any) -> dict[int, str]:
        """Return the plain names of parameters by their ids."""
        return {id(p): self.plain(name) for name, p in model.named_parameters()}


def _without_wrappers(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _WRAPPERS)


def _given(found: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return a state dict as options ask for it."""
    if not (options.full_state_dict or options.cpu_offload):
        return found
    whole: dict[str, Any] = _mapped(found, options)
    first = not is_initialized() or default_group().rank() == 0
    return whole if first or not (options.full_state_dict and options.cpu_offload) else {}


def _mapped(x: Any, options: StateDictOptions) -> Any:
    if isinstance(x, dict):
        return {k: _mapped(v, options) for k, v in x.items()}
    if isinstance(x, list):
        return [_mapped(v, options) for v in x]
    if not isinstance(x, Handle):
        return x
    with no_grad():
        t: Any = x.detach()
        if options.full_state_dict and isinstance(t, DTensor):
            t = t.full_tensor()
        return t.cpu() if options.cpu_offload else t


def _from_first(given: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    """Return what is to be loaded: the first process's if that is asked for."""
    if not options.broadcast_from_rank0 or not is_initialized() or default_group().size() == 1:
        return given
    own = given if default_group().rank() == 0 else None
    found: dict[str, Any] = gather_objects(default_group(), own, "set_state_dict")[0]
    return found
