"""Averaged stochastic gradient descent, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..._core.default_dtype import get_default_dtype
from ..._core.dtypes import float64
from ..._ops.creation.from_data import as_tensor
from .._base import checks
from .._base.counted import Counted, counted, rate
from .._base.groups import ParamGroup
from .._base.update import filled


class ASGD(Counted):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    "Acceleration of stochastic approximation by averaging", in the form of Bottou's `sgd` that
    PyTorch has: `ax` of the state is the average of the parameter since step `t0`.

    Args:
      params: tensors or groups.
      lr: learning rate.
      lambd: the parameter shrinks by it, and after step `t` the rate is
        `lr / (1 + lambd * lr * t) ** alpha`.
      alpha: that power.
      t0: the step from which on the average is taken.
      weight_decay: L2 penalty, added to the gradient.
      foreach, capturable: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: `lr` or `weight_decay` is negative, or `lr` a tensor of several elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.ASGD([w], lr=0.5, lambd=0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item(), opt.state[w]["eta"].item()
    (0.0, 0.5)
    """

    numbers = ("lr", "lambd", "alpha", "t0", "weight_decay")
    choices = ("maximize",)
    starts = {"step": 0.0, "eta": 0.0, "mu": 1.0}
    captured = (
        checks.Captured("params, mus, etas, and state_steps"),
        checks.Captured("params, mus, etas, and state_steps", xla=False),
    )

    def __init__(
        self, params: Any, lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        checks.not_negative("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
                "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
                "capturable": capturable,
            },
        )  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "eta", "mu", "ax")

    def writes(self, group: ParamGroup) -> int:
        return 1 if group["foreach"] else 2  # shrinks, and moves

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        state = super().init_state(p, group)
        state["eta"] = filled((), state["eta"].dtype, float(group["lr"]))
        return state

    def choice_values(self, group: ParamGroup) -> dict[str, Any]:
        return {**super().choice_values(group), "wide": get_default_dtype() is float64}

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        lr, lambd, step = numbers["lr"], numbers["lambd"], counted(state)
        eta, mu = state["eta"].astype("float64"), state["mu"]
        p = p * (1 - lambd * eta).astype(p.dtype) - eta.astype(p.dtype) * g
        # The first average is the parameter: what `ax` holds before may be anything.
        average = state["ax"] + (p - state["ax"]) * mu.astype(p.dtype)
        # PyTorch makes tensors of both, of the default dtype, and copies them to the state, which
        # is in float64 if it was loaded for a parameter of that dtype.
        kept = "float64" if numbers["wide"] else "float32"
        return p, {
            "ax": jnp.where(mu == 1, p, average),
            "eta": (lr / (1 + lambd * lr * step) ** numbers["alpha"]).astype(kept),
            "mu": (1 / jnp.maximum(1, step - numbers["t0"])).astype(kept),
        }

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        lr, lambd, step = rate(group), group["lambd"], state["step"].item()
        eta, mu, average = state["eta"].item(), state["mu"], state["ax"]
        p.mul_(1 - lambd * eta)
        p.add_(g, alpha=-eta)
        if mu.item() == 1:
            average.copy_(p)
        else:
            average.add_(p.sub(average).mul_(mu))
        state["eta"].copy_(as_tensor(lr / (1 + lambd * lr * step) ** group["alpha"]))
        mu.copy_(as_tensor(1 / max(1, step - group["t0"])))
