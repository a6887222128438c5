"""Adamax, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

from leafax.functional.program.op import TABLE

from ..._ops.calls.functions import function
from .._base import checks
from .._base.counted import Counted, rate
from .._base.groups import ParamGroup

cat = function(TABLE["cat"])


class Adamax(Counted):
    """Adamax (Kingma and Ba, 2014, "Adam", section 7.1), by optax's `scale_by_adamax`.

    The running average of the gradient is divided by the largest gradient of late.

    Args:
      params: tensors or groups.
      lr: learning rate.
      betas: decay of the running average of the gradient, and of its largest size.
      eps: added to the gradient's size.
      weight_decay: L2 penalty, added to the gradient.
      foreach, capturable: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, a beta not below 1, or `lr` a tensor of several
        elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.Adamax([w], lr=0.5, eps=0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item(), opt.state[w]["exp_inf"].item()
    (0.5, 2.0)
    """

    numbers = ("lr", "beta1", "beta2", "eps", "weight_decay")
    choices = ("maximize",)

    def __init__(
        self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        checks.of_adam(lr, eps, betas, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
                "capturable": capturable,
            },
        )  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_inf")

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        scale = optax.scale_by_adamax(numbers["beta1"], numbers["beta2"], numbers["eps"])
        count = state["step"].astype("int32") - 1
        before = optax.ScaleByAdamState(count, state["exp_avg"], state["exp_inf"])
        scaled, after = scale.update(g, before)
        changed = {"exp_avg": after.mu, "exp_inf": after.nu}
        return optax.apply_updates(p, -numbers["lr"] * scaled), changed

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        (beta1, beta2), mean, largest = group["betas"], state["exp_avg"], state["exp_inf"]
        mean.lerp_(g, 1 - beta1)
        # Not by `maximum`, which saves what it compares, and that may not be written then.
        size = g.abs().add_(group["eps"]).unsqueeze_(0)
        largest.copy_(cat([largest.mul_(beta2).unsqueeze(0), size], 0).amax(0))
        correction = 1 - beta1 ** state["step"].item()
        p.addcdiv_(mean, largest, value=-(rate(group) / correction))
