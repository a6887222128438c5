"""`load_state_dict`: what it copies, what it assigns, and what it complains of."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import Any

from ...._core import grad_modes
from ...._core.handle import Handle
from ...._ops.creation.written_at_once import write_at_once
from ...parameter import Parameter, is_lazy
from .extra_state import _EXTRA_STATE_KEY_SUFFIX, loads_more


class _IncompatibleKeys(
    namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])  # noqa: PYI024
):
    """The keys that a `state_dict` lacks, and those that the module does not have."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


def load_state_dict(
    self: Any, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
) -> Any:
    """Copy parameters and buffers out of a `state_dict` into this module and all below.

    Args:
      state_dict: tensors by dotted path.
      strict: the paths must be those of the module's own `state_dict()`.
      assign: take the tensors themselves instead of copying.

    Returns:
      `missing_keys` and `unexpected_keys`.

    Raises:
      RuntimeError: for shapes that differ, and if `strict` for keys that do.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
    missing: list[str] = []
    unexpected: list[str] = []
    errors: list[str] = []
    metadata = getattr(state_dict, "_metadata", None)
    own: Any = OrderedDict(state_dict)  # hooks change it
    if metadata is not None:
        own._metadata = metadata

    lists = missing, unexpected, errors
    _load_tree(self, own, "", {} if metadata is None else metadata, assign, lists)
    if strict:
        for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
            if keys:
                names = ", ".join(f'"{k}"' for k in keys)
                errors.insert(0, f"{what} key(s) in state_dict: {names}. ")
    if errors:
        raise RuntimeError(
            "Error(s) in loading state_dict for {}:\n\t{}".format(
                self.__class__.__name__, "\n\t".join(errors)
            )
        )
    return _IncompatibleKeys(missing, unexpected)


def _load_tree(
    module: Any, given: Any, prefix: str, metadata: Any, assign: bool, lists: Any
) -> None:
    """Load a module and all below it."""
    local_metadata = metadata.get(prefix[:-1], {})
    if assign:
        local_metadata["assign_to_params_buffers"] = assign
    module._load_from_state_dict(given, prefix, local_metadata, True, *lists)
    for name, child in module._modules.items():
        if child is not None:
            path = prefix + name + "."
            below = {k: v for k, v in given.items() if k.startswith(path)}
            _load_tree(child, below, path, metadata, assign, lists)
    keys = _IncompatibleKeys(*lists[:2])
    for hook in module._load_state_dict_post_hooks.values():
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to "
                "return new values, if incompatible_keys need to be modified, it should be done "
                "inplace."
            )


def load_into(
    self: Any,
    state_dict: Any,
    prefix: str,
    local_metadata: Any,
    strict: bool,
    missing_keys: list[str],
    unexpected_keys: list[str],
    error_msgs: list[str],
) -> None:
    """Load the parameters and buffers of this module alone, out of those below a prefix.

    Args:
      state_dict: tensors by dotted path.
      prefix: of this module's paths, "" or ending in a dot.
      local_metadata: of this module: its `version`, and whether to assign.
      strict: note missing and unexpected keys.
      missing_keys, unexpected_keys, error_msgs: the lists that these are added to.
    """
    for hook in self._load_state_dict_pre_hooks.values():
        hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
    left_out = self._non_persistent_buffers_set
    buffers = {k: v for k, v in self._buffers.items() if k not in left_out}
    members = {k: v for k, v in {**self._parameters, **buffers}.items() if v is not None}
    assign = local_metadata.get("assign_to_params_buffers", False)
    for name, param in members.items():
        key = prefix + name
        if key in state_dict:
            _load(self, name, param, key, state_dict[key], assign, error_msgs)
        elif strict:
            missing_keys.append(key)
    extra_key = prefix + _EXTRA_STATE_KEY_SUFFIX
    if loads_more(self):
        if extra_key in state_dict:
            self.set_extra_state(state_dict[extra_key])
        elif strict:
            missing_keys.append(extra_key)
    elif strict and extra_key in state_dict:
        unexpected_keys.append(extra_key)
    if not strict:
        return
    for key in state_dict:
        if key.startswith(prefix) and key != extra_key:
            first, *rest = key[len(prefix) :].split(".", 1)
            if first not in (self._modules if rest else members):
                unexpected_keys.append(key)


def _load(
    module: Any, name: str, param: Any, key: str, given: Any, assign: bool, errors: list[str]
) -> None:
    """Load one parameter or buffer."""
    if not (isinstance(given, Handle) or hasattr(type(given), "__torch_function__")):
        errors.append(
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like '
            f"object from checkpoint but received {type(given)}"
        )
        return
    if not is_lazy(param):
        # PyTorch's checkpoints from before 0.4 had one element where there is a number now.
        if len(param.shape) == 0 and len(given.shape) == 1 and given.shape[0] == 1:
            given = given[0]
        if given.shape != param.shape:
            errors.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from "
                f"checkpoint, the shape in current model is {param.shape}."
            )
            return
    if not assign and param.is_meta and not given.is_meta:
        warnings.warn(
            f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter "
            "in the current model, which is a no-op. (Did you mean to pass `assign=True` to assign "
            "items in the state dictionary to their corresponding key in the module instead of "
            "copying them in place?)",
            stacklevel=2,
        )
    try:
        with grad_modes.no_grad():
            if assign:
                _assign(module, name, param, given)
            elif is_lazy(param) or is_lazy(given) or not write_at_once(param, given):
                param.copy_(given)
    except Exception as error:
        errors.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are '
            f"{param.size()} and whose dimensions in the checkpoint are {given.size()}, an "
            f"exception occurred : {error.args}."
        )


def _assign(module: Any, name: str, param: Any, given: Any) -> None:
    if isinstance(param, Parameter):
        if isinstance(given, Parameter):
            given.requires_grad_(param.requires_grad)
        else:
            given = Parameter(given, requires_grad=param.requires_grad)
    setattr(module, name, given)
