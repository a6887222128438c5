"""Schedules that rise and fall: warm restarts, cycles, one cycle; some move momentum too."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from .._base.optimizer import Optimizer
from .schedule import LRScheduler, checked, for_each_group, set_value


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min`, again and again; each `T_mult` times as long."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0, self.T_i, self.T_mult = T_0, T_0, T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._lrs()
        low, height = self.eta_min, 1 + math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Go to the next epoch, or to any, also between two: `step(epoch + i / batches)`."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        elif epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        with self._during("_get_lr_called_within_step"):
            values = self.get_lr()
        self._set(values)


class MovesMomentum(LRScheduler):
    """Moves momentum (or beta1) against the learning rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: Any, most: Any, last_epoch: int) -> tuple[list[Any], list[Any]]:
        """Set the bounds of each group's momentum; it starts at the upper one."""
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        low = for_each_group("base_momentum", optimizer, base)
        high = for_each_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            for a, b, group in zip(low, high, optimizer.param_groups, strict=True):
                self._set_momentum(group, b)
                group["max_momentum"], group["base_momentum"] = b, a
        return low, high

    def _set_momentum(self, group: dict[str, Any], value: Any) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(MovesMomentum):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps and down again, over and over.

    Args:
      optimizer: whose groups' `lr` it sets.
      base_lr, max_lr: the bounds, or one a group.
      step_size_up, step_size_down: steps up and down; down as up if None.
      mode: how cycles shrink: `"triangular"` not, `"triangular2"` by half each, `"exp_range"` by
        `gamma` each step.
      gamma: for `"exp_range"`.
      scale_fn, scale_mode: an own rule of the cycle's number or of the step's (`"iterations"`).
      cycle_momentum, base_momentum, max_momentum: move momentum (or beta1) the other way.
      last_epoch: the step to resume from.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
        step_size_up: int = 2000, step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle", cycle_momentum: bool = True,
        base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer)
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                set_value(group, "lr", lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma = mode, gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(
                base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is not None:
            return
        self._scale_fn_ref: Callable[[float], float]
        if self.mode == "exp_range":
            self._scale_fn_ref = partial(self._exp_range_scale_fn, self.gamma)
            self.scale_mode = "iterations"
        else:
            triangular = self.mode == "triangular"
            self._scale_fn_ref = (
                self._triangular_scale_fn if triangular else self._triangular2_scale_fn
            )
            self.scale_mode = "cycle"

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / 2.0 ** (x - 1)

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return gamma**x

    def scale_fn(self, x: float) -> float:
        """Return how high the cycle (or step) of this number goes, from 0 to 1."""
        return (self._scale_fn_custom or self._scale_fn_ref)(x)

    def get_lr(self) -> list[Any]:
        self._lrs()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        up = x <= self.step_ratio
        height = x / self.step_ratio if up else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, bounds, strict=True):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [
            low + (high - low) * height * scale
            for low, high in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; an own `scale_fn` only if it is an object."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        fn = state.pop("_scale_fn_custom")
        plain = fn is None or isinstance(fn, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else vars(fn).copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        held = state_dict["_scale_fn_custom"]
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if held is not None:
            vars(self._scale_fn_custom).update(held)
        self._init_scale_fn()
