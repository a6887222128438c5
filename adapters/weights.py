"""The numbers of an `nn.Module` in a Flax model and back, in each one's conventions.

Dense kernels are transposed, convolutions' channels go last, those of transposed convolutions are
turned round in space, attention's projections are split into heads; a norm's `weight` is a `scale`.
What is copied there and back is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import jax
import numpy as np

import leafax
from leafax import nn
from leafax.functional.execution.tracebacks import end_at_callers

from ._files.from_torch import IGNORED, Names, Report, match, restored
from ._models.freezing import Freezing
from .torch import arrays_of, check, short_names

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


def to_flax(
    module: nn.Module, like: Any, *, names: Names = None, strict: bool = True
) -> tuple[Any, Report]:
    """Make Flax variables with the values of a module's parameters and buffers.

    Args:
      module: where the values come from.
      like: linen variables or an `nnx.State` (shapes are enough); or a model of `adapters.linen` or
        `adapters.nnx`, which takes the values over.
      names: from the module's paths to Flax's: a mapping with stars, `{"layers.*": "layer_*"}`,
        where what follows a match stays; or a function, None of which leaves a submodule out. Equal
        names need no mention. The rest is matched by shape, in order among those of equal shapes.
      strict: raise if anything is missing or unused.

    Returns:
      A tree like `like` with NumPy arrays, or the model; and what went where.

    Raises:
      ValueError: shapes that do not fit, names that are not there; with `strict`, what is missing
        or unused.

    >>> import jax, jax.numpy as jnp
    >>> from flax import linen
    >>> from leafax import nn
    >>> from leafax.adapters.weights import from_flax, to_flax
    >>> net, dense = nn.Linear(3, 2), linen.Dense(2)
    >>> variables, report = to_flax(net, dense.init(jax.random.key(0), jnp.ones((1, 3))))
    >>> print(report.table())
    bias    same         bias [2]
    weight  transposed   kernel [3, 2]
    >>> print(from_flax(net, variables))
    2 tensors taken, 0 of them matched by order and shape
    """
    targets, order = _targets(like)
    shapes = {name: tuple(x.shape) for name, x in targets.items()}
    state = arrays_of(module.state_dict())
    values, report = match(state, shapes, names, order, _transposed(module))
    check(report, strict)
    if isinstance(like, Freezing):
        given = {name: leafax.as_tensor(value) for name, value in values.items()}
        like.load_state_dict(given, strict=False)  # type: ignore[attr-defined]
        return like, report
    leaves, treedef = jax.tree.flatten(like)
    new = [
        np.asarray(values[name], x.dtype) if name in values else x
        for name, x in zip(short_names(like), leaves, strict=True)
    ]
    return jax.tree.unflatten(treedef, new), report


def from_flax(
    module: nn.Module, variables: Any, *, names: Names = None, strict: bool = True
) -> Report:
    """Put the values of Flax variables into a module's parameters and buffers.

    Args:
      module: what takes them over.
      variables: as `like` in `to_flax`, with values.
      names, strict: as in `to_flax`, from the module's paths to Flax's here too.

    Returns:
      What went where; `missing` are names of the module's, `unused` those of Flax's.

    Raises:
      ValueError: shapes that do not fit, names that are not there; with `strict`, what is missing
        or unused.

    >>> import numpy as np
    >>> layer = nn.Linear(3, 2, bias=False)
    >>> _ = from_flax(layer, {"params": {"kernel": np.ones((3, 2), np.float32)}})
    >>> layer.weight.sum().item()
    6.0
    """
    sources, order = _targets(variables)
    shapes = {name: tuple(x.shape) for name, x in sources.items()}
    state = arrays_of(module.state_dict())
    _, found = match(state, shapes, names, order, _transposed(module))
    report = Report(found.rows, found.unused, found.missing, found.notes)
    check(report, strict)
    made: dict[str, dict[str, Any]] = {}
    for row in report.rows:
        whole, _, part = row.source.partition("[")
        shape = state[whole].shape
        if part:  # one of the three projections of attention
            shape = (shape[0] // 3, *shape[1:])
        value = restored(row.how, _array(sources[row.target]), shape)
        made.setdefault(whole, {})[part] = value
    given = {}
    for name, parts in made.items():
        pieces = [parts[part] for part in _PARTS if part in parts]
        given[name] = leafax.tensor(np.concatenate(pieces) if len(pieces) > 1 else pieces[0])
    module.load_state_dict(given, strict=False)
    return report


def _targets(like: Any) -> tuple[dict[str, Any], Collection[str]]:
    """Return what a Flax tree or model has by path, and the order of use where it is known."""
    if not isinstance(like, Freezing):
        return dict(zip(short_names(like), jax.tree.leaves(like), strict=True)), ()
    parameters, buffers = like._tensors()
    tensors = {n: t for n, t in {**parameters, **buffers}.items() if n.split(".")[-1] not in _KEYS}
    try:
        return tensors, like._order()
    except RuntimeError:  # it was not called yet
        return tensors, ()


_PARTS = ("", "query]", "key]", "value]")  # what follows `[` in the name of a projection
_KEYS = ("key", "count", *IGNORED)  # random state, and what only PyTorch has


def _transposed(module: nn.Module) -> set[str]:
    return {path for path, part in module.named_modules() if isinstance(part, _TRANSPOSED)}


def _array(x: Any) -> Any:
    return np.asarray(x.detach().jax() if isinstance(x, leafax.Tensor) else x)


end_at_callers(__name__)
