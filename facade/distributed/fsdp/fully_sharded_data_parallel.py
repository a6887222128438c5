"""PyTorch's `FullyShardedDataParallel`: a module around one whose parameters are split."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ...nn.modules.module import Module
from ...nn.utils.clip_grad import clip_grad_norm_
from ..device_mesh import DeviceMesh
from ._fully_shard import _check_policies
from ._sharded import Sharded
from .api import BackwardPrefetch as BackwardPrefetch
from .api import CPUOffload as CPUOffload
from .api import FullOptimStateDictConfig as FullOptimStateDictConfig
from .api import FullStateDictConfig as FullStateDictConfig
from .api import LocalOptimStateDictConfig as LocalOptimStateDictConfig
from .api import LocalStateDictConfig as LocalStateDictConfig
from .api import MixedPrecision as MixedPrecision
from .api import ShardedOptimStateDictConfig as ShardedOptimStateDictConfig
from .api import ShardedStateDictConfig as ShardedStateDictConfig
from .api import ShardingStrategy as ShardingStrategy
from .api import StateDictType as StateDictType

__all__ = ["FullyShardedDataParallel"]

_WRAPPED = "_fsdp_wrapped_module"


class FullyShardedDataParallel(Module):
    """Call a module whose parameters are split over devices, see `fully_shard`.

    Names of parameters, and of what a state dict has, are the module's own; a state dict has whole
    tensors, each where it lies.

    Args:
      module: the module.
      sharding_strategy: `NO_SHARD` leaves parameters whole on each device; all others split them.
      cpu_offload, mixed_precision: nothing but the default.
      ignored_modules, ignored_states: modules and parameters that stay where they are.
      device_mesh: the devices, see `fully_shard`.
      process_group, auto_wrap_policy, backward_prefetch, param_init_fn, device_id, use_orig_params,
        sync_module_states, forward_prefetch, limit_all_gathers: not used: XLA gathers within a
        program what it needs.
    """

    def __init__(
        self, module: Module, process_group: Any = None,
        sharding_strategy: ShardingStrategy | None = None, cpu_offload: CPUOffload | None = None,
        auto_wrap_policy: Any = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None,
        ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None,
        sync_module_states: bool = False, forward_prefetch: bool = False,
        limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None, device_mesh: DeviceMesh | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        _check_policies(mixed_precision, cpu_offload is not None and cpu_offload.offload_params)
        ignored = [p for m in ignored_modules or () for p in m.parameters()]
        for x in ignored_states or ():
            ignored += x.parameters() if isinstance(x, Module) else [x]
        setattr(self, _WRAPPED, module)
        self.sharding_strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        split = self.sharding_strategy is not ShardingStrategy.NO_SHARD
        vars(self)["_fsdp"] = Sharded(module, device_mesh, split, None, ignored)

    @property
    def module(self) -> Any:
        """The module within."""
        return self._modules[_WRAPPED]

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._modules[_WRAPPED], name)

    def __getitem__(self, key: Any) -> Any:
        return self.module[key]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module, with its batch split."""
        args, kwargs = vars(self)["_fsdp"].before_call(args, kwargs)
        return self.module(*args, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Name the parameters as the module within does."""
        for name, p in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{_WRAPPED}.", ""), p

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Name the buffers as the module within does."""
        for name, b in super().named_buffers(*args, **kwargs):
            yield name.replace(f"{_WRAPPED}.", ""), b

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state dict of the module within."""
        return self.module.state_dict(*args, **kwargs)

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state dict of the module within."""
        return self.module.load_state_dict(*args, **kwargs)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that their norm, over all devices, is at most `max_norm`."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Average no gradients over processes within a block."""
        state = vars(self)["_fsdp"]
        before, state.syncs = state.syncs, False
        try:
            yield
        finally:
            state.syncs = before

    @staticmethod
    @contextlib.contextmanager
    def summon_full_params(module: Module, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Change nothing within a block: parameters are whole tensors, wherever they lie."""
        yield

    @staticmethod
    @contextlib.contextmanager
    def state_dict_type(module: Module, *args: Any, **kwargs: Any) -> Iterator[None]:
        """Change nothing within a block: state dicts have whole tensors."""
        yield

    @staticmethod
    def set_state_dict_type(module: Module, *args: Any, **kwargs: Any) -> None:
        """Do nothing: state dicts have whole tensors."""

    @staticmethod
    def optim_state_dict(model: Module, optim: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the optimizer's state dict."""
        return optim.state_dict()

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Return a state dict that the optimizer loads: as it is."""
        return optim_state_dict
