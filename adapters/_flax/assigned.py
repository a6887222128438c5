"""Assigning to a model of a linen module, which is immutable."""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import numpy as np

import leafax

from .._models.select import Tensors


def first_names(tensors: tuple[Tensors, ...]) -> set[str]:
    """Return the names of what lies right below a model."""
    return {name.partition(".")[0] for part in tensors for name in part}


def refuse_assignment(model: Any, name: str, value: Any) -> NoReturn:
    """Raise for an assignment that would change nothing, with what does.

    Raises:
      AttributeError: always.
    """
    said = f"`{model._name()}.{name}` cannot be assigned"
    if hasattr(type(model), name):
        way = "model.train()` or `model.eval()" if name == "training" else f"model.{name}(...)"
        raise AttributeError(f"{said}: it is leafax's own; call `{way}`")
    parameters, buffers = model._tensors()
    if isinstance(value, (leafax.Tensor, jax.Array, np.ndarray)) or name in parameters | buffers:
        kind = "buffer" if name in buffers else "parameter"
        raise AttributeError(
            f"{said}: write to the tensor that it is, `model.get_{kind}({name!r}).data = value`"
        )
    raise AttributeError(
        f"{said}: a linen module is immutable. Make the module anew with what it should have "
        f"there, and take over the rest: `new = Model.from_batch(new_module, x)`, then "
        f"`new.load_state_dict({{n: t for n, t in model.state_dict().items() if not "
        f"n.startswith({name + '.'!r})}}, strict=False)`, and make the optimizer of "
        f"`new.parameters()`"
    )
