"""PyTorch's `torch.distributed.checkpoint.state_dict`: state dicts of one process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._core.absent.stand_ins import refuse

_OPTIMIZER = "use `optimizer.state_dict()`"
get_optimizer_state_dict = refuse(
    "distributed.checkpoint.state_dict.get_optimizer_state_dict", _OPTIMIZER
)
set_optimizer_state_dict = refuse(
    "distributed.checkpoint.state_dict.set_optimizer_state_dict", _OPTIMIZER
)


@dataclass
class StateDictOptions:
    """Settings of a state dict."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def get_model_state_dict(model: Any, *, submodules: Any = None, options: Any = None) -> Any:
    """Return the module's state dict; parameters that are frozen are left out if asked to."""
    found = model.state_dict()
    if options is not None and options.ignore_frozen_params:
        frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
        found = {name: value for name, value in found.items() if name not in frozen}
    return found


def set_model_state_dict(model: Any, model_state_dict: Any, *, options: Any = None) -> Any:
    """Load a state dict into the module."""
    strict = options is None or options.strict
    return model.load_state_dict(model_state_dict, strict=strict)
