"""PyTorch's `torch.optim.swa_utils`: averages of parameters over the steps of training."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Literal

from leafax.functional.execution.tracebacks import end_at_callers as _end_at_callers

from .._core.dtypes import int64
from .._core.grad_modes import no_grad
from .._ops.creation.from_data import tensor
from .._ops.creation.written_at_once import write_at_once
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..nn.parameter import is_lazy
from ._base.optimizer import Optimizer
from ._schedules.averages import Average as Average
from ._schedules.averages import AveragedFlax, MultiAverage, average_by_dtype, stand_beside
from ._schedules.averages import get_ema_avg_fn as get_ema_avg_fn
from ._schedules.averages import get_ema_multi_avg_fn as get_ema_multi_avg_fn
from ._schedules.averages import get_swa_avg_fn as get_swa_avg_fn
from ._schedules.averages import get_swa_multi_avg_fn as get_swa_multi_avg_fn
from ._schedules.schedule import NOT_WITHIN, LRScheduler, for_each_group


class AveragedModel(Module):
    """A copy of a model whose parameters are averages of those of the model.

    Args:
      model: a module, or a model of `leafax.adapters`: that one's frozen parameters have no
        average, and calls read its own.
      device: where the copy of a module is to be.
      avg_fn: `(average, parameter, n) -> average`, for one parameter.
      multi_avg_fn: `(averages, parameters, n) -> None`, which writes the averages: all
        parameters by one op. Equal weights if both are None.
      use_buffers: average floating point buffers (BatchNorm statistics) too; they follow the
        model otherwise.

    >>> import leafax
    >>> model = leafax.nn.Linear(3, 2)
    >>> ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    >>> ema.update_parameters(model)
    >>> ema.n_averaged
    tensor(1)
    """

    n_averaged: Any

    # Copies and pickles are made without a model.
    def __new__(cls, model: Any = None, *args: Any, **kwargs: Any) -> Any:
        if model is not None and not isinstance(model, Module):
            return AveragedFlax(model, *args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        if avg_fn is None and not any(map(is_lazy, chain(model.parameters(), model.buffers()))):
            # The first step is compiled as later ones: an average is taken before it, of equals.
            self._take(model, 0)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the copy."""
        return self.module(*args, **kwargs)

    def _averaged(self, model: Any) -> list[Any]:
        if self.use_buffers:
            return [t.detach() for t in chain(model.parameters(), model.buffers())]
        return [t.detach() for t in model.parameters()]

    def update_parameters(self, model: Any) -> None:
        """Take the model's parameters as they are now into the averages."""
        n = int(self.n_averaged)
        self._take(model, n)
        with no_grad():
            if not write_at_once(self.n_averaged, tensor(n + 1, device=self.n_averaged.device)):
                self.n_averaged += 1

    def _take(self, model: Any, n: int) -> None:
        stand_beside(self.module.named_parameters(), dict(model.named_parameters()))
        stand_beside(self.module.named_buffers(), dict(model.named_buffers()))
        averages, current = self._averaged(self.module), self._averaged(model)
        with no_grad():
            if n > 0 and self.avg_fn is not None:
                for average, t in zip(averages, current, strict=True):
                    average.copy_(self.avg_fn(average, t.to(average.device), n))
            else:
                average_by_dtype(self.multi_avg_fn, averages, current, n)
            if not self.use_buffers:
                for mine, b in zip(self.module.buffers(), model.buffers(), strict=True):
                    mine.detach().copy_(b.detach())


def update_bn(loader: Iterable[Any], model: Any, device: Any = None) -> None:
    """Compute the statistics of a model's batch norms anew, from all batches of a loader.

    Args:
      loader: gives batches, or lists and tuples that begin with one.
      model: a module.
      device: where batches are brought to.
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    momenta = [m.momentum for m in norms]
    if not norms:
        return
    was_training = model.training
    model.train()
    with no_grad():
        for m in norms:
            m.reset_running_stats()
            m.momentum = None  # statistics are the mean of all batches
        for batch in loader:
            batch = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(batch if device is None else batch.to(device))
    for m, momentum in zip(norms, momenta, strict=True):
        m.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rates as they are to `swa_lr` in `anneal_epochs`, and then no further.

    Args:
      optimizer: whose groups' `lr` it sets.
      swa_lr: the rate at the end, or one a group.
      anneal_epochs: how many epochs it takes.
      anneal_strategy: `"cos"` or `"linear"`.
      last_epoch: the epoch to resume from.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: float, anneal_epochs: int = 10,
        anneal_strategy: Literal["cos", "linear"] = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        rates = for_each_group("swa_lr", optimizer, swa_lr)
        for rate, group in zip(rates, optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, step: int) -> float:
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        if not self._get_lr_called_within_step:
            warnings.warn(NOT_WITHIN, UserWarning, stacklevel=2)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._weight(step - 1), self._weight(step)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates


_end_at_callers(__name__)
