"""Resilient backpropagation, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from .._base import checks
from .._base.counted import Counted
from .._base.groups import ParamGroup
from .._base.update import filled


class Rprop(Counted):
    """Resilient backpropagation (Riedmiller and Braun, 1993, "A Direct Adaptive Method").

    Each element moves against its gradient's sign by a step of its own, which grows while the sign
    stays and shrinks when it turns; then the element rests for a step. optax's form keeps
    the steps within bounds only where they change, so the update is written out.

    Args:
      params: tensors or groups.
      lr: the steps at the beginning; looked at when a parameter is first updated.
      etas: by what a step shrinks and grows.
      step_sizes: the smallest step and the largest.
      capturable, foreach: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.
      differentiable: record the update for autograd, op by op.

    Raises:
      ValueError: `lr` is negative or a tensor of several elements, or not
        `0 < etas[0] < 1 < etas[1]`.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.Rprop([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item()
    0.5
    """

    numbers = ("lr", "eta_minus", "eta_plus", "smallest", "largest")
    choices = ("maximize",)
    captured = (checks.Captured(), checks.Captured())

    def __init__(
        self, params: Any, lr: float = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        checks.rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            {
                "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
                "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
            },
        )  # fmt: skip

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "prev", "step_size")

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        state, lr = super().init_state(p, group), float(group["lr"])
        first = complex(lr, lr) if p.is_complex() else lr
        state["step_size"] = filled(state["step_size"].shape, state["step_size"].dtype, first)
        return state

    @staticmethod
    def moved(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        same = g * state["prev"]  # NaN is of no sign, to PyTorch
        eta = jnp.where(same < 0, numbers["eta_minus"], 1.0)
        eta = jnp.where(same > 0, numbers["eta_plus"], eta).astype(p.dtype)
        size = jnp.clip(state["step_size"] * eta, numbers["smallest"], numbers["largest"])
        g = jnp.where(same < 0, 0.0, g)
        p = p - jnp.where(g > 0, size, jnp.where(g < 0, -size, 0 * size))
        return p, {"prev": g, "step_size": size}

    def move(self, p: Any, g: Any, state: dict[str, Any], group: ParamGroup) -> None:
        (minus, plus), (smallest, largest) = group["etas"], group["step_sizes"]
        eta = g.mul(state["prev"].clone()).sign()
        for places, factor in ((eta.gt(0), plus), (eta.lt(0), minus), (eta.eq(0), 1)):
            eta[places] = factor
        state["step_size"].mul_(eta).clamp_(smallest, largest)
        g = g.clone()
        g[eta.eq(minus)] = 0
        p.addcmul_(g.sign(), state["step_size"], value=-1)
        state["prev"].copy_(g)
