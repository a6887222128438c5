"""Freezing of a model by pattern, class and depth, and groups for an optimizer.

Models of both Flax libraries and `nn.Module` (by `_module.ModuleView`) say what they consist of;
all else is here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Self

from .depth import levels, node_of
from .groups import groups, layerwise
from .select import Tensors, choose, with_their_parameters
from .sharding import shard


class Freezing(ABC):
    """The part of a model that says what trains."""

    # ------------------------------------------------------------ what subclasses say

    @abstractmethod
    def _tensors(self) -> tuple[Tensors, Tensors]:
        """Return parameters and buffers by dotted path."""

    @abstractmethod
    def _statistics(self) -> Iterable[str]:
        """Return paths of the buffers that are BatchNorm statistics."""

    @abstractmethod
    def _stopped(self) -> set[str]:
        """Return paths of the statistics that were stopped."""

    @abstractmethod
    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        """Keep these statistics as they are, and normalise by them; or let them move again."""

    @abstractmethod
    def _quieten(self, names: set[str], stop: bool) -> None:
        """Switch off dropout in parts with no parameters but these and earlier ones; or undo it."""

    @abstractmethod
    def _quiet(self) -> set[str]:
        """Return the names that were given to `_quieten`."""

    @abstractmethod
    def _classes(self) -> dict[str, type]:
        """Return the class of each submodule, by path."""

    @abstractmethod
    def _order(self) -> list[str]:
        """Return paths of parameters in the order of their first use in the last call."""

    @abstractmethod
    def _unsettle(self) -> None:
        """Note that a step may replace arrays which it did not replace before."""

    @property
    @abstractmethod
    def training(self) -> bool:
        """Return True if calls run the model in its training mode."""

    @abstractmethod
    def train(self, mode: bool = True) -> Self:
        """Make calls drop out, normalise by the batch and update statistics; return the model."""

    def _modes(self) -> Any:
        """Return what `_set_modes` puts back: plain Python values."""
        return self.training

    def _set_modes(self, modes: Any) -> None:
        self.train(modes)

    # ------------------------------------------------------------ freezing

    def freeze(
        self, *what: Any, stats: bool = False, all_but_last: int | None = None,
        blocks: str | None = None,
    ) -> Self:  # fmt: skip
        """Stop training the selected parameters; returns the model.

        A frozen parameter does not require grad: no backward pass, residual, optimizer state,
        decay or norm includes it, and a gradient that it had is forgotten.

        Args:
          what: globs over dotted paths (`"backbone"` is all below it, `"**.bias"` every bias),
            compiled regular expressions, or a predicate `(path, tensor) -> bool`, as in
            `leafax.functional.select`; and classes: `nn.LayerNorm` is all such submodules.
            Nothing selects all.
          all_but_last: also freeze all but the last n blocks and what follows them.
          blocks: a glob for the blocks, `"encoder.layer_*"`; the top-level parts by default.
            Their order is that of their use in the model's last call.
          stats: also stop the BatchNorm statistics of the selected part: it then normalises by
            them, in training mode too. Statistics are selected by their own path, or with all
            parameters of their module. Dropout does nothing in modules all of whose parameters
            are selected.

        Raises:
          ValueError: a pattern that matches nothing; the message has the nearest paths.
          RuntimeError: classes of a linen model, or the order of blocks, before its first call.

        >>> import jax, jax.numpy as jnp
        >>> from flax import linen as nn
        >>> from leafax.adapters import linen
        >>> module = nn.Sequential([nn.Dense(4), nn.Dense(2)])
        >>> model = linen.Model(module, module.init(jax.random.key(0), jnp.ones((1, 3))))
        >>> _ = model.freeze("layers_0")
        >>> [name for name, p in model.named_parameters() if p.requires_grad]
        ['layers_1.bias', 'layers_1.kernel']
        """
        parameters, buffers = self._tensors()
        still = {name: buffers[name] for name in self._statistics()} if stats else {}
        early = set() if all_but_last is None else self._early(all_but_last, blocks)
        chosen = early if early and not what else choose(parameters | still, what, self._classes)
        chosen = chosen | early
        for name in chosen & parameters.keys():
            parameters[name].requires_grad_(False)
            parameters[name].grad = None
        if stats:
            self._stop_statistics(with_their_parameters(chosen, parameters, still), True)
            self._quieten(chosen & parameters.keys(), True)
        return self

    def unfreeze(self, *what: Any, last: int | None = None, blocks: str | None = None) -> Self:
        """Train the selected parameters, and let the selected statistics move; undoes `freeze`.

        Args:
          what: as in `freeze`. Parameters that have no gradient (integers) stay frozen.
          last: also unfreeze the last n blocks and what follows them: one more from time to time
            is gradual unfreezing.
          blocks: as in `freeze`.

        Raises:
          ValueError: a pattern that matches nothing; the message has the nearest paths.
        """
        parameters, buffers = self._tensors()
        still = {name: buffers[name] for name in self._statistics()}
        if last is None:
            chosen = choose(parameters | still, what, self._classes)
        else:
            chosen = parameters.keys() - self._early(last, blocks)
            chosen |= choose(parameters | still, what, self._classes) if what else set()
        for name in chosen & parameters.keys():
            if differentiable(parameters[name]):
                parameters[name].requires_grad_(True)
        self._unsettle()
        self._stop_statistics(with_their_parameters(chosen, parameters, still), False)
        self._quieten(chosen & parameters.keys(), False)
        return self

    def _early(self, n: int, blocks: str | None) -> set[str]:
        """Return the paths that come before the last n blocks."""
        level = self._levels(blocks)
        parts = len({node_of(name, blocks) for name in level} - {None})
        if not 0 <= n <= parts:
            raise ValueError(f"there are {parts} blocks, so the last {n} of them do not exist")
        return {name for name, at in level.items() if at <= parts - n}

    # ------------------------------------------------------------ groups

    def groups(self, options: Mapping[Any, Mapping[str, Any]], **rest: Any) -> list[dict[str, Any]]:
        """Make parameter groups by path, for any optimizer of `leafax.optim`.

        Frozen parameters are in their groups too: an optimizer leaves them alone until they are
        thawed.

        Args:
          options: for each pattern (glob, compiled regular expression, predicate, module class,
            or a tuple of them) the group's hyperparameters: `lr`, `weight_decay`, with
            `optim.Optax` also `transform`. A parameter belongs to the first that selects it.
          rest: hyperparameters of the group of all others, where not the optimizer's defaults.

        Returns:
          A list of dicts, in the order of the patterns; `params` are `(path, tensor)` pairs.

        Raises:
          ValueError: a pattern that selects nothing, or nothing that is left.

        >>> from flax import nnx
        >>> from leafax import optim
        >>> from leafax.adapters.nnx import Model
        >>> model = Model(nnx.Linear(3, 2, rngs=nnx.Rngs(0)))
        >>> groups = model.groups({"bias": {"weight_decay": 0.0}})
        >>> [group["param_names"] for group in optim.AdamW(groups, lr=1e-3).param_groups]
        [['bias'], ['kernel']]
        """
        return groups(self._tensors()[0], options, self._classes, rest)

    def layerwise_groups(
        self, lr: float, decay: float, *, blocks: str | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Make parameter groups whose rate falls from output to input, block by block.

        What follows the last block has `lr`, the last block `lr * decay`, the one before it
        `lr * decay**2`, and what comes before the first block the smallest.

        Args:
          lr: the head's rate.
          decay: between 0 and 1.
          blocks: a glob for the blocks, `"encoder.layer_*"`; the top-level parts by default.
            Their order is that of their use in the model's last call.
          options: other hyperparameters of all groups.

        Raises:
          RuntimeError: the model was not called yet, so that the order is not known.
        """
        return layerwise(self._tensors()[0], self._levels(blocks), lr, decay, options)

    # ------------------------------------------------------------ several devices

    def shard(self, mesh: Any, rules: Mapping[Any, Any] | None = None) -> Self:
        """Place the tensors on a mesh of devices, split as rules say; returns the model.

        Gradients, the state of optimizers that exist or will be made, and whatever is written
        into these tensors lie as they do. Steps stay one program, which XLA splits.

        Args:
          mesh: a `jax.sharding.Mesh`.
          rules: for each pattern (glob, compiled regular expression, predicate, module class, or
            a tuple of them) a `PartitionSpec`, or a function `(path, tensor) -> PartitionSpec`.
            The first that selects a tensor counts. A tensor that none selects lies whole on each
            device.

        Raises:
          TypeError: no mesh, or no spec.
          ValueError: a pattern that matches nothing, or nothing that is left, and specs that do
            not fit a tensor's shape or the mesh, with its path; then nothing was moved.

        >>> import jax
        >>> from flax import nnx
        >>> from jax.sharding import PartitionSpec as P
        >>> from leafax.adapters.nnx import Model
        >>> mesh = jax.make_mesh((1,), ("data",))
        >>> model = Model(nnx.Linear(4, 2, rngs=nnx.Rngs(0))).shard(mesh, {"kernel": P("data")})
        >>> model.get_parameter("kernel").jax().sharding.spec == P('data')
        True
        """
        parameters, buffers = self._tensors()
        shard(parameters | buffers, mesh, rules or {}, self._classes)
        me: Any = self
        for factors in me._adapted_by().values():
            factors.follow_kernel()
        return self

    def _levels(self, blocks: str | None) -> dict[str, int]:
        parameters = self._tensors()[0]
        return levels(self._order(), parameters, blocks)


def differentiable(t: Any) -> bool:
    """Return True if a tensor of this dtype can require grad."""
    return bool(t.is_floating_point() or t.is_complex())
