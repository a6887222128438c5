"""Adafactor with PyTorch's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp

from ._base import checks
from ._base.counted import Counted
from ._base.groups import ParamGroup
from ._base.update import filled


class Adafactor(Counted):
    """Adafactor (Shazeer and Stern, 2018): a second moment that is held as rows and columns.

    Args:
      params: tensors or groups.
      lr: learning rate; the step is relative to the size of a parameter.
      beta2_decay: power of the count by which the average of squares forgets.
      eps: bounds of the second moment and of a parameter's size; None stands for the dtype's
        smallest difference.
      d: bound of the mean square of an update.
      weight_decay: how much the parameter shrinks.
      foreach: choose a kernel of PyTorch's; here there is one.
      maximize: ascend.

    Raises:
      ValueError: a hyperparameter is out of its bounds, or `lr` a tensor of several elements.
      RuntimeError: at the first step, for a complex parameter.

    >>> import leafax
    >>> w = leafax.ones(2, 2, requires_grad=True)
    >>> opt = leafax.optim.Adafactor([w], lr=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w[0, 0].item()
    0.5
    """

    numbers = ("lr", "beta2_decay", "eps2", "d", "weight_decay")
    choices = ("maximize", "eps1")
    later_entries = {"foreach": None}
    bundles = False  # what a state holds depends on its parameter

    def __init__(
        self, params: Any, lr: float = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        checks.one_element("lr", lr)
        checks.at_least(0.0, "Learning rate", lr)
        if not 0.0 >= beta2_decay:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None:
            checks.at_least(0.0, "epsilon1", eps[0])
        checks.at_least(0.0, "epsilon2", eps[1])
        if not 1.0 <= d:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        checks.at_least(0.0, "weight_decay", weight_decay)
        super().__init__(
            params,
            {
                "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d,
                "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            },
        )  # fmt: skip

    def _forget_ops(self) -> None:
        super()._forget_ops()
        self._parts: dict[tuple[int, bool], ParamGroup] = {}

    # A group's matrices and its vectors have states of their own kinds: each is a group here.

    def _part(self, group: ParamGroup, factored: bool) -> ParamGroup:
        part = self._parts.setdefault((id(group), factored), {})
        part.clear()
        part.update(group, factored=factored)
        return part

    def _write_step(self, group: ParamGroup, params: list[Any]) -> None:
        for factored in (True, False):
            some = [p for p in params if (p.dim() > 1) is factored]
            if some:
                super()._write_step(self._part(group, factored), some)

    def held_of(self, params: list[Any], group: ParamGroup) -> list[Sequence[Any]]:
        found: list[Sequence[Any]] = []
        for p in params:
            part = {**group, "factored": p.dim() > 1}
            state = self.state.get(p) or self.state_of(p, part)
            found.append([state[name] for name in self.held_names(part)])
        return found

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        return ("step", "row_var", "col_var") if group["factored"] else ("step", "variance")

    def number_values(self, group: ParamGroup) -> list[Any]:
        return [group["eps"][1] if name == "eps2" else group[name] for name in self.numbers]

    def choice_values(self, group: ParamGroup) -> dict[str, Any]:
        return {"maximize": group["maximize"], "eps1": group["eps"][0]}

    def writes(self, group: ParamGroup) -> int:
        return 2 if group["weight_decay"] != 0 else 1

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state, shape = super().init_state(p, group), tuple(p.shape)
        if group["factored"]:
            state["row_var"] = filled((*shape[:-1], 1), p._v.dtype)
            state["col_var"] = filled((*shape[:-2], 1, shape[-1]), p._v.dtype)
        return state

    @classmethod
    def update(
        cls, p: Any, g: Any, state: dict[str, Any], numbers: dict[str, Any],
        choices: dict[str, Any],
    ) -> tuple[Any, dict[str, Any]]:  # fmt: skip
        step = state["step"] + 1
        count, lr = step.astype("float64"), numbers["lr"]
        eps = choices["eps1"]
        if eps is None:
            eps = float(jnp.finfo(p.dtype).eps)  # type: ignore[no-untyped-call]
        g = -g if choices["maximize"] else g
        fresh = (count ** numbers["beta2_decay"]).astype(p.dtype)
        alpha = jnp.minimum(lr, 1 / jnp.sqrt(count)) * jnp.maximum(numbers["eps2"], _size(p))
        if choices["decays"]:
            p = p * jnp.asarray(1 - lr * numbers["weight_decay"], p.dtype)

        def averaged(name: str, value: Any) -> Any:
            return state[name] + (value - state[name]) * fresh

        if g.ndim > 1:
            row = averaged("row_var", jnp.mean(g * g, -1, keepdims=True))
            col = averaged("col_var", jnp.mean(g * g, -2, keepdims=True))
            estimate = row * col / jnp.maximum(jnp.mean(row, -2, keepdims=True), eps)
            state = {"step": step, "row_var": row, "col_var": col}
        else:
            estimate = averaged("variance", g * g)
            state = {"step": step, "variance": estimate}
        moved = g / jnp.sqrt(jnp.maximum(estimate, eps * eps))
        bound = jnp.maximum(1.0, _size(moved) / numbers["d"])
        return p - (alpha / bound).astype(p.dtype) * moved, state


def _size(x: Any) -> Any:
    """Return the root of the mean square, in float64 as PyTorch's number."""
    return jnp.linalg.norm(x.ravel()).astype("float64") / max(x.size, 1) ** 0.5
