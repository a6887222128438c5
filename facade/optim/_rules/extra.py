"""Extra arguments of a step for optax: the loss, say, that a transformation watches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..._core.handle import Handle


class Extra(NamedTuple):
    """Arguments of a step, by how they enter its program.

    Attributes:
      names: of the tensors of the program, and then of the numbers.
      tensors: what is pending, so that it is computed by the same program.
      numbers: what is known already.
    """

    names: tuple[tuple[str, ...], tuple[str, ...]]
    tensors: tuple[Any, ...]
    numbers: list[float]


NOTHING = Extra(((), ()), (), [])


def extra_of(given: dict[str, Any]) -> Extra:
    """Sort the arguments of a step.

    Raises:
      TypeError: one is neither a tensor of one element nor a number.
    """
    if not given:
        return NOTHING
    tensors, numbers = {}, {}
    for name, x in given.items():
        if isinstance(x, Handle) and x._v.numel == 1:
            if x._v.index >= 0:
                tensors[name] = x.reshape(()) if x._v.shape else x  # type: ignore[attr-defined]
            else:
                numbers[name] = float(x.detach())  # type: ignore[attr-defined]
        elif isinstance(x, (int, float, np.number)) or getattr(x, "shape", None) == ():
            numbers[name] = float(x)
        else:
            raise TypeError(
                f"Optax.step(): `{name}` must be a number or a tensor of one element, got "
                f"{type(x).__name__}"
            )
    return Extra((tuple(tensors), tuple(numbers)), tuple(tensors.values()), [*numbers.values()])
