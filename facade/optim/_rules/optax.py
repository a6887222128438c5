"""Any optax transformation as an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from leafax.functional.lowering.keys import with_keys, without_keys
from leafax.functional.program.op import Op

from ..._core.handle import is_trained
from .._base.cohorts import Cohorts, Layout
from .._base.groups import ParamGroup
from .._base.optimizer import Optimizer
from .._base.update import reused
from .extra import NOTHING, extra_of


class Unit(NamedTuple):
    """Groups that share a transformation, which sees their gradients together.

    Attributes:
      transform: an optax transformation.
      groups: their positions.
      state: what is held for their parameters.
    """

    transform: Any
    groups: tuple[int, ...]
    state: Cohorts


class Optax(Optimizer):
    """Update with an optax `GradientTransformation`.

    The transformation sees only the parameters that have a gradient and require one, so frozen
    ones have no state, no decay, and no part in a clipped norm. When that set changes, the
    parameters that stay keep their state, and new ones start fresh: with step counts of their own,
    as if they were alone. Frozen ones keep theirs until `drop_state()`.

    Args:
      params: tensors or groups. Groups may have
        - `lr`: what the transformation's updates are multiplied by; 1 by default. It is an input
          of the step's program: schedulers set it and compile nothing.
        - `transform`: one of their own. Groups with the same (identical) transformation are
          updated together, so that a norm that it clips is theirs together.
      transform: for instance `optax.adamw(optax.cosine_decay_schedule(1e-3, 1000))`.

    >>> import optax, leafax
    >>> w = leafax.tensor([1.0], requires_grad=True)
    >>> opt = leafax.optim.Optax([w], optax.sgd(0.5))
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w.item()
    0.0
    """

    def __init__(self, params: Any, transform: Any) -> None:
        _check(transform)
        self._units: list[Unit] = []
        self._extra = NOTHING
        self._wide = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
        super().__init__(params, {"lr": 1.0, "transform": transform})
        self.transform = transform

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group: a dict with `params`, and `lr` and `transform` if they differ."""
        if isinstance(param_group, dict) and "transform" in param_group:
            _check(param_group["transform"])
        super().add_param_group(param_group)
        new = len(self.param_groups) - 1
        transform = self.param_groups[new]["transform"]
        for i, unit in enumerate(self._units):
            if unit.transform is transform:
                self._units[i] = unit._replace(groups=(*unit.groups, new))
                return
        self._units.append(Unit(transform, (new,), Cohorts(transform, self._wide)))

    # ------------------------------------------------------------ the step

    def step(self, closure: Callable[[], Any] | None = None, **extra: Any) -> Any:
        """Update the parameters that have a gradient, and run the program.

        Args:
          closure: computes the loss anew and returns it.
          extra: what transformations take by name, such as the `value` of the loss that
            `optax.contrib.reduce_on_plateau` watches: numbers, or tensors of one element. A loss
            that is pending is computed by the step's own program.

        Raises:
          TypeError: an argument is neither.
        """
        self._extra = extra_of(extra)
        try:
            return super().step(closure)
        finally:
            self._extra = NOTHING

    step.undoes_itself = True  # type: ignore[attr-defined]

    def _numbered(self) -> list[list[tuple[int, Any]]]:
        """Return each group's parameters with their numbers, which count through all groups."""
        found, n = [], 0
        for group in self.param_groups:
            found.append(list(enumerate(group["params"], n)))
            n += len(group["params"])
        return found

    def _active(self, unit: Unit, numbered: Any) -> list[tuple[int, Any, int]]:
        """Return what the unit updates: number, parameter and group."""
        return [(n, p, i) for i in unit.groups for n, p in numbered[i] if is_trained(p)]

    def _step_groups(self) -> None:
        numbered = self._numbered()
        for unit in self._units:
            active = self._active(unit, numbered)
            if active:
                self._step_unit(unit, active)

    def _step_unit(self, unit: Unit, active: list[tuple[int, Any, int]]) -> None:
        layout = unit.state.layout([(n, p) for n, p, _ in active])
        of_group = tuple([unit.groups.index(i) for _, _, i in active])
        extra = self._extra
        op = self._update_op(unit, layout, of_group, extra.names)
        leaves = unit.state.leaves(layout)
        params = [p for _, p, _ in active]
        rates = [float(self.param_groups[i]["lr"]) for i in unit.groups]
        rates += extra.numbers
        if not self._replayed(op, params, leaves, rates, seen=extra.tensors):
            self._record_update(op, params, tuple(leaves), leaves, rates, seen=extra.tensors)

    def _touched(self) -> list[Any]:
        numbered, found = self._numbered(), []
        for unit in self._units:
            active = self._active(unit, numbered)
            if active:
                layout = unit.state.layout([(n, p) for n, p, _ in active])
                found += [p for _, p, _ in active] + unit.state.leaves(layout)
        return found

    def _update_op(self, unit: Unit, layout: Layout, of_group: tuple[int, ...], extra: Any) -> Op:
        key = (unit.groups[0], layout, of_group, extra)
        op = self._ops.get(key)
        if op is not None:
            return op
        transform, wide = unit.transform, self._wide

        def body(params: Any, grads: Any, leaves: Any, rates: Any, seen: Any = ()) -> Any:
            with jax.enable_x64(wide):  # as in the user's own loop
                return in_users_setting(params, grads, leaves, rates, seen)

        def in_users_setting(params: Any, grads: Any, leaves: Any, rates: Any, seen: Any) -> Any:
            import optax

            told = [jnp.asarray(x, float) for x in rates[len(unit.groups) :]]
            given = dict(zip((*extra[0], *extra[1]), (*seen, *told), strict=True))
            if given:
                update = optax.with_extra_args_support(transform).update
            else:
                update = transform.update
            named = {str(n): p for n, p in zip(layout.active, params, strict=True)}
            gradients = {str(n): g for n, g in zip(layout.active, grads, strict=True)}
            rate = {str(n): rates[i] for n, i in zip(layout.active, of_group, strict=True)}
            updates: dict[str, Any] = {}
            after: list[Any] = [None] * len(leaves)
            for cohort in range(layout.cohorts):
                held = [leaves[i] for i in layout.places[cohort]]
                state = jax.tree.unflatten(layout.treedef, held)
                # All gradients, since a norm is everyone's; XLA drops what is not taken of it.
                moved, state = update(gradients, with_keys(state), named, **given)
                updates |= {str(n): moved[str(n)] for n in layout.members[cohort]}
                for i, new in zip(
                    layout.places[cohort], jax.tree.leaves(without_keys(state)), strict=True
                ):
                    if layout.owners[i] == cohort:
                        after[i] = jnp.asarray(new).astype(leaves[i].dtype)
            scaled = {
                name: updates[name] * rate[name].astype(updates[name].dtype) for name in named
            }
            new = optax.apply_updates(named, scaled)
            return (*[new[str(n)] for n in layout.active], *after)

        reuses = reused(len(layout.active), len(layout.keys))
        op = Op(body, name="Optax", namespace="optim", differentiable=False, reuses=reuses)
        self._ops[key] = op
        return op

    # ------------------------------------------------------------ state

    def drop_state(self, params: Any = None) -> None:
        chosen = None if params is None else {id(p) for p in params}
        for group in self._numbered():
            for n, p in group:
                if (not p.requires_grad) if chosen is None else id(p) in chosen:
                    for unit in self._units:
                        unit.state.drop(n)

    def state_dict(self) -> dict[str, Any]:
        """Return the transformations' state by path, and which parameters started together."""
        packed = super().state_dict()
        for group in packed["param_groups"]:
            group.pop("transform")
        packed["state"], packed["cohorts"] = {}, {}
        for i, unit in enumerate(self._units):
            prefix = f"{i}:" if i else ""
            packed["state"].update(unit.state.packed(prefix))
            packed["cohorts"].update(unit.state.cohort_of)
        return packed

    def follow(self, moved: Mapping[int, Any]) -> None:
        for unit in self._units:
            unit.state.place(
                {n: p for group in self._numbered() for n, p in group if id(p) in moved}
            )

    def __getstate__(self) -> dict[str, Any]:
        own = {name: vars(self)[name] for name in ("transform", "_units", "_wide")}
        return super().__getstate__() | own | {"_extra": NOTHING}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` of an optimizer with equal groups returned."""
        transforms = [group["transform"] for group in self.param_groups]
        super().load_state_dict({**state_dict, "state": {}})
        for group, transform in zip(self.param_groups, transforms, strict=True):
            group["transform"] = transform
        for i, (unit, prefix) in enumerate(
            (unit, f"{i}:" if i else "") for i, unit in enumerate(self._units)
        ):
            params = {
                n: p for j in unit.groups for n, p in self._numbered()[j]
                if n in state_dict["cohorts"]
            }  # fmt: skip
            self._units[i] = unit._replace(
                state=Cohorts.unpacked(
                    unit.transform, self._wide, params, state_dict["cohorts"],
                    state_dict["state"], prefix,
                )
            )  # fmt: skip

    def init_state(self, p: Any, group: ParamGroup) -> dict[str, Any]:
        raise TypeError("`Optax` holds its state by transformation, not by parameter")


def _check(transform: Any) -> None:
    if not hasattr(transform, "init") or not hasattr(transform, "update"):
        raise TypeError(
            f"`transform` must be an optax GradientTransformation, got {type(transform).__name__}"
        )
