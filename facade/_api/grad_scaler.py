"""`GradScaler`: scale the loss so that small float16 gradients do not vanish.

Whether a gradient overflowed is known only when the program has run, so a step that must be
skipped is recorded like any other, and its result is chosen inside the program. Nothing is
observed, and forward, backward, check and update stay one program: it runs at `update()`, which
would else be compiled into the step that comes next.
"""

from __future__ import annotations

import enum
import warnings
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional.program.op import Op

from .._core.dtypes import float16
from .._core.grad_modes import no_grad
from .._core.handle import Handle
from .._core.run_log import STEP
from .._core.trie import local
from .._ops.composites.multi_tensor_writes import update_many
from .._runtime.cut import cut
from .._tracing.inputs import from_array


class _Stage(enum.Enum):
    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _fresh() -> dict[str, Any]:
    return {"stage": _Stage.READY, "found_inf": None}


class GradScaler:
    """Scale losses, unscale gradients, and skip steps whose gradients are not finite.

    Args:
      device: `"cpu"` or `"cuda"`; disabled with a warning if there is no such device.
      init_scale: the first scale.
      growth_factor: multiplies the scale after `growth_interval` good steps.
      backoff_factor: multiplies it after a step with gradients that are not finite.
      growth_interval: good steps in a row until the scale grows.
      enabled: False makes every method do as if there were no scaler.

    >>> import leafax
    >>> w = leafax.ones(1, requires_grad=True)
    >>> opt, scaler = leafax.optim.SGD([w], lr=0.1), GradScaler("cpu", init_scale=8.0)
    >>> scaler.scale((w * w).sum()).backward()
    >>> scaler.step(opt)
    >>> scaler.update()
    >>> w
    tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0,
        backoff_factor: float = 0.5, growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device, self._enabled = device, enabled
        if device == "cuda" and enabled and jax.default_backend() != "gpu":
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._growth_factor, self._backoff_factor = growth_factor, backoff_factor
        self._growth_interval = growth_interval
        self._scale: Any = None
        self._growth_tracker: Any = None
        self._states: defaultdict[int, dict[str, Any]] = defaultdict(_fresh)

    def _started(self, what: str) -> None:
        for name in ("_scale", "_growth_tracker"):
            if getattr(self, name) is None:
                raise AssertionError(
                    f"Attempted {what} but {name} is None.  This may indicate your script did not "
                    "use scaler.scale(loss or outputs) earlier in the iteration."
                )

    def scale(self, outputs: Any) -> Any:
        """Multiply tensors, or any nesting of iterables of them, by the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Handle):
            if self._scale is None:
                self._scale = from_array(jnp.asarray(self._init_scale, "float32"))
                self._growth_tracker = from_array(jnp.asarray(self._init_growth_tracker, "int32"))
            return outputs * self._scale  # type: ignore[operator]
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled  # type: ignore[call-arg]
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the optimizer's gradients by the scale, before clipping for instance."""
        if not self._enabled:
            return
        self._started("unscale_")
        state = self._states[id(optimizer)]
        if state["stage"] is _Stage.UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last update()."
            )
        if state["stage"] is _Stage.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [
            p._grad for group in optimizer.param_groups for p in group["params"]
            if p._grad is not None
        ]  # fmt: skip
        if any(g.dtype == float16 for g in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        if grads:
            state["found_inf"] = update_many(_UNSCALE, grads, self._scale)[0]
        state["stage"] = _Stage.UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`optimizer.step()`, whose effect is undone if a gradient is not finite."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._started("step")
        state = self._states[id(optimizer)]
        if state["stage"] is _Stage.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state["stage"] is _Stage.READY:
            self.unscale_(optimizer)
        if state["found_inf"] is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        optimizer.found_inf = state["found_inf"]
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            optimizer.found_inf = None
            state["stage"] = _Stage.STEPPED

    def update(self, new_scale: Any = None) -> None:
        """Increase or reduce the scale; once a step, after all optimizers.

        Args:
          new_scale: a number or a tensor of one element to take as the scale instead.
        """
        if not self._enabled:
            return
        self._started("update")
        if isinstance(new_scale, float):
            self._scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or "
                    "torch.FloatTensor with requires_grad=False."
                )
            with no_grad():
                self._scale.copy_(new_scale)
        else:
            found = [s["found_inf"] for s in self._states.values() if s["found_inf"] is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            numbers = (self._growth_factor, self._backoff_factor, self._growth_interval)
            update_many(_UPDATE, [self._scale, self._growth_tracker], tuple(found), numbers=numbers)
            del found
        stepped = any(s["stage"] is _Stage.STEPPED for s in self._states.values())
        self._states = defaultdict(_fresh)
        if stepped and local.cuts.capture is not None:
            local.cuts.capture.stepped = True
        elif stepped:
            cut(STEP)

    def get_scale(self) -> float:
        """Return the scale; observes it. 1.0 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        tracker = self._growth_tracker
        return self._init_growth_tracker if tracker is None else int(tracker.item())

    def get_growth_factor(self) -> float:
        """Return the factor that the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what the scale grows by."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor that the scale is multiplied by after a bad step."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what the scale is multiplied by after a bad step."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Good steps until the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set the good steps until the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Tell whether it does anything."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """Scale, factors and counts as numbers; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled "
                "instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = state_dict["_growth_tracker"]
        if self._scale is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)


def _unscale(grads: Any, scale: Any, numbers: Any) -> Any:
    inverse = (1 / scale.astype("float64")).astype("float32")
    bad = jnp.zeros((), bool)
    for g in grads:
        bad = bad | ~jnp.isfinite(g).all()
    return (*[g * inverse.astype(g.dtype) for g in grads], bad.astype("float32"))


def _update(targets: Any, found: Any, numbers: Any) -> Any:
    (scale, tracker), (growth, backoff, interval) = targets, numbers
    bad = sum(found) > 0
    good = tracker + 1
    grows = good >= interval
    grown = scale * growth.astype(scale.dtype)
    grown = jnp.where(grows & jnp.isfinite(grown), grown, scale)
    shrunk = scale * backoff.astype(scale.dtype)
    after = jnp.where(bad | grows, 0, good).astype(tracker.dtype)
    return jnp.where(bad, shrunk, grown), after


_UNSCALE = Op(_unscale, name="unscale_", namespace="amp", differentiable=False)
_UPDATE = Op(_update, name="update_scale_", namespace="amp", differentiable=False)
