"""Equations of a traced function, those of the functions that it calls included."""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr


def count_equations(jaxpr: Jaxpr) -> int:
    """Count the equations that XLA compiles: the body of a loop counts once.

    Args:
      jaxpr: of a traced function.

    Returns:
      How many equations there are that call no other.

    >>> import jax
    >>> from leafax.functional.lowering.equations import count_equations
    >>> count_equations(jax.make_jaxpr(jax.jit(lambda x: x * 2 + 1))(1.0).jaxpr)
    2
    """
    count = 0
    for eqn in jaxpr.eqns:
        inner = [j for param in eqn.params.values() for j in _jaxprs(param)]
        count += sum(map(count_equations, inner)) if inner else 1
    return count


def _jaxprs(param: Any) -> list[Jaxpr]:
    if isinstance(param, ClosedJaxpr):
        return [param.jaxpr]
    if isinstance(param, Jaxpr):
        return [param]
    return [j for p in param for j in _jaxprs(p)] if isinstance(param, (tuple, list)) else []
