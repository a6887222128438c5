"""The one-cycle policy: a rate that goes up and far down, once."""

from __future__ import annotations

import math
from typing import Any, Literal

from .._base.optimizer import Optimizer
from .cycles import MovesMomentum
from .schedule import checked, for_each_group


class OneCycleLR(MovesMomentum):
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
    """Return the one cycle's parts: the last step, between which entries of a group it goes."""
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
