"""Adadelta, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

from .._base import checks
from .._base.counted import Counted, rate
from .._base.groups import ParamGroup


class Adadelta(Counted):
    """Adadelta (Zeiler, 2012, "ADADELTA: An Adaptive Learning Rate Method").

    The gradient is divided by the root of the running average of its square, and multiplied by
    that of the updates: optax's `scale_by_adadelta`.

    Args:
      params: tensors or groups.
      lr: learning rate, by which the update is multiplied.
      rho: decay of the running averages.
      eps: added below the roots.
      weight_decay: L2 penalty, added to the gradient.
      foreach, capturable: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, `rho` beyond 1, or `lr` a tensor of several
        elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.Adadelta([w], rho=0.75, eps=1.0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> round(w.item(), 4)
    -0.4142
    """

    numbers = ("lr", "rho", "eps", "weight_decay")
    choices = ("maximize",)
    captured = (checks.Captured(xla=False), checks.Captured(xla=False))

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        checks.not_negative("epsilon value", eps)
        checks.not_negative("weight_decay value", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay,
                "maximize": maximize, "capturable": capturable, "foreach": foreach,
                "differentiable": differentiable,
            },
        )  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "square_avg", "acc_delta")

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        scale = optax.scale_by_adadelta(numbers["rho"], numbers["eps"])
        before = optax.ScaleByAdaDeltaState(state["square_avg"], state["acc_delta"])
        delta, after = scale.update(g, before)
        changed = {"square_avg": after.e_g, "acc_delta": after.e_x}
        return optax.apply_updates(p, -numbers["lr"] * delta), changed

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        rho, eps = group["rho"], group["eps"]
        square, deltas = state["square_avg"], state["acc_delta"]
        square.mul_(rho).addcmul_(g, g, value=1 - rho)
        delta = deltas.add(eps).sqrt_().clone()
        delta.div_(square.add(eps).sqrt_()).mul_(g)
        deltas.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        p.add_(delta, alpha=-rate(group))
