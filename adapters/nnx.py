"""Flax nnx modules as models: `Model(module)`.

The module is copied once, and the copy's variables hold tensors instead of arrays. So the copy
says at any time what the leaves are: submodules can be replaced, shared variables stay shared,
and a submodule is a model by itself, on the same tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import jax
from flax import nnx

import leafax
from leafax.autograd.graph import RemovableHandle
from leafax.functional.execution.tracebacks import end_at_callers
from leafax.functional.program.paths import paths

from ._flax import model
from ._flax.nnx_attributes import Attributes
from ._flax.nnx_call import Merge, Shared, View, checked_rules
from ._flax.nnx_copy import described, restored
from ._flax.nnx_hooks import with_parts
from ._flax.nnx_leaves import Bare, Slot, key_data, kinds_of, merged, owners_of, refuse_hijax
from ._inside.watch import Hook, Watchers
from ._models import calls
from ._models.by_id import ById
from ._models.depth import uses
from ._models.select import Tensors
from ._modules.nnx_module import FromModule as FromModule
from ._modules.nnx_module import from_module as from_module


class Model(Attributes):
    """An nnx module whose parameters are leaf tensors.

    `nnx.Param` variables become parameters, all others buffers. Attributes are the module's:
    submodules come as models, variables as tensors; assigning a module replaces a submodule.
    What a call sows (`nnx.Intermediate`) is dropped: `watch` shows what is inside.

    Args:
      module: stays as it is; its arrays are held, not copied.
      rules: what variables of a class are, where not parameters (`nnx.Param`) or buffers (all
        others): `"trainable"`, `"buffer"`, or `"frozen"`, a buffer that no call may change. The
        nearest class counts: `{Scale: "trainable"}` is also for those derived from `Scale`.

    >>> import leafax
    >>> from flax import nnx
    >>> model = Model(nnx.Linear(3, 1, rngs=nnx.Rngs(0)))
    >>> model(leafax.ones(2, 3)).sum().backward()
    >>> model.bias.grad
    tensor([2.])
    """

    def __init__(
        self, module: nnx.Module, *, rules: Mapping[type[nnx.Variable[Any]], str] | None = None
    ) -> None:
        if not isinstance(module, nnx.Module):
            raise TypeError(
                f"`module` must be an nnx module, got `{type(module).__name__}`; for a linen "
                f"module use `leafax.adapters.linen.Model(module, variables)`"
            )
        self._shared = Shared(checked_rules(rules or {}, module))
        self._module = self._hold(module)
        self._tell_untold(self._module)

    @classmethod
    def _over(cls, module: Any, shared: Shared) -> Model:
        """Return the model of a submodule that holds tensors already."""
        found = shared.models.get(module)
        if found is None:
            found = shared.models[module] = object.__new__(cls)
            found._shared, found._module, found._is_part = shared, module, True
        return found

    _is_part = False

    def _hook(self, kind: str, path: Any, hook: Callable[..., Any]) -> RemovableHandle:
        if not self._is_part:
            return super()._hook(kind, path, hook)
        handle = RemovableHandle(self._shared.hooks)
        self._shared.hooks[handle.id] = self._module, Hook(kind, path, hook)
        return handle

    def _watching_call(self) -> Watchers | None:
        if not self._shared.hooks:
            return self._watchers
        return with_parts(self._watchers, self._module, self._shared.hooks)

    def __getstate__(self) -> dict[str, Any]:
        return described(self._module, self._shared) | {"watchers": self._watchers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._watchers = state.pop("watchers")
        self._module, self._shared = restored(state)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("__call__", args, kwargs)

    def _call_on(self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        return self._run("__call__", args, kwargs, swap)

    def _run(self, method: str, args: Any, kwargs: dict[str, Any], swap: Any = None) -> Any:
        flags = calls.flags_of(getattr(type(self._module), method))
        view, training = self._view(), self.training
        if flags:
            kwargs, training = calls.with_flags(flags, training, args, kwargs)
        dtype = self._shared.dtype or model.autocast_dtype()
        recomputed = self._recomputed()
        key = (method, training, dtype, recomputed)
        pure = view.pures.get(key)
        if pure is None:
            pure = view.pures[key] = self._pure(view, method, training, dtype, recomputed)
        if not self._shared.borrowed.settled:
            self._shared.borrowed.settle(training)
        leaves = tuple(swap.get(id(t), t) for t in view.leaves) if swap else view.leaves
        if any(isinstance(x, nnx.Rngs) for x in (*args, *kwargs.values())):
            args, kwargs = tuple(map(_forked, args)), {n: _forked(x) for n, x in kwargs.items()}
        return self._record(pure, view.leaves, leaves, args, kwargs)

    def _pure(
        self, view: View, method: str, training: bool, dtype: Any, recomputed: frozenset[str]
    ) -> Merge:
        impls = tuple(self._shared.keys.get(t) for t in view.leaves)
        still = frozenset(
            i for i, (name, kind) in enumerate(zip(view.names, view.kinds, strict=True))
            if issubclass(kind, nnx.BatchStat) and view.owners[name] in self._shared.still
            or self._shared.rule(kind) == "frozen"
        )  # fmt: skip
        # In evaluation the module's own streams serve the rare call that draws.
        draws = training and any(impl is not None for impl in impls)
        return calls.shared(
            Merge(
                self._name(),
                view.graphdef,
                view.treedef,
                view.names,
                view.kinds,
                impls,
                still,
                method,
                draws,
                dtype,
                recomputed,
            )
        )

    # ------------------------------------------------------------ tensors in the module

    def _hold(self, node: Any) -> Any:
        """Copy a module or variable so that its variables hold tensors."""
        variable = isinstance(node, nnx.Variable)
        graphdef, state = nnx.split({"held": node} if variable else node)
        leaves, treedef = jax.tree.flatten(state)
        refuse_hijax(type(node).__name__, leaves, paths(state))
        held_leaves = []
        for leaf, kind in zip(leaves, kinds_of(state), strict=True):
            tensor = self._tensor(leaf, self._shared.rule(kind) == "trainable")
            held_leaves.append(Slot.of(tensor) if kind is Bare else tensor)
        state = jax.tree.unflatten(treedef, held_leaves)
        held = merged(graphdef, state)
        return held["held"] if variable else held

    def _tensor(self, leaf: Any, parameter: bool) -> Any:
        if isinstance(leaf, Slot):
            return leaf.tensor
        if isinstance(leaf, leafax.Tensor):
            return leaf
        array, impl = key_data(leaf)
        tensor = model.to_tensor(array)
        if impl is not None:
            self._shared.keys[tensor] = impl
        elif isinstance(leaf, jax.Array):
            self._shared.borrowed.lend(tensor, parameter)
        return tensor.requires_grad_(parameter and model.differentiable(tensor))

    def _view(self) -> View:
        shared = self._shared
        token = shared.tokens.get(self._module)
        if token is None:
            token = tuple([vars(module)[flag] for module, flag in self._flags()])
            shared.tokens[self._module] = token
        key = (id(self._module), token, tuple(map(id, shared.still)))
        view = shared.views.get(key)
        if view is None:
            graphdef, state = nnx.split(self._module)
            leaves, treedef = jax.tree.flatten(state)
            names = tuple(paths(state))
            held = [leaf.tensor if isinstance(leaf, Slot) else leaf for leaf in leaves]
            kinds, owners = tuple(kinds_of(state)), owners_of(self._module)
            view = View(graphdef, treedef, names, leafax.Leaves(held), kinds, owners, {})
            shared.views[key] = view
        return view

    def _tensors(self) -> tuple[Tensors, Tensors]:
        parameters: Tensors = {}
        buffers: Tensors = {}
        view = self._view()
        for name, tensor, kind in zip(view.names, view.leaves, view.kinds, strict=True):
            (parameters if self._shared.rule(kind) == "trainable" else buffers)[name] = tensor
        return parameters, buffers

    def _part(self, module: Any) -> Model:
        return Model._over(module, self._shared)

    @property
    def _adapters(self) -> Any:  # type: ignore[override]
        return self._shared.adapters

    def _adapted_by(self) -> ById:
        return self._shared.adapters

    def compute_in(self, dtype: Any) -> Self:
        self._shared.dtype = model.compute_dtype(dtype)
        return self

    def _loan(self) -> calls.Borrowed:
        return self._shared.borrowed

    def _order(self) -> list[str]:
        view = self._view()
        for (method, *_), pure in reversed(view.pures.items()):
            if method == "__call__" and pure.seen is not None:
                parameters = self._tensors()[0]
                return [n for n in (view.names[i] for i in uses(pure)) if n in parameters]
        raise RuntimeError(
            f"in what order `{self._name()}` uses its submodules is known once it was called: "
            f"call it on a batch first"
        )

    def _name(self) -> str:
        return type(self._module).__name__

    # ------------------------------------------------------------ back to Flax

    def variables(self) -> nnx.State[Any, Any]:
        """Return the module's state with the current arrays, not copied."""
        self._lend()
        view, keys = self._view(), self._shared.keys
        arrays = [
            jax.random.wrap_key_data(t.jax(), impl=keys[t]) if t in keys else t.jax()
            for t in view.leaves
        ]
        return jax.tree.unflatten(view.treedef, arrays)  # type: ignore[no-any-return]

    def to_flax(self) -> Any:
        """Make a new nnx module with the current arrays, not copied. Inverse of `Model`."""
        return nnx.merge(self._view().graphdef, self.variables())

    def mask(self) -> Any:
        view = self._view()
        flags = jax.tree.unflatten(view.treedef, [t.requires_grad for t in view.leaves])
        rule = self._shared.rule
        return nnx.filter_state(flags, lambda path, v: rule(type(v)) == "trainable")


def _forked(x: Any) -> Any:
    """Fork random streams for one call: what they draw inside is not counted outside."""
    return x.fork() if isinstance(x, nnx.Rngs) else x


end_at_callers(__name__)
