"""Muon with PyTorch's numbers: updates of matrices whose singular values are all about 1."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from ._base import checks
from ._base.groups import ParamGroup
from ._base.optimizer import Optimizer
from ._base.update import filled


class Muon(Optimizer):
    """Muon (Jordan, 2024), for matrices: momentum made orthogonal by Newton and Schulz's steps.

    Args:
      params: matrices or groups of them; give other parameters to another optimizer.
      lr: learning rate.
      weight_decay: how much the parameter shrinks.
      momentum: decay of the running average of the gradient.
      nesterov: look ahead along the average.
      ns_coefficients: of the polynomial of degree 5 whose steps bring singular values to 1.
      eps: least norm that a gradient is divided by.
      ns_steps: how many such steps.
      adjust_lr_fn: how the rate depends on the shape: "original", which None stands for, or
        "match_rms_adamw".

    Raises:
      ValueError: a hyperparameter is out of its bounds, or a parameter no matrix.
      RuntimeError: at the first step, for a complex parameter.

    >>> import leafax
    >>> w = leafax.eye(2).requires_grad_()
    >>> opt = leafax.optim.Muon([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> bool((w.diagonal() < 1).all())
    True
    """

    numbers = ("lr", "weight_decay", "momentum")
    choices = ("nesterov", "ns_coefficients", "eps", "ns_steps", "adjust_lr_fn")

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7, ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        checks.one_element("lr", lr)
        checks.at_least(0.0, "Learning rate", lr)
        checks.at_least(0.0, "momentum", momentum)
        checks.at_least(0.0, "weight decay", weight_decay)
        if adjust_lr_fn is not None and adjust_lr_fn not in ("original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            {
                "lr": lr, "weight_decay": weight_decay, "momentum": momentum,
                "nesterov": nesterov, "ns_coefficients": ns_coefficients, "eps": eps,
                "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
            },
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                if p.dim() != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter with size: "
                        f"{p.size()}"
                    )

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("momentum_buffer",)

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        return {"momentum_buffer": filled(tuple(p.shape), p._v.dtype)}

    def choice_values(self, group: ParamGroup) -> dict[str, Any]:
        if group["ns_steps"] >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(group["ns_coefficients"]) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        found = super().choice_values(group)
        return {**found, "ns_coefficients": tuple(group["ns_coefficients"])}

    def writes(self, group: ParamGroup) -> int:
        return 2  # the decay, and the update

    @staticmethod
    def update(
        p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any], choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:  # fmt: skip
        lr, momentum = numbers["lr"], jnp.asarray(numbers["momentum"])
        buffer = state["momentum_buffer"]
        buffer = buffer + (1 - momentum).astype(p.dtype) * (g - buffer)
        moved = g + momentum.astype(p.dtype) * (buffer - g) if choices["nesterov"] else buffer
        moved = _orthogonal(moved, choices).astype(p.dtype)
        rate = jnp.asarray(lr * _ratio(p.shape, choices["adjust_lr_fn"]), p.dtype)
        p = p * jnp.asarray(1 - lr * numbers["weight_decay"], p.dtype)
        return p - rate * moved, {"momentum_buffer": buffer}


def _ratio(shape: Any, how: str | None) -> float:
    """Return the factor by which the rate is multiplied for a matrix of a shape."""
    rows, columns = shape
    if how == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


def _orthogonal(g: Any, choices: dict[str, Any]) -> Any:
    """Return a matrix with the singular vectors of `g`, singular values about 1, in bfloat16."""
    half, wide = jnp.bfloat16, jnp.float32
    a, b, c = choices["ns_coefficients"]
    x = g.astype(half)
    tall = g.shape[0] > g.shape[1]
    x = x.T if tall else x
    norm = jnp.sqrt(jnp.sum(jnp.square(x.astype(wide)))).astype(half)
    x = (x.astype(wide) / jnp.maximum(norm, jnp.asarray(choices["eps"], half)).astype(wide)).astype(
        half
    )

    def product(u: Any, v: Any) -> Any:
        return jnp.matmul(u, v, preferred_element_type=wide)

    for _ in range(choices["ns_steps"]):
        gram = product(x, x.T).astype(half)
        mixed = (b * gram.astype(wide) + c * product(gram, gram)).astype(half)
        x = (a * x.astype(wide) + product(mixed, x)).astype(half)
    return x.T if tall else x
