"""Any optax transformation as an optimizer."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from leafax.functional import Op

from .._enter import from_array, keep_edge
from .._record import record
from .._storage import write
from .._trace import local
from ._optimizer import Optimizer, ParamGroup


class Optax(Optimizer):
    """Update with an optax `GradientTransformation`.

    The transformation sees only the parameters that have a gradient and require one, so frozen
    ones have no state, no decay, and no part in a clipped norm. When that set changes, the
    parameters that stay keep their state and new ones start fresh.

    Args:
      params: tensors or groups; all groups share the transformation.
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
        if not hasattr(transform, "init") or not hasattr(transform, "update"):
            raise TypeError(
                f"`transform` must be an optax GradientTransformation, got "
                f"{type(transform).__name__}"
            )
        super().__init__(params, {})
        self.transform = transform
        self._active: tuple[int, ...] = ()
        self._leaves: list[Any] = []
        self._paths: list[str] = []
        self._treedef: Any = None
        self._wide = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]

    def step(self, closure: Any = None) -> Any:
        merged = {"params": [p for g in self.param_groups for p in g["params"]]}
        groups, self.param_groups = self.param_groups, [merged]
        try:
            return super().step(closure)
        finally:
            self.param_groups = groups

    def _step_group(self, group: ParamGroup) -> None:
        params = self.trainable(group)
        if not params:
            return
        numbers = {id(p): i for i, p in enumerate(group["params"])}
        active = tuple(numbers[id(p)] for p in params)
        if active != self._active:
            self._start(active, params)
        op = self._transform_op(active)
        trace = local.trace
        grads = tuple(p._grad for p in params)
        state, _ = record(op, (tuple(params), grads, tuple(self._leaves)), {}, budget=False)
        results = iter(state.values)
        for p in params:
            write(p, keep_edge(trace, next(results), p._v))
        for t in self._leaves:
            self._assign(t, next(results))

    def _start(self, active: tuple[int, ...], params: list[Any]) -> None:
        """State for these parameters; what was there under the same path stays."""
        from .._run import observe

        shapes = {
            str(i): observe(p, "optimizer state") for i, p in zip(active, params, strict=True)
        }
        with jax.enable_x64(self._wide):
            fresh = self.transform.init(shapes)
            flat, self._treedef = jax.tree_util.tree_flatten_with_path(fresh)
            before = dict(zip(self._paths, self._leaves, strict=True))
            self._paths = [jax.tree_util.keystr(path) for path, _ in flat]
            self._leaves = [
                before[path]
                if path in before and tuple(before[path].shape) == jnp.shape(leaf)
                else from_array(jnp.array(leaf))
                for path, (_, leaf) in zip(self._paths, flat, strict=True)
            ]
        self._active = active

    def _transform_op(self, active: tuple[int, ...]) -> Op:
        op = self._ops.get(active)
        if op is not None:
            return op
        transform, treedef, wide = self.transform, self._treedef, self._wide

        def body(params: Any, grads: Any, leaves: Any) -> Any:
            with jax.enable_x64(wide):  # as in the user's own loop
                return in_users_setting(params, grads, leaves)

        def in_users_setting(params: Any, grads: Any, leaves: Any) -> Any:
            import optax

            named = {str(i): p for i, p in zip(active, params, strict=True)}
            updates = {str(i): g for i, g in zip(active, grads, strict=True)}
            state = jax.tree.unflatten(treedef, leaves)
            updates, state = transform.update(updates, state, named)
            new = optax.apply_updates(named, updates)
            after = [
                jnp.asarray(x).astype(old.dtype)
                for x, old in zip(jax.tree.leaves(state), leaves, strict=True)
            ]
            return (*[new[str(i)] for i in active], *after)

        op = self._ops[active] = Op(body, name="Optax", namespace="optim", differentiable=False)
        return op

    def state_dict(self) -> dict[str, Any]:
        """The transformation's state by path, and which parameters it belongs to."""
        packed = super().state_dict()
        packed["state"] = dict(zip(self._paths, self._leaves, strict=True))
        packed["active"] = self._active
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict()` returned."""
        params = [p for g in self.param_groups for p in g["params"]]
        active = tuple(state_dict["active"])
        self._start(active, [params[i] for i in active])
        missing = [path for path in self._paths if path not in state_dict["state"]]
        if missing:
            raise ValueError(f"the state dict lacks {missing[0]!r} of this transformation's state")
        self._leaves = [state_dict["state"][path].detach().clone() for path in self._paths]
