"""PyTorch's optimizers that update one parameter at a time, but for SGD and Adam."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: With options that each have a state and an update of their own.
OTHERS: dict[str, Callable[[Any, Any], Any]] = {
    "rmsprop": lambda t, p: t.optim.RMSprop(p, lr=0.1, alpha=0.9, momentum=0.5, centered=True),
    "adagrad": lambda t, p: t.optim.Adagrad(p, lr_decay=0.1, initial_accumulator_value=0.2),
    "adadelta": lambda t, p: t.optim.Adadelta(p, rho=0.8, weight_decay=0.1),
    "adamax": lambda t, p: t.optim.Adamax(p, lr=0.1, maximize=True),
    "nadam": lambda t, p: t.optim.NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda t, p: t.optim.RAdam(p, lr=0.1, betas=(0.8, 0.9), weight_decay=0.1),
    "asgd": lambda t, p: t.optim.ASGD(p, lr=0.1, lambd=0.1, t0=1),
    "rprop": lambda t, p: t.optim.Rprop(p, lr=0.1, step_sizes=(0.15, 0.2)),
}
