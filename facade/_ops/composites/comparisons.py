"""Comparisons of whole tensors, whose answer is one bool: they run the program."""

from __future__ import annotations

from typing import Any

import numpy as np

from leafax.functional.program.op import TABLE

from ..._core.grad_modes import no_grad
from ..._core.vmap_checks import refuse_in_vmap
from ..._dispatch.conj_neg_bits import held
from ..._dispatch.record import apply
from ..._signatures.check_arguments import check_signatures


def equal(input: Any, other: Any) -> bool:
    """Tell whether two tensors have the same shape and values; runs the program."""
    refuse_in_vmap("equal", input, other)
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool(np.array_equal(held(input), held(other)))


def allclose(
    input: Any, other: Any, rtol: float = 1e-05, atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:  # fmt: skip
    """Tell whether `|input - other| <= atol + rtol * |other|` everywhere; runs the program."""
    check_signatures(("Tensor input, Tensor other",), (input, other), {}, "allclose")
    refuse_in_vmap("allclose", input, other)
    with no_grad():  # no view is asked for its history
        near = apply(TABLE["isclose"], input, other, rtol, atol, equal_nan)
        return bool(near.all().item())
