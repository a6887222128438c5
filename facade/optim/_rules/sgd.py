"""Stochastic gradient descent, with PyTorch's momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ..._ops.creation.from_data import tensor
from ..._tracing.inputs import from_array
from .._base.checks import not_negative, one_element, which_kernel
from .._base.counted import add_decay, has_gradient
from .._base.groups import ParamGroup
from .._base.optimizer import Optimizer
from .._base.update import filled, laid_beside


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
        one_element("lr", lr)
        not_negative("learning rate", lr, nan=True)
        not_negative("momentum value", momentum, nan=True)
        not_negative("weight_decay value", weight_decay, nan=True)
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

        which_kernel(fused, foreach, differentiable)

    later_entries = {
        "nesterov": False, "maximize": False, "foreach": None, "differentiable": False,
        "fused": False,
    }  # fmt: skip

    def _forget_ops(self) -> None:
        super()._forget_ops()
        self._started: dict[Any, Any] = {}

    def held_names(self, group: ParamGroup) -> tuple[str, ...]:
        # Dampening begins with the second step. Which it is PyTorch knows by whether there is a
        # buffer; here that is data, since a step may be undone inside the program.
        if group["momentum"] == 0:
            return ()
        return ("momentum_buffer", "started") if group["dampening"] else ("momentum_buffer",)

    def held_of(self, params: list[Any], group: ParamGroup) -> list[Sequence[Any]]:
        names = self.held_names(group)
        if not names:
            return [[]] * len(params)
        dampened, known = len(names) > 1, self.state
        held: list[Sequence[Any]]
        if not dampened:
            held = [[known[p].get("momentum_buffer")] for p in params]
            for (buffer,) in held:
                if buffer is None:
                    break
            else:
                return held
        held = []
        for p in params:
            buffer = known[p].get("momentum_buffer")  # old state dicts hold None
            fresh = buffer is None
            if fresh:
                with jax.enable_x64(True):
                    buffer = laid_beside(p, from_array(filled(tuple(p.shape), p._v.dtype)))
                known[p]["momentum_buffer"] = buffer
            if dampened and (fresh or p not in self._started):
                self._started[p] = tensor(not fresh)
            held.append([buffer, self._started[p]] if dampened else [buffer])
        return held

    def update_recorded(self, p: Any, group: ParamGroup) -> None:
        g, momentum = -p.grad if group["maximize"] else p.grad, group["momentum"]
        decay, lr = group["weight_decay"], group["lr"]
        g = add_decay(g, p, decay)
        if momentum != 0:
            buf = self.state[p].get("momentum_buffer")
            if buf is None:
                buf = self.state[p]["momentum_buffer"] = g.detach().clone()
            else:
                buf.mul_(momentum).add_(g, alpha=1 - group["dampening"])
            g = g.add(buf, alpha=momentum) if group["nesterov"] else buf
        if has_gradient(lr):
            p.addcmul_(g, lr, value=-1)
        else:
            p.add_(g, alpha=-lr)

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
        if "started" in state:  # dampened: optax's trace has no such form
            buf = state["momentum_buffer"] * numbers["momentum"] + g * (1 - numbers["dampening"])
            buf = jnp.where(state["started"], buf, g)
            state = {"momentum_buffer": buf, "started": jnp.ones((), bool)}
            g = g + buf * numbers["momentum"] if choices["nesterov"] else buf
        elif state:
            trace = optax.trace(numbers["momentum"], choices["nesterov"])
            g, after = trace.update(g, optax.TraceState(state["momentum_buffer"]))
            state = {"momentum_buffer": after.trace}
        return optax.apply_updates(p, -numbers["lr"] * g), state
