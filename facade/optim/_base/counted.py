"""Base of the optimizers that count the steps of each parameter: PyTorch's but SGD."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ..._core.default_dtype import get_default_dtype
from ..._core.dtypes import float32, float64
from ..._core.handle import Handle
from ..._dispatch.conj_neg_bits import view_as_real
from ..._ops.creation.from_data import tensor
from .checks import one_by_one
from .groups import ParamGroup
from .optimizer import Optimizer
from .update import filled

#: Numbers that are given as one of a pair: the pair, and which of it.
_OF_PAIRS = {
    "beta1": ("betas", 0), "beta2": ("betas", 1),
    "eta_minus": ("etas", 0), "eta_plus": ("etas", 1),
    "smallest": ("step_sizes", 0), "largest": ("step_sizes", 1),
}  # fmt: skip


class Counted(Optimizer):
    """An optimizer whose state holds the count of a parameter's steps.

    A subclass gives `moved` and, for `differentiable=True`, `move`: the update of a real parameter
    by its gradient, after the count, the sign of `maximize` and the decay. A complex parameter
    is two real ones.
    """

    #: Entries of a state that are one number, and what they begin with.
    starts = {"step": 0.0}

    later_entries = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }  # fmt: skip

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the parameter's new value and what has changed in its state, in JAX.

        Args:
          numbers: the hyperparameters, those among them that choose what is computed as well.
        """
        raise NotImplementedError("an optimizer with `init_state` needs `moved`, too")

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        """Update a parameter and its state by tensors' own ops, which write."""
        raise NotImplementedError(f"`{type(self).__name__}` cannot be differentiated")

    def number_values(self, group: ParamGroup) -> list[Any]:
        found = []
        for name in self.numbers:
            pair, which = _OF_PAIRS.get(name, (None, 0))
            found.append(group[name] if pair is None else group[pair][which])
        return found

    def writes(self, group: ParamGroup) -> int:
        return 2 if group.get("decoupled_weight_decay") and group["weight_decay"] != 0 else 1

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        wide = "float64" if _count_dtype(group) is float64 else "float32"
        shape, dtype = tuple(p.shape), p._v.dtype
        return {
            name: filled((), wide, self.starts[name]) if name in self.starts
            else filled(shape, dtype)
            for name in self.held_names(group)
        }  # fmt: skip

    def _complete(self, group: ParamGroup) -> None:
        for p in group["params"]:
            state = self.state.get(p)
            for name in self.starts if state else ():
                if not isinstance(state[name], Handle):  # type: ignore[index]
                    state[name] = tensor(float(state[name]), dtype=_count_dtype(group))  # type: ignore[index]

    @classmethod
    def update(
        cls,
        p: Any,
        g: Any,
        state: dict[str, Any],
        numbers: dict[str, Any],
        choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        state = {**state, "step": state["step"] + 1}
        if choices["maximize"]:
            g = -g
        if choices["decays"] and choices.get("decoupled_weight_decay"):
            p = p * (1 - numbers["lr"] * numbers["weight_decay"])
        elif choices["decays"]:
            g = g + numbers["weight_decay"] * p
        numbers = {**numbers, **choices}
        if not jnp.iscomplexobj(p):
            p, changed = cls.moved(p, g, state, numbers)
            return p, {**state, **changed}
        (re, changed), (im, other) = (
            cls.moved(part(p), part(g), cls._each(part, state), numbers)
            for part in (jnp.real, jnp.imag)
        )
        for name in changed.keys() - cls.starts.keys():
            changed[name] = jax.lax.complex(changed[name], other[name])
        return jax.lax.complex(re, im), {**state, **changed}

    @classmethod
    def _each(cls, part: Any, state: dict[str, Any]) -> dict[str, Any]:
        return {name: x if name in cls.starts else part(x) for name, x in state.items()}

    def update_recorded(self, p: Any, group: ParamGroup) -> None:
        one_by_one(group)
        state = self.state_of(p, group)
        g, decay = -p.grad if group["maximize"] else p.grad, group.get("weight_decay", 0)
        step = state["step"]
        step += 1
        if decay != 0 and group.get("decoupled_weight_decay"):
            p.mul_(1 - rate(group) * decay)
        else:
            g = add_decay(g, p, decay)
        if p.is_complex():
            p, g, state = view_as_real(p), view_as_real(g), self._each(view_as_real, state)
        self.move(p, g, state, group)


def add_decay(g: Any, p: Any, decay: Any) -> Any:
    """Add the gradient of the L2 penalty, by which a decay that is a tensor gets one, too."""
    if has_gradient(decay):
        return g.addcmul_(p.clone(), decay)
    return g.add(p, alpha=decay) if decay != 0 else g


def has_gradient(number: Any) -> bool:
    """Tell whether a hyperparameter is a tensor that requires its gradient."""
    return isinstance(number, Handle) and bool(number.requires_grad)  # type: ignore[attr-defined]


def rate(group: ParamGroup) -> Any:
    """Return the learning rate: a number, or a tensor without dims."""
    lr = group["lr"]
    return lr.squeeze() if isinstance(lr, Handle) and lr.dim() else lr  # type: ignore[attr-defined]


def counted(state: dict[str, Any]) -> Any:
    """Return the count that corrects a bias: PyTorch computes that in float64."""
    return state["step"].astype("float64")


def _count_dtype(group: ParamGroup) -> Any:
    """Return a step count's dtype: float32, but float64 where that is the default dtype."""
    return float64 if get_default_dtype() is float64 and not group.get("fused") else float32
