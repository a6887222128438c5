"""Adam and AdamW, as PyTorch computes them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from . import _checks
from ._groups import ParamGroup
from ._optimizer import Optimizer


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014), by optax's `scale_by_adam`.

    Args:
      params: tensors or groups.
      lr: learning rate.
      betas: decay of the running averages of the gradient and of its square.
      eps: added to the denominator.
      weight_decay: L2 penalty added to the gradient; decoupled from it if `decoupled`.
      amsgrad: divide by the largest second moment so far.
      maximize: ascend.
    """

    numbers = ("lr", "beta1", "beta2", "eps", "weight_decay")
    choices = ("amsgrad", "maximize", "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        _checks.not_negative("learning rate", lr)
        _checks.not_negative("epsilon value", eps)
        _checks.betas(betas)
        _checks.not_negative("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

    def number_values(self, group: ParamGroup) -> list[Any]:
        return [group["lr"], *group["betas"], group["eps"], group["weight_decay"]]

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        shape, dtype = tuple(p.shape), p._v.dtype
        state = {
            "step": jnp.zeros((), "float32"),
            "exp_avg": jnp.zeros(shape, dtype),
            "exp_avg_sq": jnp.zeros(shape, dtype),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = jnp.zeros(shape, dtype)
        return state

    @staticmethod
    def update(
        p: Any,
        g: Any,
        state: dict[str, Any],
        numbers: dict[str, Any],
        choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        lr, decay = numbers["lr"], numbers["weight_decay"]
        if choices["maximize"]:
            g = -g
        if choices["decays"] and choices["decoupled_weight_decay"]:
            p = p * (1 - lr * decay)
        elif choices["decays"]:
            g = g + decay * p
        b1, b2, eps = numbers["beta1"], numbers["beta2"], numbers["eps"]
        adam = optax.scale_by_adam(b1, b2, eps)
        count = state["step"].astype("int32")
        before = optax.ScaleByAdamState(count, state["exp_avg"], state["exp_avg_sq"])
        scaled, after = adam.update(g, before, p)
        new = {"step": state["step"] + 1, "exp_avg": after.mu, "exp_avg_sq": after.nu}
        if choices["amsgrad"]:
            # PyTorch takes the maximum before the bias correction, optax's amsgrad after it.
            step = new["step"].astype("float64")
            largest = jnp.maximum(state["max_exp_avg_sq"], after.nu)
            new["max_exp_avg_sq"] = largest
            mean = after.mu / (1 - b1**step).astype(p.dtype)
            scaled = mean / (jnp.sqrt(largest / (1 - b2**step).astype(p.dtype)) + eps)
        return optax.apply_updates(p, -lr * scaled), new


class AdamW(Adam):
    """Adam with weight decay decoupled from the gradient (Loshchilov and Hutter, 2017)."""

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *,
        maximize: bool = False, foreach: bool | None = None, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip
