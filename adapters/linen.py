"""Flax linen modules as models: `Model(module, variables)`.

The collection `params` becomes parameters, all others buffers. The module is told to train or
not through its own argument (`train`, `deterministic`, ...); where it has none, its BatchNorm
and Dropout layers are switched from outside.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any, Self

import flax
import jax
from flax import linen as nn

import leafax
from leafax.functional.execution.tracebacks import end_at_callers
from leafax.functional.program.paths import paths

from ._flax import model
from ._flax.assigned import first_names, refuse_assignment
from ._flax.linen_call import Apply, Inside, Mode, Path, classes, made_in, needs_rng
from ._flax.linen_given import check, checked_rules, tie
from ._flax.linen_part import Part
from ._models import calls
from ._models.depth import uses
from ._models.recomputing import parents
from ._models.select import Tensors, near, parts_within
from ._modules.linen_module import FromModule as FromModule
from ._modules.linen_module import from_module as from_module


class Model(model.Model):
    """A linen module whose parameters are leaf tensors.

    Args:
      module: the module, unbound.
      variables: what `module.init` returned: a dict of collections with `params` among them.
        JAX arrays are held, not copied.
      rules: what the tensors of a collection are, where not parameters (`params`) or buffers (all
        others): `"trainable"`, `"buffer"`, or `"frozen"`, a buffer that no call may change.
      tied: paths of parameters that are another one: `{"decoder.embedding": "embed.embedding"}`.
        They appear once, under the other's path, and their gradients are summed.
      rngs: names of random streams that the module asks for only if it has them. Streams that
        it needs are found without; all draw from leafax's generator.

    >>> import jax, jax.numpy as jnp, leafax
    >>> from flax import linen as nn
    >>> module = nn.Dense(1)
    >>> model = Model(module, module.init(jax.random.key(0), jnp.ones((1, 3))))
    >>> model(leafax.ones(2, 3)).sum().backward()
    >>> model.get_parameter("bias").grad
    tensor([2.])
    """

    _recomputed: frozenset[str] = frozenset()

    def __init__(
        self, module: nn.Module, variables: Mapping[str, Any], *, rngs: Iterable[str] = (),
        tied: Mapping[str, str] | None = None, rules: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        check(module, variables)
        self._rules = {"params": "trainable", **checked_rules(rules or {}, variables)}
        leaves, self._treedef = jax.tree.flatten(variables)
        self._module, self._rngs = module, tuple(rngs)
        self._paths = paths(variables)  # with the collection before them
        made = [model.to_tensor(leaf) for leaf in leaves]
        once = tie(made, self._paths, tied or {})
        self._leaves = leafax.Leaves(made)
        self._borrowed = calls.Borrowed()
        self._parameters: Tensors = {}
        self._buffers: Tensors = {}
        self._full: dict[str, str] = {}  # a buffer's path -> with its collection
        for full, tensor, leaf in zip(self._paths, self._leaves, leaves, strict=True):
            if full not in once:
                continue
            self._enter(full, tensor)
            if isinstance(leaf, jax.Array):
                self._borrowed.lend(tensor, self._trains(full))
        self._training = True
        self._still: frozenset[str] = frozenset()
        self._quiet_names: frozenset[str] = frozenset()
        self._quiet_parts: frozenset[Path] = frozenset()
        self._evaluating: frozenset[Path] = frozenset()
        self._dtype: Any = None
        self._pures: dict[Any, Apply] = {}
        self._parts_made: dict[bool, dict[Path, Any]] = {}

    @classmethod
    def from_batch(
        cls, module: nn.Module, *args: Any, rngs: Iterable[str] = (),
        tied: Mapping[str, str] | None = None, rules: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> Model:  # fmt: skip
        """Make a model whose variables are made for a first batch, by `module.init`.

        Args:
          module: the module, unbound.
          args, kwargs: of its call, tensors or arrays; only shapes and dtypes count.
          rngs, tied, rules: as for the model itself. `manual_seed` determines the numbers.
        """
        names = ("params", "dropout", *rngs)
        keys = {
            name: jax.random.wrap_key_data(
                leafax.default_generator.key().jax(), impl="threefry2x32"
            )
            for name in names
        }
        args, kwargs = jax.tree.map(
            lambda x: x.detach().jax() if isinstance(x, leafax.Tensor) else x, (args, kwargs),
            is_leaf=lambda x: isinstance(x, leafax.Tensor),
        )  # fmt: skip
        variables = jax.jit(functools.partial(module.init, **kwargs))(keys, *args)
        return cls(module, variables, rngs=rngs, tied=tied, rules=rules)

    def _trains(self, full: str) -> bool:
        return self._rules.get(full.partition(".")[0], "buffer") == "trainable"

    def _enter(self, full: str, tensor: Any) -> None:
        name = full.partition(".")[2]
        taken = name in self._parameters or name in self._buffers
        if not full.startswith("params.") and (taken or f"params.{name}" in self._paths):
            name = full
        if self._trains(full):
            self._parameters[name] = tensor
            tensor.requires_grad_(model.differentiable(tensor))
            return
        self._buffers[name], self._full[name] = tensor, full

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._run("__call__", args, kwargs)

    def _call_on(self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        return self._run("__call__", args, kwargs, swap)

    def _run(
        self, method: str | Inside, args: Any, kwargs: dict[str, Any], swap: Any = None
    ) -> Any:
        leaves: tuple[Any, ...] = self._leaves
        if swap:
            leaves = tuple(swap.get(id(t), t) for t in leaves)
        function = getattr(type(self._module), method) if isinstance(method, str) else None
        flags = () if function is None else calls.flags_of(function)
        kwargs, training = calls.with_flags(flags, self._training, args, kwargs)
        dtype = self._dtype or model.autocast_dtype()
        state = self._still, self._evaluating, self._quiet_parts, self._recomputed
        key = (method, training, dtype, *state)
        pure = self._pures.get(key)
        if pure is None:
            pure = self._pures[key] = self._pure(method, training, bool(flags), dtype)
        if not self._borrowed.settled:
            self._borrowed.settle(training)
        if pure.draws is None and training:
            # Streams that it asks for only if it has them must be there to be asked for.
            pure.draws = bool(self._rngs) or needs_rng(pure, leaves, args, kwargs)
        try:
            return self._record(pure, self._leaves, leaves, args, kwargs)
        except flax.errors.InvalidRngError:
            if pure.draws:
                raise
            pure.draws = True  # a module that draws in evaluation too
        return self._record(pure, self._leaves, leaves, args, kwargs)

    def _pure(
        self, method: str | Inside, training: bool, flagged: bool, dtype: Any = None
    ) -> Apply:
        collections = {full.partition(".")[0] for full in self._paths} - {"params"}
        collections -= {name for name, rule in self._rules.items() if rule != "buffer"}
        mutable = collections if training else collections - {"batch_stats"}
        evaluating = self._evaluating | self._quiet_parts
        if not training and not flagged:
            evaluating = frozenset({()})
        written = tuple(sorted(mutable))
        mode = Mode(training, written, self._still, evaluating, dtype, self._recomputed)
        layout = (self._treedef, tuple(self._paths))
        return calls.shared(Apply(self._module, method, layout, mode, self._rngs))

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            if any(n.startswith(f"{name}.") for n in (*self._parameters, *self._buffers)):
                return Part(self, (name,))
            if callable(getattr(type(self._module), name, None)):
                return functools.partial(self._named_method, name)
            parts = sorted({n.partition(".")[0] for n in self._parameters})
            raise AttributeError(
                f"`{self._name()}` has no part or method `{name}`; the nearest parts are "
                f"{near(name, parts)}"
            )
        raise AttributeError(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            refuse_assignment(self, name, value)
        object.__setattr__(self, name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *first_names(self._tensors())})

    def _named_method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._run(name, args, kwargs)

    # ------------------------------------------------------------ state

    def _tensors(self) -> tuple[Tensors, Tensors]:
        return self._parameters, self._buffers

    def _statistics(self) -> list[str]:
        return [name for name, full in self._full.items() if full.startswith("batch_stats.")]

    def _stopped(self) -> set[str]:
        return {name for name, full in self._full.items() if full in self._still}

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        full = {self._full[name] for name in names}
        self._still = self._still | full if stop else self._still - full

    def _quieten(self, names: set[str], stop: bool) -> None:
        self._quiet_names = self._quiet_names | names if stop else self._quiet_names - names
        self._quiet_parts = frozenset(
            tuple(part.split(".")) if part else ()
            for part in parts_within(self._parameters, self._quiet_names)
        )

    def _quiet(self) -> set[str]:
        return set(self._quiet_names)

    def _parts(self) -> list[str]:
        return parents([*self._parameters, *self._buffers])

    def _recompute(self, paths: set[str]) -> None:
        self._recomputed = frozenset(paths)

    def compute_in(self, dtype: Any) -> Self:
        self._dtype = model.compute_dtype(dtype)
        return self

    def _loan(self) -> calls.Borrowed:
        return self._borrowed

    def _made(self, path: Path, training: bool) -> Any:
        """Return the submodule at a path as the model's call makes it; None if unknown."""
        made = self._parts_made.get(training)
        if made is None:
            seen = next((p.seen for (m, *_), p in reversed(self._pures.items())
                         if m == "__call__" and p.seen is not None), None)  # fmt: skip
            if seen is None:
                return None
            flags = calls.flags_of(type(self._module).__call__)
            pure = self._pure("__call__", training, bool(flags))
            made = self._parts_made[training] = made_in(pure, seen, training)
        return made.get(path)

    def _traced(self) -> Apply:
        for (method, *_), pure in reversed(self._pures.items()):
            if method == "__call__" and pure.seen is not None:
                return pure
        raise RuntimeError(
            f"which submodules `{self._name()}` has, and in what order, is known once it was "
            f"called: call it on a batch first"
        )

    def _classes(self) -> dict[str, type]:
        return classes(self._traced())

    def _order(self) -> list[str]:
        names = {id(t): name for name, t in self._parameters.items()}
        tensors = [self._leaves[i] for i in uses(self._traced())]
        return [names[id(t)] for t in tensors if id(t) in names]

    def _name(self) -> str:
        return type(self._module).__name__

    @property
    def training(self) -> bool:
        return self._training

    def train(self, mode: bool = True) -> Self:
        self._training, self._evaluating = bool(mode), frozenset()
        return self

    # ------------------------------------------------------------ back to Flax

    def variables(self) -> Any:
        """Return the Flax variables with the current arrays, not copied. Inverse of `Model`."""
        self._lend()
        return jax.tree.unflatten(self._treedef, [t.jax() for t in self._leaves])

    def to_flax(self) -> tuple[nn.Module, Any]:
        """Return the module and its variables: `module, variables = model.to_flax()`."""
        return self._module, self.variables()

    def mask(self) -> Any:
        flags = jax.tree.unflatten(self._treedef, [t.requires_grad for t in self._leaves])
        return flags["params"]


end_at_callers(__name__)
