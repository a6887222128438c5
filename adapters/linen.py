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
from leafax.functional import paths

from . import _call, _model
from ._depth import uses
from ._linen import Apply, Inside, Mode, NotAssigned, Path, classes, made_in, needs_rng, within
from ._select import Tensors, check_rule, near, parts_within


class Model(_model.Model):
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

    def __init__(
        self, module: nn.Module, variables: Mapping[str, Any], *, rngs: Iterable[str] = (),
        tied: Mapping[str, str] | None = None, rules: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        _check(module, variables)
        self._rules = {"params": "trainable", **_checked_rules(rules or {}, variables)}
        leaves, self._treedef = jax.tree.flatten(variables)
        self._module, self._rngs = module, tuple(rngs)
        self._paths = paths(variables)  # with the collection before them
        made = [_model.to_tensor(leaf) for leaf in leaves]
        once = _tie(made, self._paths, tied or {})
        self._leaves = leafax.Leaves(made)
        self._borrowed = _call.Borrowed()
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
        """A model whose variables are made for a first batch, by `module.init`.

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
            tensor.requires_grad_(_model.differentiable(tensor))
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
        flags = () if function is None else _call.flags_of(function)
        kwargs, training = _call.with_flags(flags, self._training, args, kwargs)
        dtype = self._dtype or _model.autocast_dtype()
        key = (method, training, self._still, self._evaluating, self._quiet_parts, dtype)
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
        mode = Mode(training, tuple(sorted(mutable)), self._still, evaluating, dtype)
        layout = (self._treedef, tuple(self._paths))
        return _call.shared(Apply(self._module, method, layout, mode, self._rngs))

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

    def compute_in(self, dtype: Any) -> Self:
        self._dtype = _model.compute_dtype(dtype)
        return self

    def _loan(self) -> _call.Borrowed:
        return self._borrowed

    def _made(self, path: Path, training: bool) -> Any:
        """The submodule at a path as the model's call makes it in this mode; None if unknown."""
        made = self._parts_made.get(training)
        if made is None:
            seen = next((p.seen for (m, *_), p in reversed(self._pures.items())
                         if m == "__call__" and p.seen is not None), None)  # fmt: skip
            if seen is None:
                return None
            flags = _call.flags_of(type(self._module).__call__)
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
        """The Flax variables with the current arrays, not copied. Inverse of `Model`."""
        self._lend()
        return jax.tree.unflatten(self._treedef, [t.jax() for t in self._leaves])

    def to_flax(self) -> tuple[nn.Module, Any]:
        """The module and its variables: `module, variables = model.to_flax()`."""
        return self._module, self.variables()

    def mask(self) -> Any:
        flags = jax.tree.unflatten(self._treedef, [t.requires_grad for t in self._leaves])
        return flags["params"]


class Part(_model.Model):
    """A submodule of a linen model: the same tensors, by paths from here."""

    def __init__(self, root: Model, path: Path) -> None:
        self._root, self._path = root, path
        self._before = ".".join(path) + "."

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the submodule on its own.

        Raises:
          AttributeError: a compact method makes it, and the model was not called yet.
        """
        return self._call_on({}, args, kwargs)

    def _call_on(
        self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any], method: str = "__call__"
    ) -> Any:
        root, training = self._root, self.training
        made = root._parts_made.get(training, {}).get(self._path)
        try:
            return root._run(Inside(self._path, training, made, method), args, kwargs, swap)
        except NotAssigned:
            made = root._made(self._path, training)
            if made is None:
                raise
        return root._run(Inside(self._path, training, made, method), args, kwargs, swap)

    def __getattr__(self, name: str) -> Any:
        before = f"{self._before}{name}."
        if not name.startswith("_") and any(
            n.startswith(before) for part in self._root._tensors() for n in part
        ):
            return Part(self._root, (*self._path, name))
        kind = None if name.startswith("_") else self._kind()
        if callable(getattr(kind, name, None)):
            return functools.partial(self._named_method, name)
        raise AttributeError(f"`{self._before[:-1]}` has no part or method `{name}`")

    def _kind(self) -> type | None:
        """The submodule's class, as far as it is known."""
        try:
            return self._root._classes().get(self._before[:-1])
        except RuntimeError:  # the model was not called yet
            return type(getattr(self._root._module, self._path[0], None))

    def _named_method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        return self._call_on({}, args, kwargs, name)

    def _tensors(self) -> tuple[Tensors, Tensors]:
        below, n = self._before, len(self._before)
        parameters, buffers = self._root._tensors()
        return (
            {name[n:]: t for name, t in parameters.items() if name.startswith(below)},
            {name[n:]: t for name, t in buffers.items() if name.startswith(below)},
        )

    def _statistics(self) -> list[str]:
        n = len(self._before)
        return [s[n:] for s in self._root._statistics() if s.startswith(self._before)]

    def _stopped(self) -> set[str]:
        n = len(self._before)
        return {s[n:] for s in self._root._stopped() if s.startswith(self._before)}

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        self._root._stop_statistics({self._before + name for name in names}, stop)

    def _quieten(self, names: set[str], stop: bool) -> None:
        self._root._quieten({self._before + name for name in names}, stop)

    def _quiet(self) -> set[str]:
        n = len(self._before)
        return {s[n:] for s in self._root._quiet() if s.startswith(self._before)}

    def compute_in(self, dtype: Any) -> Self:
        raise RuntimeError("tell the whole model what to compute in, not a part of it")

    def _loan(self) -> _call.Borrowed:
        return self._root._loan()

    def _adapted_by(self) -> dict[int, Any]:
        return self._root._adapted_by()

    def _classes(self) -> dict[str, type]:
        n = len(self._before)
        found = self._root._classes()
        return {path[n:]: kind for path, kind in found.items() if path.startswith(self._before)}

    def _order(self) -> list[str]:
        n = len(self._before)
        return [name[n:] for name in self._root._order() if name.startswith(self._before)]

    def _name(self) -> str:
        return f"{self._root._name()}.{self._before[:-1]}"

    @property
    def training(self) -> bool:
        return self._root.training and not within(self._path, self._root._evaluating)

    def train(self, mode: bool = True) -> Self:
        root, path = self._root, self._path
        if not mode:
            root._evaluating |= {path}
            return self
        kept = frozenset(p for p in root._evaluating if p[: len(path)] != path)
        if not root._training or within(path, kept):
            raise RuntimeError(
                f"`{self._name()}` cannot train while what it is part of evaluates: call "
                f"`model.train()`, then `eval()` on the parts that should not"
            )
        root._evaluating = kept
        return self

    def mask(self) -> Any:
        return functools.reduce(lambda tree, name: tree[name], self._path, self._root.mask())


def _tie(tensors: list[Any], paths: list[str], tied: Mapping[str, str]) -> set[str]:
    """Put one tensor in the places of those that are tied; the paths of all others."""
    place = {full: i for i, full in enumerate(paths)}
    known = [full.removeprefix("params.") for full in paths if full.startswith("params.")]
    once = set(paths)
    for path, source in tied.items():
        for name in (path, source):
            if f"params.{name}" not in place:
                raise ValueError(
                    f"no parameter `{name}` to tie; the nearest are {near(name, known)}"
                )
        i, j = place[f"params.{path}"], place[f"params.{source}"]
        if tensors[i].shape != tensors[j].shape:
            raise ValueError(
                f"`{path}` has shape {list(tensors[i].shape)}, `{source}` "
                f"{list(tensors[j].shape)}: they cannot be one parameter"
            )
        tensors[i] = tensors[j]
        once.discard(f"params.{path}")
    return once


def _checked_rules(rules: Mapping[str, str], variables: Mapping[str, Any]) -> Mapping[str, str]:
    for collection, rule in rules.items():
        if collection not in variables:
            raise ValueError(
                f"no collection `{collection}` to have a rule; there are {sorted(variables)}"
            )
        check_rule(collection, rule)
    return rules


def _check(module: Any, variables: Any) -> None:
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"`module` must be a linen module, got `{type(module).__name__}`; for an nnx module "
            f"use `leafax.adapters.nnx.Model`"
        )
    if not isinstance(variables, Mapping) or (variables and "params" not in variables):
        got = list(variables) if isinstance(variables, Mapping) else type(variables).__name__
        raise ValueError(
            f"`variables` must be what `module.init` returns, with the collection `params`; got "
            f"{got}. Wrap bare parameters: `{{'params': params}}`"
        )
