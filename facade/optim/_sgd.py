"""Stochastic gradient descent, with PyTorch's momentum."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ._checks import not_negative
from ._groups import ParamGroup
from ._optimizer import Optimizer


class SGD(Optimizer):
    """Stochastic gradient descent: optax's `add_decayed_weights`, `trace` and `scale`.

    Args:
      params: tensors or groups.
      lr: learning rate.
      momentum, dampening, nesterov: `buf = momentum * buf + (1 - dampening) * grad`, where the
        first `buf` is the gradient.
      weight_decay: L2 penalty, added to the gradient.
      maximize: ascend.

    >>> import leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.SGD([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item()
    0.0
    """

    numbers = ("lr", "momentum", "dampening", "weight_decay")
    choices = ("nesterov", "maximize")

    def __init__(
        self, params: Any, lr: float = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        not_negative("learning rate", lr)
        not_negative("momentum value", momentum, name="momentum value")
        not_negative("weight_decay value", weight_decay, name="weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            {
                "lr": lr, "momentum": momentum, "dampening": dampening,
                "weight_decay": weight_decay, "nesterov": nesterov, "maximize": maximize,
                "foreach": foreach, "differentiable": differentiable, "fused": fused,
            },
        )  # fmt: skip

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        if group["momentum"] == 0:
            return {}
        state = {"momentum_buffer": jnp.zeros(tuple(p.shape), p._v.dtype)}
        if group["dampening"]:
            state["step"] = jnp.zeros((), "int32")
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

        if choices["maximize"]:
            g = -g
        if choices["decays"]:
            decay = optax.add_decayed_weights(numbers["weight_decay"])
            g, _ = decay.update(g, decay.init(p), p)
        if "step" in state:  # dampened: optax's trace has no such form
            first = state["step"] == 0
            buf = state["momentum_buffer"] * numbers["momentum"] + g * (1 - numbers["dampening"])
            buf = jnp.where(first, g, buf)
            state = {"momentum_buffer": buf, "step": state["step"] + 1}
            g = buf
        elif state:
            trace = optax.trace(numbers["momentum"], choices["nesterov"])
            g, after = trace.update(g, optax.TraceState(state["momentum_buffer"]))
            state = {"momentum_buffer": after.trace}
        return optax.apply_updates(p, -numbers["lr"] * g), state
