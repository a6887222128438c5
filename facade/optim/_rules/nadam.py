"""NAdam, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .._base import checks
from .._base.counted import Counted, counted, rate
from .._base.groups import ParamGroup


def _momenta(beta1: Any, decay: Any, step: Any) -> tuple[Any, Any]:
    """Return the momentum of a step and that of the next: it grows to `beta1`."""
    mu, after = (beta1 * (1.0 - 0.5 * 0.96 ** (count * decay)) for count in (step, step + 1))
    return mu, after


class NAdam(Counted):
    """Adam with Nesterov's momentum (Dozat, 2016, "Incorporating Nesterov Momentum into Adam").

    The momentum grows as in the paper's section 2.3, and the state holds the product of all
    momenta so far. optax's form has one momentum for all steps, so the update is written out.

    Args:
      params: tensors or groups.
      lr: learning rate.
      betas: decay of the running averages of the gradient and of its square.
      eps: added to the denominator.
      weight_decay: L2 penalty, added to the gradient.
      momentum_decay: how fast the momentum grows.
      decoupled_weight_decay: shrink the parameter instead, as AdamW does.
      foreach, capturable: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, a beta not below 1, or `lr` a tensor of several
        elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.NAdam([w], lr=0.5, betas=(0.0, 0.5), eps=0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item()
    0.5
    """

    numbers = ("lr", "beta1", "beta2", "eps", "weight_decay", "momentum_decay")
    choices = ("maximize", "decoupled_weight_decay")
    starts = {"step": 0.0, "mu_product": 1.0}
    captured = (
        checks.Captured("params, mu_products and state_steps"),
        checks.Captured("params, mu_products, and state_steps", xla=False),
    )

    def __init__(
        self, params: Any, lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        checks.of_adam(lr, eps, betas, weight_decay)
        checks.not_negative("momentum_decay value", momentum_decay)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "momentum_decay": momentum_decay,
                "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
                "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            },
        )  # fmt: skip

    later_entries = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False,
    }  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "mu_product", "exp_avg", "exp_avg_sq")

    def writes(self, group: ParamGroup) -> int:
        return super().writes(group) + 1  # by the gradient, and by its average

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        lr, b1, b2, step = numbers["lr"], numbers["beta1"], numbers["beta2"], counted(state)
        mu, after = _momenta(b1, numbers["momentum_decay"], step)
        # PyTorch keeps the product in float32, and computes the rates from that.
        product = state["mu_product"] * mu.astype(state["mu_product"].dtype)
        kept = product.astype("float64")
        mean = optax.tree.update_moment(g, state["exp_avg"], b1, 1)
        square = optax.tree.update_moment(g, state["exp_avg_sq"], b2, 2)
        size = jnp.sqrt(square / (1 - b2**step).astype(p.dtype)) + numbers["eps"]
        p = p + (-lr * (1.0 - mu) / (1.0 - kept)).astype(p.dtype) * g / size
        p = p + (-lr * after / (1.0 - kept * after)).astype(p.dtype) * mean / size
        return p, {"mu_product": product, "exp_avg": mean, "exp_avg_sq": square}

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        (beta1, beta2), lr, step = group["betas"], rate(group), state["step"].item()
        mu, after = _momenta(beta1, group["momentum_decay"], step)
        product, mean, square = state["mu_product"], state["exp_avg"], state["exp_avg_sq"]
        product *= mu
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        size = square.div(1 - beta2**step).sqrt().add(group["eps"])
        g = g * (-lr * (1.0 - mu) / (1.0 - product))
        mean = mean * (-lr * after / (1.0 - product * after))
        p.addcdiv_(g, size)
        p.addcdiv_(mean, size)
