"""Adagrad, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .._base import checks
from .._base.counted import Counted, counted, rate
from .._base.groups import ParamGroup
from .._base.update import filled


class Adagrad(Counted):
    """Adagrad (Duchi, Hazan and Singer, 2011, "Adaptive Subgradient Methods").

    The gradient is divided by the root of the sum of all its squares. optax's `scale_by_rss` adds
    `eps` below the root, PyTorch beside it, so the update is written out.

    Args:
      params: tensors or groups. They have a state from the beginning, which `share_memory` shares.
      lr: learning rate.
      lr_decay: at step `t` the rate is `lr / (1 + (t - 1) * lr_decay)`.
      weight_decay: L2 penalty, added to the gradient.
      initial_accumulator_value: what the sum of squares begins with.
      eps: added to the denominator.
      foreach, fused: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, or `lr` a tensor of several elements.
      RuntimeError: `fused` with `foreach` or `differentiable`.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.Adagrad([w], lr=0.5, eps=0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item(), opt.state[w]["sum"].item()
    (0.5, 4.0)
    """

    numbers = ("lr", "lr_decay", "eps", "weight_decay")
    choices = ("maximize",)

    def __init__(
        self, params: Any, lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        checks.not_negative("lr_decay value", lr_decay)
        checks.not_negative("weight_decay value", weight_decay)
        checks.not_negative("initial_accumulator_value value", initial_accumulator_value)
        checks.not_negative("epsilon value", eps)
        super().__init__(
            params,
            {
                "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

        checks.which_kernel(fused, foreach, differentiable)
        for group in self.param_groups:
            for p in group["params"]:
                self.state_of(p, group)

    later_entries = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}

    def share_memory(self) -> None:
        """Share the sums with other processes: `share_memory_` of each."""
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["sum"].share_memory_()

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "sum")

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        state, first = super().init_state(p, group), self.defaults["initial_accumulator_value"]
        if p.is_complex():
            first = complex(first, first)
        state["sum"] = filled(state["sum"].shape, state["sum"].dtype, first)
        return state

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        lr = numbers["lr"] / (1 + (counted(state) - 1) * numbers["lr_decay"])
        total = state["sum"] + g * g
        return p - lr.astype(p.dtype) * g / (jnp.sqrt(total) + numbers["eps"]), {"sum": total}

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        lr = rate(group) / (1 + (state["step"].item() - 1) * group["lr_decay"])
        state["sum"].addcmul_(g, g, value=1)
        p.addcdiv_(g, state["sum"].sqrt() + group["eps"], value=-lr)
