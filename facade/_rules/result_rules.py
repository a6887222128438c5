"""Gradients by the result alone."""

from __future__ import annotations

from typing import Any

# Gradients that PyTorch takes from the result: what it saves is then all that is kept.
RESULT_RULES: dict[str, Any] = {
    "exp": lambda r, g: g * r.conj(),
    "sigmoid": lambda r, g: g * ((1 - r) * r).conj(),
    "tanh": lambda r, g: g * (1 - r * r).conj(),
    "sqrt": lambda r, g: g / (2 * r.conj()),
    "rsqrt": lambda r, g: -0.5 * g * r.conj() ** 3,
    "reciprocal": lambda r, g: -g * (r * r).conj(),
    "relu": lambda r, g: g * (r > 0),
}
# Of these it takes more than the result and the gradient, but none of the operands: see
# `_autograd/formulas/from_result.py`.
OF_RESULT = frozenset({"softmax", "log_softmax"})
