"""Averages of parameters over the steps of training, and those of models of Flax."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import jax.numpy as jnp

from leafax.functional.execution.several_devices import several
from leafax.functional.program.op import Op

from ..._core.grad_modes import no_grad
from ..._core.handle import Handle
from ..._ops.composites.multi_tensor_writes import update_many
from ..._ops.creation.from_data import tensor
from ..._runtime.placing import place_beside

MultiAverage = Callable[[list[Any], list[Any], int], None]
Average = Callable[[Any, Any, int], Any]


def get_ema_multi_avg_fn(decay: float = 0.999) -> MultiAverage:
    """Averages that forget: `decay` times the old value, `1 - decay` times the new one."""
    _check_decay(decay)

    def ema_update(averaged: list[Any], current: list[Any], n: int) -> None:
        if _mixes(averaged):
            update_many(_LERP, averaged, tuple(current), numbers=(1 - decay,))
            return
        with no_grad():
            for a, c in zip(averaged, current, strict=True):
                a.copy_(a * decay + c * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn() -> MultiAverage:
    """Equal weights for all values so far."""

    def swa_update(averaged: list[Any], current: list[Any], n: int) -> None:
        if _mixes(averaged):
            update_many(_LERP, averaged, tuple(current), numbers=(1 / (n + 1),))
            return
        with no_grad():
            for a, c in zip(averaged, current, strict=True):
                if isinstance(n, Handle):
                    a.addcdiv_(c - a, n + 1)
                else:
                    a.add_(c - a, alpha=1.0 / (n + 1))

    return swa_update


def _mixes(averaged: list[Any]) -> bool:
    return bool(averaged[0].is_floating_point() or averaged[0].is_complex())


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """`get_ema_multi_avg_fn` for one parameter at a time."""
    _check_decay(decay)

    def ema_update(averaged: Any, current: Any, n: int) -> Any:
        return decay * averaged + (1 - decay) * current

    return ema_update


def get_swa_avg_fn() -> Average:
    """`get_swa_multi_avg_fn` for one parameter at a time."""

    def swa_update(averaged: Any, current: Any, n: int) -> Any:
        return averaged + (current - averaged) / (n + 1)

    return swa_update


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def average_by_dtype(
    multi_avg_fn: MultiAverage | None, averages: list[Any], current: list[Any], n: int
) -> None:
    """Take values into averages, all of a dtype at once.

    Args:
      multi_avg_fn: writes the averages; equal weights if None.
      n: how many values were taken before; the first ones are the averages.
    """
    update = take_over if n == 0 else multi_avg_fn or get_swa_multi_avg_fn()
    by_dtype: dict[Any, tuple[list[Any], list[Any]]] = {}
    for average, t in zip(averages, current, strict=True):
        pair = by_dtype.setdefault(average.dtype, ([], []))
        pair[0].append(average)
        pair[1].append(t)
    for some, values in by_dtype.values():
        update(some, values, n)


def take_over(averaged: list[Any], current: list[Any], n: int) -> None:
    """Write the first values: by the op that mixes later ones in, so that it is one program."""
    if _mixes(averaged):
        update_many(_LERP, averaged, tuple(current), numbers=(1.0,))
    else:
        update_many(_TAKE, averaged, tuple(current))


def stand_beside(averages: Iterable[tuple[str, Any]], named: Mapping[str, Any]) -> None:
    """Place averages on the devices on which what they average lies, by name."""
    for name, average in averages if several else ():
        if name in named:
            place_beside(named[name], average)


class AveragedFlax:
    """A model with averages in place of its trainable parameters.

    Frozen parameters have no average: calls read the model's own. One that is thawed later starts
    its average then, with the value that it has.

    Args:
      model: a model of `leafax.adapters`.
      avg_fn: `(average, parameter, n) -> average`, for one parameter.
      multi_avg_fn: `(averages, parameters, n) -> None`, which writes the averages: all
        parameters by one op. Equal weights if both are None.
      use_buffers: average floating point buffers (BatchNorm statistics) too; they follow the
        model otherwise.

    >>> from flax import nnx
    >>> from leafax.adapters.nnx import Model
    >>> model = Model(nnx.Linear(3, 2, rngs=nnx.Rngs(0))).freeze("kernel")
    >>> ema = AveragedFlax(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    >>> ema.update_parameters(model)
    >>> [name for name, _ in ema.named_parameters()]
    ['bias']
    """

    def __init__(
        self, model: Any, device: Any = None, avg_fn: Average | None = None,
        multi_avg_fn: MultiAverage | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = model
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers
        self._n = 0
        self._started: dict[str, int] = {}
        self._averaged: dict[str, Any] = {}
        self._copied: dict[str, Any] = {}
        self._follow(model)

    @property
    def n_averaged(self) -> Any:
        """Return the number of values averaged, a tensor of int64."""
        return tensor(self._n)

    def _follow(self, model: Any) -> None:
        """Start averages of what trains now, and take over the other buffers."""
        stand_beside(self._averaged.items(), dict(model.named_parameters()))
        buffers = dict(model.named_buffers())
        wanted = {name: p for name, p in model.named_parameters() if p.requires_grad}
        if self.use_buffers:
            wanted |= {name: b for name, b in buffers.items() if b.is_floating_point()}
        with no_grad():
            for name, t in wanted.items():
                if name not in self._averaged:
                    self._averaged[name] = t.detach().clone()
                    self._started[name] = self._n
            for name, b in buffers.items():
                if name not in self._averaged:
                    self._copied[name] = b.detach().clone()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the model with the averages."""
        return self.module.functional_call(self._averaged | self._copied, *args, **kwargs)

    def named_parameters(self) -> Iterator[tuple[str, Any]]:
        """Return the averages with their paths."""
        return iter(self._averaged.items())

    def parameters(self) -> Iterator[Any]:
        """Return the averages."""
        return iter(self._averaged.values())

    def update_parameters(self, model: Any) -> None:
        """Take the model's parameters as they are now into the averages.

        What was frozen since keeps its average and takes part no more.
        """
        self._follow(model)
        parts: dict[int, tuple[list[Any], list[Any]]] = {}
        mine = dict(model.named_parameters()) | dict(model.named_buffers())
        buffers = dict(model.named_buffers())
        for name, average in self._averaged.items():
            t = mine[name]
            if name in buffers or t.requires_grad:
                averages, current = parts.setdefault(self._n - self._started[name], ([], []))
                averages.append(average)
                current.append(t.detach())
        with no_grad():
            for n, (averages, current) in parts.items():
                self._average(averages, current, n)
        self._n += 1

    def _average(self, averages: list[Any], current: list[Any], n: int) -> None:
        if self.avg_fn is not None:
            if n == 0:
                update_many(_TAKE, averages, tuple(current))
                return
            for average, t in zip(averages, current, strict=True):
                average.copy_(self.avg_fn(average, t, n))
            return
        average_by_dtype(self.multi_avg_fn, averages, current, n)

    def state_dict(self) -> dict[str, Any]:
        """Return the averages by path, and since when each is kept."""
        return {
            "n_averaged": self._n,
            "started": dict(self._started),
            "averaged": {name: t.detach().clone() for name, t in self._averaged.items()},
            "buffers": {name: t.detach().clone() for name, t in self._copied.items()},
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        self._n, self._started = state_dict["n_averaged"], dict(state_dict["started"])
        self._averaged = {n: t.detach().clone() for n, t in state_dict["averaged"].items()}
        self._copied = {n: t.detach().clone() for n, t in state_dict["buffers"].items()}


def _lerp(averages: Any, current: Any, numbers: Any) -> Any:
    weight = numbers[0]

    def one(a: Any, b: Any) -> Any:
        b = b.astype(a.dtype)
        mixed = a + (b - a) * weight.astype(a.real.dtype)
        return jnp.where(weight == 1, b, mixed)  # to the last bit, and where it is infinite

    return tuple(one(a, b) for a, b in zip(averages, current, strict=True))


def _take(averages: Any, current: Any, numbers: Any) -> Any:
    return tuple(jnp.asarray(b, a.dtype) for a, b in zip(averages, current, strict=True))


_LERP = Op(_lerp, name="lerp_many_", namespace="optim", differentiable=False)
_TAKE = Op(_take, name="copy_many_", namespace="optim", differentiable=False)
