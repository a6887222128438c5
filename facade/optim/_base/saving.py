"""Saving, loading, copying and pickling of an optimizer's state, in PyTorch's form."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from ..._core.dtypes import float32
from ..._core.handle import Handle
from ..._ops.creation.to import put_beside
from ..._runtime.placing import followers, place_beside
from .groups import ParamGroup, ParamGroups


class Saved(ParamGroups):
    """Parameter groups that are saved by the numbers of their parameters."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state by parameter number, and the groups.

        The dict holds the state's own tensors, which later steps write to.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        number: dict[int, int] = {}
        groups, count = [], 0
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            for i, p in enumerate(group["params"], count):
                number.setdefault(id(p), i)
            packed["params"] = [number[id(p)] for p in group["params"]]
            count += len(packed["params"])
            groups.append(packed)
        state = {(number[id(k)] if isinstance(k, Handle) else k): v for k, v in self.state.items()}
        packed = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, packed)
            packed = packed if changed is None else changed
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` of an optimizer with equal groups returned.

        Tensors that have the parameter's dtype already are taken as they are, not copied.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        mine, theirs = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(mine) != len(theirs):
            raise ValueError("loaded state dict has a different number of parameter groups")
        pairs = list(zip(mine, theirs, strict=True))
        if any(len(a["params"]) != len(b["params"]) for a, b in pairs):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        params = {n: p for a, b in pairs for n, p in zip(b["params"], a["params"], strict=True)}
        state: defaultdict[Any, Any] = defaultdict(dict)
        for n, held in state_dict["state"].items():
            if n in params:
                wide = any(
                    n in g["params"] and (g.get("capturable") or g.get("fused"))
                    for g in state_dict["param_groups"]
                )
                state[params[n]] = _fitted(params[n], held, wide)
            else:
                state[n] = held
        for a, b in pairs:
            b["params"] = a["params"]
            if "param_names" in a:
                b.setdefault("param_names", a["param_names"])
        self.__setstate__({"state": state, "param_groups": theirs})
        self.follow({id(p): p for p in state if isinstance(p, Handle)})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def follow(self, moved: Mapping[int, Any]) -> None:
        """Place the state of parameters that were moved, which are given by id, beside them."""
        for p, held in self.state.items():
            if id(p) in moved and isinstance(held, dict):
                for t in held.values():
                    if isinstance(t, Handle):
                        place_beside(p, t)

    #: Entries of groups that older state dicts may lack, with what stands for them.
    later_entries: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_hooks()
        followers.add(self)
        self._forget_ops()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self.later_entries.items():
                group.setdefault(name, value)
            self._complete(group)

    def _forget_ops(self) -> None:
        """Drop what is remembered of earlier steps, which belongs to groups that are gone."""

    def _complete(self, group: ParamGroup) -> None:
        """Bring a loaded group and its state to today's form."""


def _fitted(p: Any, held: Any, wide: bool, name: Any = None) -> Any:
    """Return a piece of state as the parameter needs it: floats in its dtype, but step counts.

    Args:
      wide: make float32 of step counts.
      name: of the entry in the state.
    """
    if isinstance(held, Handle):
        x: Any = put_beside(p, held)
        if name == "step":
            return x.to(dtype=float32) if wide else x
        return x.to(dtype=p.dtype) if p.is_floating_point() else x
    if isinstance(held, dict):
        return {k: _fitted(p, v, wide, k) for k, v in held.items()}
    if isinstance(held, Iterable):
        return type(held)(_fitted(p, v, wide) for v in held)  # type: ignore[call-arg]
    return held
