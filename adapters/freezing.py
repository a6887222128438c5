"""Freezing, parameter groups and watching by path, for an `nn.Module` as for a Flax model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leafax.functional.execution.tracebacks import end_at_callers

from ._inside.watch import Watched
from ._modules.module import model_of


def freeze(
    model: Any, *what: Any, stats: bool = False, all_but_last: int | None = None,
    blocks: str | None = None,
) -> Any:  # fmt: skip
    """Stop training the selected parameters; return the model.

    A frozen parameter does not require grad: no backward pass, residual, optimizer state, decay or
    norm includes it, and a gradient that it had is forgotten.

    Args:
      model: a `leafax.nn.Module`, or a model of `adapters.linen` or `adapters.nnx`.
      what: globs over dotted paths (`"features"` is all below it, `"**.bias"` every bias),
        compiled regular expressions, predicates `(path, tensor) -> bool`, or classes of modules:
        `nn.LayerNorm` is all such submodules. Nothing selects all.
      all_but_last: also freeze all but the last n blocks and what follows them.
      blocks: a glob for the blocks, `"layers.*"`; the children by default. In an `nn.Module` their
        order is that of registration, in a Flax model that of their use in its last call.
      stats: also stop the batch norms' statistics of the selected part: it then normalises by
        them, whatever `train()` says. Dropout does nothing in modules all of whose parameters are
        selected.

    Returns:
      The model itself.

    Raises:
      ValueError: a pattern that matches nothing; the message has the nearest paths.
      TypeError: `model` is neither.

    >>> from leafax import nn
    >>> from leafax.adapters.freezing import freeze
    >>> net = freeze(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)), "0", "1")
    >>> [name for name, p in net.named_parameters() if p.requires_grad]
    ['2.weight', '2.bias']
    """
    model_of(model).freeze(*what, stats=stats, all_but_last=all_but_last, blocks=blocks)
    return model


def unfreeze(model: Any, *what: Any, last: int | None = None, blocks: str | None = None) -> Any:
    """Train the selected parameters and let the selected statistics move; return the model.

    Args:
      model, what, blocks: as in `freeze`.
      last: also unfreeze the last n blocks and what follows them: one more from time to time is
        gradual unfreezing.

    Returns:
      The model itself.

    Raises:
      ValueError: a pattern that matches nothing; the message has the nearest paths.

    >>> from leafax import nn
    >>> from leafax.adapters.freezing import freeze, unfreeze
    >>> net = freeze(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)))
    >>> [name for name, p in unfreeze(net, last=1).named_parameters() if p.requires_grad]
    ['2.weight', '2.bias']
    """
    model_of(model).unfreeze(*what, last=last, blocks=blocks)
    return model


def groups(
    model: Any, options: Mapping[Any, Mapping[str, Any]], **rest: Any
) -> list[dict[str, Any]]:
    """Make parameter groups by path, for any optimizer of `leafax.optim`.

    Frozen parameters are in their groups too: an optimizer leaves them alone until they are thawed.

    Args:
      model: as in `freeze`.
      options: for each pattern (of those that `freeze` takes, or a tuple of them) the group's
        hyperparameters. A parameter belongs to the first that selects it.
      rest: hyperparameters of the group of all others, where not the optimizer's defaults.

    Returns:
      A list of dicts, in the order of the patterns; `params` are `(path, tensor)` pairs.

    Raises:
      ValueError: a pattern that selects nothing, or nothing that is left.

    >>> from leafax import nn, optim
    >>> from leafax.adapters.freezing import groups
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4))
    >>> made = optim.AdamW(groups(net, {("**.bias", nn.LayerNorm): {"weight_decay": 0.0}}))
    >>> [(group["param_names"], group["weight_decay"]) for group in made.param_groups]
    [(['0.bias', '1.weight', '1.bias'], 0.0), (['0.weight'], 0.01)]
    """
    found: list[dict[str, Any]] = model_of(model).groups(options, **rest)
    return found


def layerwise_groups(
    model: Any, lr: float, decay: float, *, blocks: str | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Make parameter groups whose rate falls from the output to the input, block by block.

    Args:
      model, blocks: as in `freeze`.
      lr: the head's rate; the last block has `lr * decay`, the one before it `lr * decay**2`.
      decay: between 0 and 1.
      options: other hyperparameters of all groups.

    Returns:
      A list of dicts, the head's first; `params` are `(path, tensor)` pairs.

    >>> from leafax import nn
    >>> from leafax.adapters.freezing import layerwise_groups
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    >>> [(g["lr"], [n for n, _ in g["params"]]) for g in layerwise_groups(net, 0.1, 0.5)]
    [(0.1, ['1.weight', '1.bias']), (0.05, ['0.weight', '0.bias'])]
    """
    found: list[dict[str, Any]] = model_of(model).layerwise_groups(
        lr, decay, blocks=blocks, **options
    )
    return found


def mask(model: Any) -> Any:
    """Tell which parameters train, as a mask for plain JAX and optax.

    Args:
      model: as in `freeze`.

    Returns:
      True where trainable: by path for an `nn.Module`, in the tree of a Flax model's parameters.

    >>> from leafax import nn
    >>> from leafax.adapters.freezing import freeze, mask
    >>> mask(freeze(nn.Linear(3, 2), "bias"))
    {'weight': True, 'bias': False}
    """
    return model_of(model).mask()


def watch(model: Any, *what: Any, grad: bool = True) -> Watched:
    """Keep the activations of submodules in each call from now on, and their gradients.

    The call stays in the step's compiled program.

    Args:
      model: as in `freeze`.
      what: paths of submodules: globs (`"layers.*"`, or with slashes), compiled regular
        expressions that match whole paths.
      grad: activations retain their gradients: `.grad` is there after `backward()`. What no
        gradient flows to (the part before it is frozen) becomes a leaf that requires grad.

    Returns:
      A mapping from path to activation, renewed by each call; `remove()`, or the end of a `with`
      block, ends it.

    Raises:
      ValueError: nothing matches; the message has the nearest paths.

    >>> import leafax
    >>> from leafax import nn
    >>> from leafax.adapters.freezing import watch
    >>> net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    >>> with watch(net, "0") as seen:
    ...     net(leafax.ones(2, 3)).sum().backward()
    >>> seen["0"].grad.shape
    torch.Size([2, 4])
    """
    found: Watched = model_of(model).watch(*what, grad=grad)
    return found


end_at_callers(__name__)
