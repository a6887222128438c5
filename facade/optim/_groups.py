"""Parameter groups: how an optimizer is told what it updates, and how its state is saved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from .._dtype import type_string
from .._handle import Handle

ParamGroup = dict[str, Any]


class ParamGroups:
    """The parameters, hyperparameters and state of an optimizer.

    Args:
      params: an iterable of tensors, of `(name, tensor)` pairs, or of dicts that define groups.
      defaults: hyperparameters of groups that do not set their own.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[ParamGroup] = []
        if isinstance(params, Handle):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                f"dicts, but got {type_string(params._v.dtype)}"
            )
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
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of tensors in sets will change between runs. Please use a list instead."
            )
        else:
            param_group["params"] = list(params)
        extracted, names = [], []
        for p in param_group["params"]:
            if isinstance(p, tuple):
                names.append(p[0])
                extracted.append(p[1])
            else:
                extracted.append(p)
        if names:
            param_group["param_names"] = names
        param_group["params"] = extracted
        for p in extracted:
            if not isinstance(p, Handle):
                kind = f"{type(p).__module__}.{type(p).__name__}".removeprefix("builtins.")
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {kind}"
                )
            if not (self.defaults.get("differentiable") or p.is_leaf or p.retains_grad):  # type: ignore[attr-defined]
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        if len({id(p) for p in extracted}) != len(extracted):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will cause an error; see github.com/pytorch/pytorch/issues/40967 for more "
                "information",
                stacklevel=3,
            )
        known = {id(p) for g in self.param_groups for p in g["params"]}
        if any(id(p) in known for p in extracted):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

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

    # ------------------------------------------------------------ saving

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups, in PyTorch's form."""
        number: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for p in group["params"]:
                number.setdefault(id(p), len(number))
            packed["params"] = [number[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {number[id(p)]: dict(s) for p, s in self.state.items() if s}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` of an optimizer with equal groups returned."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of "
                    "optimizer's group"
                )
        by_number: dict[int, Any] = {}
        for mine, theirs in zip(self.param_groups, groups, strict=True):
            by_number.update(zip(theirs["params"], mine["params"], strict=True))
            params = mine["params"]
            mine.clear()
            mine.update(deepcopy({k: v for k, v in theirs.items() if k != "params"}))
            mine["params"] = params
        self.state = defaultdict(dict)
        for number, held in state_dict["state"].items():
            p = by_number[number]
            self.state[p] = {k: _copied(v) for k, v in held.items()}

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            if i:
                lines.append("")
            lines.append(f"Parameter Group {i}")
            lines += [f"    {k}: {group[k]}" for k in sorted(group) if k != "params"]
        return "\n".join([*lines, ")"])


def _copied(x: Any) -> Any:
    return x.detach().clone() if isinstance(x, Handle) else deepcopy(x)
