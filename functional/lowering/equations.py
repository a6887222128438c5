"""Equations of a traced function, those of the functions that it calls included."""

from __future__ import annotations

from jax.extend.core import Jaxpr, jaxprs_in_params


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
        inner = [*jaxprs_in_params(eqn.params)]
        count += sum(map(count_equations, inner)) if inner else 1
    return count
