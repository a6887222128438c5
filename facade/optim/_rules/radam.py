"""RAdam, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .._base import checks
from .._base.counted import Counted, counted, rate
from .._base.groups import ParamGroup


class RAdam(Counted):
    """Rectified Adam (Liu and others, 2019, "On the Variance of the Adaptive Learning Rate").

    The first steps follow the average gradient; once its square is known well enough, it is
    divided by that. optax's `scale_by_radam` adds `eps` after the bias correction, PyTorch
    before it, as the authors' code does, so the update is written out.

    Args:
      params: tensors or groups.
      lr: learning rate.
      betas: decay of the running averages of the gradient and of its square.
      eps: added to the denominator.
      weight_decay: L2 penalty, added to the gradient.
      decoupled_weight_decay: shrink the parameter instead, as AdamW does.
      foreach, capturable: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, a beta not below 1, or `lr` a tensor of several
        elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.RAdam([w], lr=0.25)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> round(w.item(), 6)
    0.5
    """

    numbers = ("lr", "beta1", "beta2", "eps", "weight_decay")
    choices = ("maximize", "decoupled_weight_decay")

    def __init__(
        self, params: Any, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        checks.of_adam(lr, eps, betas, weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay,
                "maximize": maximize, "foreach": foreach, "capturable": capturable,
                "decoupled_weight_decay": decoupled_weight_decay,
                "differentiable": differentiable,
            },
        )  # fmt: skip

    later_entries = {
        "foreach": None, "maximize": False, "differentiable": False,
        "decoupled_weight_decay": False, "capturable": False,
    }  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "exp_avg", "exp_avg_sq")

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        b1, b2, step = numbers["beta1"], numbers["beta2"], counted(state)
        mean = optax.tree.update_moment(g, state["exp_avg"], b1, 1)
        square = optax.tree.update_moment(g, state["exp_avg_sq"], b2, 2)
        length = _length(b2, step)
        scale = (_rectifier(b2, length) * (1 - b2**step) ** 0.5).astype(p.dtype)
        scale = jnp.where(length > 5.0, scale / (jnp.sqrt(square) + numbers["eps"]), 1.0)
        corrected = mean / (1 - b1**step).astype(p.dtype)
        changed = {"exp_avg": mean, "exp_avg_sq": square}
        return optax.apply_updates(p, -(corrected * numbers["lr"] * scale)), changed

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        (beta1, beta2), step = group["betas"], state["step"].item()
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(g, 1 - beta1)
        square.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        moved = mean / (1 - beta1**step) * rate(group)
        length = _length(beta2, step)
        if length > 5.0:
            size = square.sqrt().add(group["eps"])
            moved = moved * ((1 - beta2**step) ** 0.5 / size) * _rectifier(beta2, length)
        p.add_(moved, alpha=-1.0)


def _length(beta2: Any, step: Any) -> Any:
    """Count the last gradients that the average of squares is as good as."""
    return 2 / (1 - beta2) - 1 - 2 * step * beta2**step / (1 - beta2**step)


def _rectifier(beta2: Any, length: Any) -> Any:
    """Return what rectifies the variance of such an average, if it is of more than 4."""
    most = 2 / (1 - beta2) - 1
    share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length)
    return share**0.5
