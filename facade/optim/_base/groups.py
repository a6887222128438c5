"""Parameter groups: how an optimizer is told what it updates."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from ..._core.handle import Handle
from ..._core.typename import typename
from ..._ops.creation.written_at_once import begin_program
from ..._runtime.placing import followers
from .hooks import Hooked

ParamGroup = dict[str, Any]


class _Required:
    """The default of a hyperparameter that each group must set; PyTorch's `required`."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


class ParamGroups(Hooked):
    """The parameters, hyperparameters and state of an optimizer.

    Args:
      params: an iterable of tensors, of `(name, tensor)` pairs, or of dicts that define groups.
      defaults: hyperparameters of groups that do not set their own.
    """

    state: defaultdict[Any, dict[str, Any]]

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        followers.add(self)
        if isinstance(params, Handle):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {typename(params)}"
            )
        self.state = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: ParamGroup) -> None:
        """Add a group: a dict with `params` and the hyperparameters that differ."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Handle):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        names = [p[0] for p in params if isinstance(p, tuple)]
        param_group["params"] = [p[1] if isinstance(p, tuple) else p for p in params]
        if names:
            if len(names) != len(params):
                raise ValueError(
                    "all optimizer params should be with/without names. Some param names are "
                    "missing"
                )
            param_group["param_names"] = names
        self._check_params(param_group["params"])
        # What was made before is no part of the first step, or that would be compiled apart.
        begin_program(param_group["params"], "an optimizer was made")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    "parameter group didn't specify a value of required optimization parameter "
                    f"{name}"
                )
            param_group.setdefault(name, default)
        self._check_against_others(param_group)
        self.param_groups.append(param_group)

    def _check_params(self, params: list[Any]) -> None:
        for p in params:
            if not isinstance(p, Handle):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {typename(p)}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):  # type: ignore[attr-defined]
                raise ValueError("can't optimize a non-leaf Tensor")

    def _check_against_others(self, new: ParamGroup) -> None:
        mine = {id(p) for p in new["params"]}
        if len(mine) != len(new["params"]):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=4,
            )
        named = "param_names" in new
        for group in self.param_groups:
            if named != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param "
                    f"group {'with' if named else 'without'} names to the optimizer"
                )
        if any(id(p) in mine for group in self.param_groups for p in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none or p._grad is None:
                    p._grad = None
                    continue
                if p._grad.grad_fn is not None:
                    p._grad.detach_()
                else:
                    p._grad.requires_grad_(False)
                p._grad.zero_()

    def trainable(self, group: ParamGroup) -> list[Any]:
        """Return the parameters that a step updates: `is_trained`, without a call for each."""
        return [
            p for p in group["params"]
            if p._grad is not None and (p._v.requires_grad or p._given)
        ]  # fmt: skip

    def drop_state(self, params: Iterable[Any] | None = None) -> None:
        """Forget the state of parameters: they start fresh at their next step.

        A parameter that is frozen keeps its state, for the case that it is thawed again.

        Args:
          params: tensors; by default all that are frozen now.
        """
        chosen = None if params is None else {id(p) for p in params}
        for p in list(self.state):
            if (not p.requires_grad) if chosen is None else id(p) in chosen:
                del self.state[p]

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])
