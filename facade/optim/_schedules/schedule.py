"""The base of the schedulers: they write a group's `lr`, which is an input of the step's program.

So a schedule never compiles anything. The classes keep PyTorch's attributes, since state dicts
hold them.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from weakref import ref

from ..._core.handle import Handle
from .._base.optimizer import Optimizer

ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, "
    "you should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  "
    "Failure to do this will result in PyTorch skipping the first value of the learning rate "
    "schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
NOT_WITHIN = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."
RESUMING = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with "
    "last_epoch >= 0.\nThis typically happens when:\n1. You're trying to resume training from a "
    "checkpoint but haven't properly loaded the optimizer state\n2. You're using last_epoch >= 0 "
    "for a fresh training run (not recommended)"
)


class LRScheduler:
    """Base class: counts epochs, and sets each group's `lr` to what `get_lr()` returns.

    Args:
      optimizer: whose groups' `lr` it sets.
      last_epoch: the epoch to resume from; -1 starts anew.
    """

    base_lrs: list[Any]
    _last_lr: list[Any]
    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = checked(optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(RESUMING.format(i))
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        with self._during("_is_initial"):
            self.step()

    def get_lr(self) -> list[Any]:
        """Return the learning rates of this epoch, one a group; subclasses say how."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """Return the learning rates that were set last, one a group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch; call it after `optimizer.step()`."""
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(OVERRIDDEN, UserWarning, stacklevel=2)
            elif not getattr(self.optimizer, "_opt_called", False):
                warnings.warn(ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._during("_get_lr_called_within_step"):
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
            values = self.get_lr() if closed is None else closed()
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            set_value(group, "lr", lr)
        self._last_lr = values_of(self.optimizer, "lr")

    def _lrs(self) -> list[Any]:
        """Return the learning rates as they are: most schedules change them step by step."""
        if not self._get_lr_called_within_step:
            warnings.warn(NOT_WITHIN, UserWarning, stacklevel=3)
        return values_of(self.optimizer, "lr")

    @contextmanager
    def _during(self, flag: str) -> Iterator[None]:
        setattr(self, flag, True)
        try:
            yield
        finally:
            setattr(self, flag, False)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base class under its older name."""


class WithLambdas(LRScheduler):
    """Base of schedulers by the user's own functions; plain functions are not saved."""

    lr_lambdas: list[Callable[[int], float]]

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        n = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * n
        elif len(lr_lambda) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer; of functions, those that are objects with state."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(fn, types.FunctionType) else fn.__dict__.copy()
            for fn in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned; functions stay those given here."""
        rest = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(rest)
        for fn, held in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if held is not None:
                fn.__dict__.update(held)


def checked(optimizer: Any) -> Any:
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    return optimizer


def copied(value: Any) -> Any:
    return value.clone() if isinstance(value, Handle) else value  # type: ignore[attr-defined]


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """Return what the groups have under a key."""
    return [copied(group[key]) for group in optimizer.param_groups]


def set_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set a group's entry; a tensor is filled, so that those who hold it see it."""
    if isinstance(group[key], Handle):
        group[key].fill_(float(value))
    else:
        group[key] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """One value a group, from a list of them or from one for all."""
    n = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * n
    elif len(value) != n:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} "
            f"values, param_groups has {n}."
        )
    return [copied(v) for v in value]


def _note_steps(optimizer: Any) -> None:
    """Make the optimizer remember that it has stepped."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    function, to = optimizer.step.__func__, ref(optimizer)

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        optimizer: Any = to()
        optimizer._opt_called = True
        return function(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step
