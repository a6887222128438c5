"""Adam and AdamW, as PyTorch computes them."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ..._core.handle import Handle
from .._base import checks
from .._base.counted import Counted, counted, has_gradient, rate
from .._base.groups import ParamGroup

_NAMES = ("step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq")
_NO_TENSOR = "lr as a Tensor is not supported for capturable=False and foreach=True"


class Adam(Counted):
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
    choices = ("maximize", "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, amsgrad: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        alone = bool(foreach) and not capturable
        if isinstance(lr, Handle) and alone:
            raise ValueError(_NO_TENSOR)
        checks.of_adam(lr, eps, betas, weight_decay)
        betas = checks.of_one_kind(betas, alone)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach,
                "capturable": capturable, "differentiable": differentiable, "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )  # fmt: skip

        checks.which_kernel(fused, foreach, differentiable)

    later_entries = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False,
        "differentiable": False, "decoupled_weight_decay": False, "fused": None,
    }  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return _NAMES if group["amsgrad"] else _NAMES[:3]

    def update_recorded(self, p: Any, group: ParamGroup) -> None:
        checks.one_by_one(group)
        if self.state_of(p, group)["step"].requires_grad:
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        super().update_recorded(p, group)

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        beta1: Any = group["betas"][0]
        beta2: Any = group["betas"][1]
        lr, step, mean, square = rate(group), state["step"], state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        if has_gradient(beta2):
            square.lerp_(g.square(), 1 - beta2)
        else:
            square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        # Powers of tensors save the count, which the next step writes to.
        step1, step2 = (step.clone() if has_gradient(b) else step for b in (beta1, beta2))
        size = -(lr / (1 - beta1**step1))
        correction = (1 - beta2**step2).sqrt()
        if group["amsgrad"]:
            most = state["max_exp_avg_sq"]
            square = most.copy_(most.clone().maximum(square))
        p.addcdiv_(mean.clone(), (square.sqrt() / (correction * size)).add_(group["eps"] / size))

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        b1, b2, eps = numbers["beta1"], numbers["beta2"], numbers["eps"]
        adam, count = optax.scale_by_adam(b1, b2, eps), state["step"].astype("int32") - 1
        before = optax.ScaleByAdamState(count, state["exp_avg"], state["exp_avg_sq"])
        scaled, after = adam.update(g, before, p)
        new = {"exp_avg": after.mu, "exp_avg_sq": after.nu}
        if "max_exp_avg_sq" in state:
            # PyTorch takes the maximum before the bias correction, optax's amsgrad after it.
            step = counted(state)
            largest = jnp.maximum(state["max_exp_avg_sq"], after.nu)
            new["max_exp_avg_sq"] = largest
            mean = after.mu / (1 - b1**step).astype(p.dtype)
            scaled = mean / (jnp.sqrt(largest / (1 - b2**step).astype(p.dtype)) + eps)
        return optax.apply_updates(p, -numbers["lr"] * scaled), new


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

    def _complete(self, group: ParamGroup) -> None:
        super()._complete(group)
        group["decoupled_weight_decay"] = True
