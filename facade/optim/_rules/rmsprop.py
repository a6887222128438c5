"""RMSprop, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

from .._base import checks
from .._base.counted import Counted, rate
from .._base.groups import ParamGroup


class RMSprop(Counted):
    """RMSprop (Hinton, Lecture 6e of "Neural Networks for Machine Learning", 2012).

    The gradient is divided by `avg + eps`, where `avg` is the root of a running average of its
    square: optax's `scale_by_rms`. That average without the square of the gradient's own average,
    if `centered` (Graves, 2013, "Generating Sequences With Recurrent Neural Networks"): optax's
    `scale_by_stddev`.

    Args:
      params: tensors or groups.
      lr: learning rate.
      alpha: decay of the running averages.
      eps: added to the denominator.
      weight_decay: L2 penalty, added to the gradient.
      momentum: `buf = momentum * buf + grad / avg`, and `buf` is what moves the parameter.
      centered: divide by the deviation of the gradient.
      maximize: ascend.
      capturable, foreach: choose a kernel of PyTorch's; here there is one.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: a hyperparameter is negative, or `lr` a tensor of several elements.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.RMSprop([w], lr=0.5, alpha=0.75, eps=0)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item()
    0.0
    """

    numbers = ("lr", "alpha", "eps", "weight_decay", "momentum")
    choices = ("maximize",)
    captured = (checks.Captured(), checks.Captured())

    def __init__(
        self, params: Any, lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        checks.not_negative("epsilon value", eps)
        checks.not_negative("momentum value", momentum)
        checks.not_negative("weight_decay value", weight_decay)
        checks.not_negative("alpha value", alpha)
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
                "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable,
            },
        )  # fmt: skip

    later_entries = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False,
        "differentiable": False, "capturable": False,
    }  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        names: tuple[str, ...] = ("step", "square_avg")
        if group["momentum"] > 0:
            names += ("momentum_buffer",)
        return (*names, "grad_avg") if group["centered"] else names

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        import optax

        how = {"decay": numbers["alpha"], "eps": numbers["eps"], "eps_in_sqrt": False}
        changed = {}
        if "grad_avg" in state:
            before = optax.ScaleByRStdDevState(state["grad_avg"], state["square_avg"])
            g, after = optax.scale_by_stddev(**how).update(g, before)
            changed["grad_avg"] = after.mu
        else:
            square = optax.ScaleByRmsState(state["square_avg"])
            g, after = optax.scale_by_rms(**how).update(g, square)
        changed["square_avg"] = after.nu
        if "momentum_buffer" in state:
            trace = optax.trace(numbers["momentum"])
            g, kept = trace.update(g, optax.TraceState(state["momentum_buffer"]))
            changed["momentum_buffer"] = kept.trace
        return optax.apply_updates(p, -numbers["lr"] * g), changed

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        alpha, square, lr = group["alpha"], state["square_avg"], rate(group)
        square.mul_(alpha).addcmul_(g, g, value=1 - alpha)
        if group["centered"]:
            mean = state["grad_avg"]
            mean.lerp_(g, 1 - alpha)
            square = square.addcmul(mean, mean, value=-1)
        size = square.sqrt().add(group["eps"])
        if group["momentum"] > 0:
            buf = state["momentum_buffer"]
            buf.mul_(group["momentum"]).addcdiv_(g, size)
            p.add_(buf, alpha=-lr)
        else:
            p.addcdiv_(g, size, value=-lr)
