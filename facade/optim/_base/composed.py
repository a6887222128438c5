"""Schedulers made of others, and the one that watches a metric."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat

from .._schedules.schedule import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    checked,
    set_value,
    values_of,
)
from .optimizer import Optimizer


class _Several(LRScheduler):
    """Schedulers of one optimizer."""

    _schedulers: Any

    def _check(self, optimizer: Any, schedulers: Sequence[Any]) -> None:
        name = type(self).__name__
        for i, one in enumerate(schedulers):
            if not hasattr(one, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(one, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    f"additional kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
            if optimizer is not one.optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(one).__name__} at index {i} has {one.optimizer}, which is "
                    f"different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, with the state dicts of the schedulers."""
        state = super().state_dict()
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        self.__dict__.update({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for one, held in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            one.load_state_dict(held)


class SequentialLR(_Several):
    """One scheduler after another: the next begins at each milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name} expects at least one scheduler, but got no scheduler.")
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        # All have stepped once as they were made; only the one that begins should have.
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go to the next epoch with the scheduler whose turn it is."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        one = self._schedulers[i]
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            one._update_lr(0)
        else:
            one.step()
        self._last_lr = one.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take back the first step of each scheduler among these, and inside of them."""
        scheduler = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for one in scheduler._schedulers:
                self.recursive_undo(one)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1


class ChainedScheduler(_Several):
    """Several schedulers at once: each changes what the others left."""

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no "
                "scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = values_of(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step all of them."""
        for one in self._schedulers:
            one.step()
        self._last_lr = values_of(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """Multiply by `factor` when a metric has not improved for more than `patience` epochs.

    Args:
      optimizer: whose groups' `lr` it sets.
      mode: whether less (`"min"`) or more (`"max"`) is better.
      factor: less than 1.
      patience: epochs without improvement that are allowed.
      threshold, threshold_mode: what counts as an improvement, relative or absolute.
      cooldown: epochs after a reduction that are not counted.
      min_lr: lower bound, or one a group.
      eps: smallest change that is made.
    """

    def __init__(
        self, optimizer: Optimizer, mode: Literal["min", "max"] = "min", factor: float = 0.1,
        patience: int = 10, threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel", cooldown: int = 0,
        min_lr: list[float] | float = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        self.optimizer = checked(optimizer)
        n = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if not isinstance(min_lr, (list, tuple)):
            self.default_min_lr = min_lr
            min_lr = [min_lr] * n
        elif len(min_lr) != n:
            raise ValueError(f"expected {n} min_lrs, got {len(min_lr)}")
        self.min_lrs = list(min_lr)
        self.patience, self.cooldown, self.eps = patience, cooldown, eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: SupportsFloat, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go to the next epoch; `metrics` is observed if it is a tensor."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due "
                    "to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, low)
            if old - new > self.eps:
                set_value(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Tell whether a reduction was made lately."""
        return self.cooldown_counter > 0

    def _is_better(self, now: float, best: float) -> bool:
        less = self.mode == "min"
        if self.threshold_mode == "rel":
            margin = best * (1.0 - self.threshold if less else self.threshold + 1.0)
        else:
            margin = best - self.threshold if less else best + self.threshold
        return now < margin if less else now > margin

    def _init_is_better(self, mode: Any, threshold: float, threshold_mode: Any) -> None:
        if mode not in {"min", "max"}:
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode, self.threshold, self.threshold_mode = mode, threshold, threshold_mode

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        self.__dict__.update(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)
