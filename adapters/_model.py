"""What models of both Flax libraries share: leaf tensors by dotted path, and how to freeze them.

A model holds its Flax variables as leafax tensors. Parameters are leaves that require grad;
everything else that the module carries (statistics, caches, random state) is a buffer. The
subclasses say how a call becomes one pure function of those leaves; `_call.py` records it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import jax
import jax.numpy as jnp

import leafax

from ._call import Borrowed
from ._depth import levels, node_of
from ._groups import groups, layerwise
from ._looking import Looking
from ._select import Tensors, choose, near, with_their_parameters


class Incompatible(NamedTuple):
    """What `load_state_dict` found no place or no value for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class Model(Looking):
    """Base of `adapters.linen.Model` and `adapters.nnx.Model`."""

    # ------------------------------------------------------------ what subclasses say

    def _tensors(self) -> tuple[Tensors, Tensors]:
        """Parameters and buffers by dotted path."""
        raise NotImplementedError

    def _statistics(self) -> Iterable[str]:
        """Paths of the buffers that are BatchNorm statistics."""
        raise NotImplementedError

    def _stopped(self) -> set[str]:
        """Paths of the statistics that were stopped."""
        raise NotImplementedError

    def _stop_statistics(self, names: set[str], stop: bool) -> None:
        """Keep these statistics as they are, and normalise by them; or let them move again."""
        raise NotImplementedError

    def _quieten(self, names: set[str], stop: bool) -> None:
        """Let dropout do nothing in the parts all of whose parameters are among these (and
        earlier) names; or undo it."""
        raise NotImplementedError

    def _quiet(self) -> set[str]:
        """The names that were given to `_quieten`."""
        raise NotImplementedError

    def _classes(self) -> dict[str, type]:
        """The class of each submodule, by path."""
        raise NotImplementedError

    def _order(self) -> list[str]:
        """Paths of parameters in the order of their first use in the last call."""
        raise NotImplementedError

    def _name(self) -> str:
        """The name of the module's class."""
        raise NotImplementedError

    @property
    def training(self) -> bool:
        """Whether calls run the module in its training mode."""
        raise NotImplementedError

    def train(self, mode: bool = True) -> Self:
        """Let calls drop out, normalise by the batch and update statistics; returns the model."""
        raise NotImplementedError

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module on tensors, as one recorded op."""
        raise NotImplementedError

    def _call_on(self, swap: Mapping[int, Any], args: Any, kwargs: dict[str, Any]) -> Any:
        """Call with other tensors in place of those with these ids."""
        raise NotImplementedError

    def mask(self) -> Any:
        """A mask of the Flax parameters: True where trainable, for plain JAX and optax users."""
        raise NotImplementedError

    def _loan(self) -> Borrowed:
        """The arrays that the model was made of, until a step replaces them."""
        raise NotImplementedError

    # ------------------------------------------------------------ tensors by path

    def named_parameters(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Each parameter with its dotted path; a shared one appears once."""
        return _named(self._tensors()[0], prefix, recurse)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Each parameter, frozen ones too."""
        return (t for _, t in self.named_parameters(recurse=recurse))

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any]]:
        """Each tensor that is no parameter, with its dotted path."""
        return _named(self._tensors()[1], prefix, recurse)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Each tensor that is no parameter: statistics, caches, random state."""
        return (t for _, t in self.named_buffers(recurse=recurse))

    def get_parameter(self, path: str) -> Any:
        """The parameter at a dotted path."""
        return _get(self._tensors()[0], path, "parameter")

    def get_buffer(self, path: str) -> Any:
        """The buffer at a dotted path."""
        return _get(self._tensors()[1], path, "buffer")

    def get_submodule(self, path: str) -> Any:
        """The part of the model at a dotted path; `""` is the model itself."""
        part: Any = self
        for name in path.split(".") if path else ():
            part = part[int(name)] if name.isdigit() else getattr(part, name)
        return part

    # ------------------------------------------------------------ modes

    def eval(self) -> Self:
        """Let calls keep all units, normalise by the statistics and leave them alone."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Freeze or unfreeze all parameters; returns the model."""
        return self.unfreeze() if requires_grad else self.freeze()

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or set them to zero."""
        for p in self.parameters():
            if set_to_none:
                p.grad = None
            elif p.grad is not None:
                p.grad = leafax.zeros_like(p.grad)

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
        self._loan().settled = False
        self._stop_statistics(with_their_parameters(chosen, parameters, still), False)
        self._quieten(chosen & parameters.keys(), False)
        return self

    def groups(self, options: Mapping[Any, Mapping[str, Any]], **rest: Any) -> list[dict[str, Any]]:
        """Parameter groups by path, for any optimizer of `leafax.optim`.

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
        """Parameter groups whose rate falls from the output to the input, block by block.

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

    def _levels(self, blocks: str | None) -> dict[str, int]:
        parameters = self._tensors()[0]
        return levels(self._order(), parameters, blocks)

    def functional_call(self, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call the model with other tensors in place of its own, by path.

        What the call updates among them (statistics) is written into the given tensors.

        Args:
          tensors: tensors by path of a parameter or buffer, in its shape; the rest are its own.
          args, kwargs: of the call.

        Raises:
          AttributeError: a path that the model does not have; the message has the nearest ones.
        """
        mine = {**self._tensors()[0], **self._tensors()[1]}
        swap = {id(_get(mine, name, "tensor")): t for name, t in tensors.items()}
        return self._call_on(swap, args, kwargs)

    def _early(self, n: int, blocks: str | None) -> set[str]:
        """What comes before the last n blocks."""
        level = self._levels(blocks)
        parts = len({node_of(name, blocks) for name in level} - {None})
        if not 0 <= n <= parts:
            raise ValueError(f"there are {parts} blocks, so the last {n} of them do not exist")
        return {name for name, at in level.items() if at <= parts - n}

    # ------------------------------------------------------------ saving

    def state_dict(self) -> Tensors:
        """All tensors by path, as they are now.

        Unlike PyTorch's, the values do not follow the model as it trains on: arrays are
        immutable, so a snapshot costs no copy.
        """
        self._lend()
        parameters, buffers = self._tensors()
        return {name: leafax.as_tensor(t.jax()) for name, t in (parameters | buffers).items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Incompatible:
        """Take over values by path: tensors, JAX or NumPy arrays.

        Args:
          state_dict: values by path; their shapes must agree, dtypes are converted.
          strict: raise for paths that are missing or unexpected.

        Returns:
          `(missing_keys, unexpected_keys)`.

        Raises:
          RuntimeError: with all that does not fit; then nothing was loaded.
        """
        parameters, buffers = self._tensors()
        mine = parameters | buffers
        found = Incompatible(
            [name for name in mine if name not in state_dict],
            [name for name in state_dict if name not in mine],
        )
        given = {n: leafax.as_tensor(v) for n, v in state_dict.items() if n in mine}
        errors = _mismatches(mine, given)
        if strict:
            errors = [*_listed("Unexpected", found[1]), *_listed("Missing", found[0]), *errors]
        if errors:
            text = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {self._name()}:\n\t{text}")
        for name, value in given.items():
            mine[name].data = value.to(mine[name].dtype)
        self._lend()
        return found

    def _lend(self) -> None:
        """Note that all arrays may be held elsewhere too."""
        for parameter, tensors in zip((True, False), self._tensors(), strict=True):
            for t in tensors.values():
                self._loan().lend(t, parameter)

    def __repr__(self) -> str:
        parameters, buffers = self._tensors()
        total = sum(p.numel() for p in parameters.values())
        trained = sum(p.numel() for p in parameters.values() if p.requires_grad)
        return (
            f"{self._name()}({len(parameters)} parameters of {total:,} numbers, {trained:,} "
            f"trainable; {len(buffers)} buffers; {'training' if self.training else 'evaluating'})"
        )


def to_tensor(leaf: Any) -> Any:
    """A Flax leaf as a tensor: a JAX array is held without a copy, NumPy's is copied."""
    return leafax.as_tensor(leaf if isinstance(leaf, jax.Array) else jnp.array(leaf))


def differentiable(t: Any) -> bool:
    """Whether a tensor of this dtype can require grad."""
    return bool(t.is_floating_point() or t.is_complex())


def _named(tensors: Tensors, prefix: str, recurse: bool) -> Iterator[tuple[str, Any]]:
    before = f"{prefix}." if prefix else ""
    return ((before + n, t) for n, t in tensors.items() if recurse or "." not in n)


def _get(tensors: Tensors, path: str, kind: str) -> Any:
    if path not in tensors:
        raise AttributeError(f"no {kind} `{path}`; the nearest are {near(path, tensors)}")
    return tensors[path]


def _listed(kind: str, names: list[str]) -> list[str]:
    listed = ", ".join(f'"{name}"' for name in names)
    return [f"{kind} key(s) in state_dict: {listed}. "] if names else []


def _mismatches(mine: Tensors, given: Tensors) -> list[str]:
    return [
        f"size mismatch for {name}: copying a param with shape {value.shape} from checkpoint, the "
        f"shape in current model is {mine[name].shape}."
        for name, value in given.items()
        if value.shape != mine[name].shape
    ]
