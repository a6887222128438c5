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


class _WithMomentum(LRScheduler):
    """Moves momentum (or beta1) against the learning rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: Any, most: Any, last_epoch: int) -> tuple[list[Any], list[Any]]:
        """The bounds of each group's momentum; it starts at the upper one."""
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


class CyclicLR(_WithMomentum):
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
        """How high the cycle (or step) of this number goes, from 0 to 1."""
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


class OneCycleLR(_WithMomentum):
    """Up to `max_lr`, then far down, once: one step a batch (Smith and Topin, 2017).

    Args:
      optimizer: whose groups' `lr` it sets.
      max_lr: the highest rate, or one a group.
      total_steps: or else `epochs` times `steps_per_epoch`.
      pct_start: part of the steps that the rise takes.
      anneal_strategy: `"cos"` or `"linear"`.
      cycle_momentum, base_momentum, max_momentum: move momentum (or beta1) the other way.
      div_factor, final_div_factor: `max_lr / div_factor` is the first rate, the last is that over
        `final_div_factor`.
      three_phase: down to the first rate as slowly as up, then to the last.
      last_epoch: the step to resume from.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos", cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0, final_div_factor: float = 1e4, three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.optimizer = checked(optimizer)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        max_lrs = for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups, strict=True):
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal_func(self, start: Any, end: Any, part: float) -> Any:
        if not hasattr(self, "_anneal_func_type"):
            return self.anneal_func(start, end, part)  # type: ignore[attr-defined]  # of an old state dict
        linear = self._anneal_func_type == "linear"
        return (self._annealing_linear if linear else self._annealing_cos)(start, end, part)

    @staticmethod
    def _annealing_cos(start: Any, end: Any, pct: float) -> Any:
        """From `start` to `end`, as half a cosine, as `pct` goes from 0 to 1."""
        return end + (start - end) / 2.0 * (math.cos(math.pi * pct) + 1)

    @staticmethod
    def _annealing_linear(start: Any, end: Any, pct: float) -> Any:
        """From `start` to `end`, evenly, as `pct` goes from 0 to 1."""
        return (end - start) * pct + start

    def get_lr(self) -> list[Any]:
        self._lrs()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            if step <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            start = self._schedule_phases[-2]["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(self._anneal_func(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                a, b = group[phase["start_momentum"]], group[phase["end_momentum"]]
                self._set_momentum(group, self._anneal_func(a, b, part))
        return lrs


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(total: int, part: float, three: bool) -> list[dict[str, Any]]:
    """The parts of the one cycle: the last step, and between which entries of a group it goes."""
    down, up = ("max_momentum", "base_momentum"), ("base_momentum", "max_momentum")
    rise = (float(part * total) - 1, ("initial_lr", "max_lr"), down)
    if three:
        stay = ("max_momentum", "max_momentum")
        rest = [
            (float(2 * part * total) - 2, ("max_lr", "initial_lr"), up),
            (total - 1, ("initial_lr", "min_lr"), stay),
        ]
    else:
        rest = [(total - 1, ("max_lr", "min_lr"), up)]
    names = ("start_lr", "end_lr", "start_momentum", "end_momentum")
    return [
        {"end_step": end, **dict(zip(names, (*lr, *momentum), strict=True))}
        for end, lr, momentum in (rise, *rest)
    ]
