"""`torch.while_loop`: a function called again while another one says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Sequence[Any]
) -> Any:
    """Call a function with what it returned, while a condition of that holds.

    Args:
      cond_fn: returns a bool, or a tensor of one, which is looked at.
      body_fn: returns as many values as it takes.
      carried_inputs: the values at the beginning, a tuple or list.

    Returns:
      The last values.

    Raises:
      RuntimeError: a function cannot be called, or the values are neither tuple nor list.

    >>> import leafax
    >>> while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, 2 * x), (0, leafax.ones(2)))
    (3, tensor([8., 8.]))
    """
    if not (callable(cond_fn) and callable(body_fn)):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(f"carried_inputs must be a tuple or list but got {type(carried_inputs)}")
    values: Any = tuple(carried_inputs)
    while cond_fn(*values):
        found = body_fn(*values)
        if not isinstance(found, tuple | list):
            raise AssertionError(f"body_fn should return a tuple but got {type(found)}")
        if len(found) != len(values):
            raise AssertionError(
                "body_fn should return the same number of elements as carried_inputs, got "
                f"{len(found)} vs {len(values)}"
            )
        values = tuple(found)
    return values
