"""Operands that PyTorch's formulas give no gradient at all, as if nothing had led to them.

Others whose gradient is zero everywhere get zeros. Which is which shows: `autograd.grad` raises
for what got nothing, and `.grad` stays None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leafax.functional.program.program import Slot

# Norms, and the parameter that says of which order: nothing comes of order 0.
_NORMS = {
    "norm": "p", "_norm_of_dim": "p", "dist": "p", "linalg.norm": "ord",
    "linalg.vector_norm": "ord",
}  # fmt: skip
# Of these nothing comes if they are empty.
_REFLECTIONS = frozenset({"linalg.householder_product", "householder_product", "ormqr", "orgqr"})


def drop_ungiven(call: Any, operands: Sequence[Any], passed: list[Any]) -> list[Any]:
    """Drop gradients of operands that get none: `passed`, one an operand, with None for those."""
    wanted = [k for k, grad in enumerate(passed) if grad is not None]
    for k in _ungiven(call, operands, wanted):
        passed[k] = None
    return passed


def _ungiven(call: Any, operands: Sequence[Any], wanted: Sequence[int]) -> Sequence[int]:
    """Pick those of the `wanted` operands of a call that get no gradient.

    Args:
      operands: what is known of them: values or abstract values.

    Raises:
      RuntimeError: if PyTorch's formula computes with the gradient that it does not have.
    """
    op = getattr(call, "op", None)
    if op is None:
        return ()
    name = op.qualified
    if name in _NORMS:
        order = call.arguments.get(_NORMS[name])
        if isinstance(order, (Slot, str)) or order is None or order != 0:
            return ()
        if name == "dist" and 1 in wanted:
            raise RuntimeError(
                "Expected a proper Tensor but got None (or an undefined Tensor in C++) for "
                "argument #0 'self'"
            )
        return wanted
    if name in _REFLECTIONS and 0 in (*operands[0].shape, *operands[1].shape):
        return [k for k in wanted if k < 2]
    return ()
