"""Freeze masks for people who keep their own optax loop.

`freeze` makes any optax transform right for a mask; `check` finds the recipes that are not. True
in a mask means trainable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from leafax.functional.execution.tracebacks import end_at_callers
from leafax.functional.masks import merge, partition
from leafax.functional.program.paths import paths, select

from ._models.optimizer_probe import OptimizerProbe

PyTree = Any


def freeze(tx: optax.GradientTransformation, mask: PyTree) -> optax.GradientTransformationExtraArgs:
    """Restrict an optax transform to the leaves that the mask selects.

    The transform never sees the others: it holds no state for them, does not decay them, and does
    not count them in a norm. Their update is zero. Wrap the whole optimizer, not a part of it:
    inside, the order of transforms does not matter; a norm taken outside counts frozen gradients,
    and a decay added outside moves frozen leaves. `check` finds both.

    Args:
      tx: any optax transform, `optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))`.
      mask: True means trainable: what `leafax.functional.select` takes, so a pytree of bools or a
        prefix, path patterns, or a predicate. Resolved against `params`, at each `update` too when
        they are passed to it.

    Returns:
      A transform whose `update` takes gradients of all leaves, or with None for frozen ones as
      `leafax.functional.grad` returns them.

    Raises:
      ValueError: at `init` or `update`: a pattern that matches nothing, or a trainable leaf without
        a gradient.

    >>> import jax.numpy as jnp, optax
    >>> params = {"backbone": jnp.ones(2), "head": jnp.ones(2)}
    >>> tx = freeze(optax.adamw(0.1), "head")
    >>> updates, state = tx.update(params, tx.init(params), params)
    >>> updates["backbone"]
    Array([0., 0.], dtype=float32)
    """
    inner = optax.with_extra_args_support(tx)

    def init(params: PyTree) -> PyTree:
        return inner.init(partition(params, mask)[0])

    def update(
        updates: PyTree, state: PyTree, params: PyTree | None = None, **extra: Any
    ) -> tuple[PyTree, PyTree]:
        like = _without_none(updates) if params is None else params
        chosen = select(like, mask)
        trainable = _keep(updates, chosen)
        _check_complete(trainable, chosen)
        held = None if params is None else partition(params, chosen)[0]
        trainable, state = inner.update(trainable, state, held, **extra)
        frozen = jax.tree.map(jnp.zeros_like, partition(like, chosen)[1])
        return merge(trainable, frozen), state

    return optax.GradientTransformationExtraArgs(init, update)


def _is_none(x: Any) -> bool:
    return x is None


def _without_none(updates: PyTree) -> PyTree:
    return jax.tree.map(lambda x: jnp.zeros(()) if x is None else x, updates, is_leaf=_is_none)


def _keep(updates: PyTree, chosen: PyTree) -> PyTree:
    """Return the trainable part of updates that may have None for frozen leaves."""
    return jax.tree.map(lambda yes, x: x if yes else None, chosen, updates, is_leaf=_is_none)


def _check_complete(trainable: PyTree, chosen: PyTree) -> None:
    missing = set(paths(partition(chosen, chosen)[0])) - set(paths(trainable))
    if missing:
        raise ValueError(
            f"no gradient for the trainable leaf `{min(missing)}` ({len(missing)} in all): "
            f"differentiate with the mask that is given to `freeze`, or leave it out of the mask"
        )


class Finding(NamedTuple):
    """One way in which an optimizer does not keep to a mask.

    Attributes:
      kind: `"raw"` (the gradient itself comes out as the update), `"decay"` (moves without a
        gradient), `"trained"` (updated like any other leaf), `"norm"` (trainable updates depend on
        frozen gradients) or `"state"` (state is held for frozen leaves: right, but it costs).
      paths: the frozen leaves concerned.
      message: what happens, why, and what to do.
    """

    kind: str
    paths: tuple[str, ...]
    message: str


class FreezeError(ValueError):
    """Raised by `check`; `findings` holds what it found."""

    def __init__(self, findings: list[Finding]) -> None:
        self.findings = findings
        super().__init__("\n".join(["the optimizer does not keep to the mask:", *(
            f"- {finding.message}" for finding in findings
        )]))  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as the findings, from which the message is made."""
        return FreezeError, (self.findings,)


_WRAP = "Wrap the whole optimizer: `leafax.adapters.optax.freeze(tx, mask)`"
_MESSAGES = {
    "raw": "these frozen leaves climb, since their own gradients come out as their updates: "
    "{names}. A bare `optax.masked` passes through what it leaves out. ",
    "decay": "these frozen leaves move although every gradient is zero: {names}. Weight decay (or "
    "noise) comes after their gradients were set to zero, or does not know the mask. ",
    "trained": "these frozen leaves are updated as if they were trainable: {names}. ",
    "norm": "the updates of trainable leaves depend on the gradients of frozen ones: {names}. A "
    "norm (`optax.clip_by_global_norm`) counts them, so that the rest is clipped too much. ",
    "state": "optimizer state is held for frozen leaves: {names}. ",
}


def check(tx: optax.GradientTransformation, params: PyTree, mask: PyTree) -> None:
    """Raise if frozen leaves move under this optimizer, or change how others do.

    The optimizer is run on probe gradients for all leaves, as `jax.grad` gives them; nothing is
    assumed about how it was put together.

    Args:
      tx: the optimizer as it is used in the training loop.
      params: the parameters; only shapes and dtypes are used, so `jax.ShapeDtypeStruct`s will do.
      mask: True means trainable: what `leafax.functional.select` takes.

    Raises:
      FreezeError: with all that `diagnose` finds, except state that is merely superfluous.

    >>> import jax.numpy as jnp, optax
    >>> params = {"backbone": jnp.ones(2), "head": jnp.ones(2)}
    >>> mask = {"backbone": False, "head": True}
    >>> check(optax.masked(optax.sgd(0.1), mask), params, mask)
    Traceback (most recent call last):
    leafax.adapters.optax.FreezeError: the optimizer does not keep to the mask:
    - these frozen leaves climb, since their own gradients come out as their updates: `backbone`...
    >>> check(freeze(optax.sgd(0.1), mask), params, mask)
    """
    wrong = [finding for finding in diagnose(tx, params, mask) if finding.kind != "state"]
    if wrong:
        raise FreezeError(wrong)


def diagnose(tx: optax.GradientTransformation, params: PyTree, mask: PyTree) -> list[Finding]:
    """List how an optimizer treats frozen leaves.

    Args:
      tx, params, mask: as in `check`.

    Returns:
      Findings, worst first; an empty list when frozen leaves neither move nor count nor cost.

    >>> import jax.numpy as jnp, optax
    >>> params = {"backbone": jnp.ones(2), "head": jnp.ones(2)}
    >>> [finding.kind for finding in diagnose(freeze(optax.sgd(0.1), "head"), params, "head")]
    []
    """
    chosen = select(params, mask)
    if all(jax.tree.leaves(chosen)):
        return []
    probe = OptimizerProbe(optax.with_extra_args_support(tx), params, chosen)
    found = probe.moving_leaves()
    found["norm"] = probe.frozen if probe.counts_frozen_gradients() else []
    found["state"] = probe.frozen if probe.holds_frozen_state() else []
    return [
        Finding(kind, tuple(names), message.format(names=_listing(names)) + _WRAP)
        for kind, message in _MESSAGES.items()
        if (names := found[kind])
    ]


def _listing(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


end_at_callers(__name__)
