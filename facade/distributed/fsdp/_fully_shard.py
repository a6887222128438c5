"""PyTorch's `fully_shard`: a module whose parameters are split over devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...nn.modules.module import Module
from ..device_mesh import DeviceMesh
from ._sharded import Sharded


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes that a module computes in."""

    param_dtype: Any = None
    reduce_dtype: Any = None
    output_dtype: Any = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Keep parameters where they are."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Keep parameters on the host."""

    pin_memory: bool = True


class UnshardHandle:
    """A handle that `unshard` returns."""

    def wait(self) -> None:
        """Do nothing: XLA gathers parameters where a program needs them."""


class FSDPModule:
    """A module whose parameters are split; XLA gathers them within the program that needs them.

    So there is nothing to fetch early or to give back by hand, and the methods for that do nothing.
    """

    _fsdp: Sharded

    def reshard(self) -> None:
        """Do nothing: parameters stay split."""

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Do nothing: XLA gathers parameters where a program needs them."""
        return UnshardHandle() if async_op else None

    def set_requires_gradient_sync(
        self, requires_gradient_sync: bool, *, recurse: bool = True
    ) -> None:
        """Say whether gradients are averaged over processes after the next passes."""
        self._fsdp.syncs = requires_gradient_sync

    set_requires_all_reduce = set_requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Do nothing: each backward pass ends by itself."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Do nothing: XLA says for how long gathered parameters stay."""

    set_reshard_after_backward = set_reshard_after_forward

    def set_modules_to_forward_prefetch(self, modules: list[Any]) -> None:
        """Do nothing: XLA orders what is gathered."""

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None,
    reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None,
    mp_policy: MixedPrecisionPolicy | None = None, offload_policy: OffloadPolicy | None = None,
    ignored_params: Iterable[Any] | None = None, dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Split a module's parameters over devices, with their gradients and optimizers' state.

    A parameter is split along its first dimension that the devices divide; if there is none it is
    whole on each. Batches are split along their first dimension when the module is called.

    Args:
      module: the module, or a list of modules.
      mesh: its devices; those of this process for None. Of two dimensions the second splits, and
        the first has copies.
      reshard_after_forward: not used: XLA says for how long gathered parameters stay.
      shard_placement_fn: tells of a parameter by which dimension it is split, as `Shard(dim)`.
      mp_policy: nothing but the default; `autocast` says what is computed in other dtypes.
      offload_policy: nothing but the default.
      ignored_params: parameters that stay where they are.
      dp_mesh_dims: not used.

    Returns:
      The module, which is a `FSDPModule` from then on.

    Raises:
      NotImplementedError: a policy asks for something else.
    """
    for part in module if isinstance(module, list) else [module]:
        _check_policies(mp_policy, isinstance(offload_policy, CPUOffloadPolicy))
        _shard_one(part, mesh, shard_placement_fn, ignored_params or ())
    return module


def _check_policies(precision: Any, offload: bool) -> None:
    """Raise where a policy asks for what there is not; silence would train another model."""
    asked = vars(precision) if precision is not None else {}
    if any(asked.get(name) is not None for name in ("param_dtype", "output_dtype")):
        raise NotImplementedError(
            "leafax does not cast parameters that are split: compute in other dtypes by "
            "`torch.autocast`, or convert the module"
        )
    if offload:
        raise NotImplementedError("leafax does not keep parameters that are split on the host")


def _shard_one(
    module: Module, mesh: DeviceMesh | None, dim_of: Any, ignored: Iterable[Any]
) -> None:
    if isinstance(module, FSDPModule):
        raise AssertionError(f"FSDP cannot be applied twice to {module}")
    state = Sharded(module, mesh, True, dim_of, ignored)
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {})
    vars(module)["_fsdp"] = state
    module.register_forward_pre_hook(
        lambda module, args, kwargs: state.before_call(args, kwargs), with_kwargs=True
    )


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Have a method split its batch as a call of the module does; of others nothing is done."""
    if not isinstance(module, FSDPModule):
        return
    state, method = module._fsdp, getattr(module, method_name)

    def called(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = state.before_call(args, kwargs)
        return method(*args, **kwargs)

    vars(module)[method_name] = called
