"""PyTorch's `checkpoint_wrapper`: a module whose activations are computed again for backward."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Any

from ....nn.modules.module import Module
from ....utils.checkpoint import checkpoint

_PREFIX = "_checkpoint_wrapped_module"


class CheckpointImpl(enum.Enum):
    """The two ways of `utils.checkpoint`."""

    REENTRANT = 1
    NO_REENTRANT = 2


class CheckpointWrapper(Module):
    """Call a module through `utils.checkpoint`; its parameters keep their names.

    Args:
      mod: the module.
      checkpoint_impl: the way of `utils.checkpoint`.
      checkpoint_fn: what to call in the place of `utils.checkpoint`.
      options: what else `utils.checkpoint` is given.
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None, **options: Any,
    ) -> None:  # fmt: skip
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._call = checkpoint_fn or checkpoint
        self._options = options
        if checkpoint_fn is None:
            self._options["use_reentrant"] = checkpoint_impl is CheckpointImpl.REENTRANT
        self._register_state_dict_hook(_without_prefix)
        self.register_load_state_dict_pre_hook(_with_prefix)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module[key]  # type: ignore[index]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._call(self._checkpoint_wrapped_module, *args, **self._options, **kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """Yield the parameters by the names that they have in the module alone."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(f"{_PREFIX}.", ""), parameter


def _without_prefix(module: Any, state_dict: Any, prefix: str, *args: Any) -> Any:
    for name in [n for n in state_dict if n.startswith(f"{prefix}{_PREFIX}.")]:
        state_dict[name.replace(f"{_PREFIX}.", "", 1)] = state_dict.pop(name)
    return state_dict


def _with_prefix(module: Any, state_dict: Any, prefix: str, *args: Any) -> None:
    for name in [n for n in state_dict if n.startswith(prefix)]:
        if not name.startswith(f"{prefix}{_PREFIX}."):
            state_dict[f"{prefix}{_PREFIX}.{name[len(prefix) :]}"] = state_dict.pop(name)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """Wrap a module so that its activations are computed again for backward."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[[Module], Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Wrap modules of a model, each where it stands.

    Args:
      model: the model, changed in place.
      checkpoint_wrapper_fn: wraps a module.
      check_fn: tells whether a module is wrapped.
      auto_wrap_policy: tells it in the place of `check_fn`, as FSDP asks.
    """
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if auto_wrap_policy is None:
                chosen = check_fn(child)
            else:
                chosen = auto_wrap_policy(child, recurse=False, nonwrapped_numel=0)
            if chosen and not isinstance(module, CheckpointWrapper):
                setattr(module, name, checkpoint_wrapper_fn(child))
