"""Weight gradients as products that XLA's quick kernels for CPUs take.

The gradient of a linear layer's weight is a product over the batch, `g.T @ x`: its first operand
lies the wrong way round for the kernels that XLA:CPU multiplies float32 matrices with (YNNPACK's),
so Eigen multiplies them. To turn that operand round first takes a hundredth of the product's time,
and then the quick kernels do it: 5 to 15 % less time for the sizes below (benchmarks/results.md).
XLA would fold a transpose into the product again; a barrier keeps it.
"""

from __future__ import annotations

from typing import Any

import jax
from jax import lax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal, gensym

_TILE = 128  # where the sizes of the result are no multiples of it, Eigen is as quick
_LEAST = 1 << 25  # multiplications below which turning does not pay
_OVER_ROWS = (((0,), (0,)), ((), ()))


def transpose_products(program: ClosedJaxpr) -> ClosedJaxpr:
    """Transpose such products in the program; return it as it is if it has none."""
    jaxpr = _transpose(program.jaxpr)
    return program if jaxpr is program.jaxpr else ClosedJaxpr(jaxpr, program.consts)


def _transpose(jaxpr: Jaxpr) -> Jaxpr:
    eqns: list[Any] = []
    new = gensym()
    for eqn in jaxpr.eqns:
        if _is_weight_gradient(eqn):
            eqns += _replacement(eqn, new)
            continue
        inner = eqn.params.get("jaxpr") if eqn.primitive.name == "jit" else None
        if inner is not None and (after := transpose_products(inner)) is not inner:
            eqn = eqn.replace(params={**eqn.params, "jaxpr": after})
        eqns.append(eqn)
    same = len(eqns) == len(jaxpr.eqns) and all(map(lambda a, b: a is b, eqns, jaxpr.eqns))
    return jaxpr if same else jaxpr.replace(eqns=eqns)


def _is_weight_gradient(eqn: Any) -> bool:
    if eqn.primitive.name != "dot_general" or eqn.params["dimension_numbers"] != _OVER_ROWS:
        return False
    a, b = (v.aval for v in eqn.invars)
    if a.ndim != 2 or b.ndim != 2 or not a.dtype == b.dtype == "float32":
        return False
    (over, rows), columns = a.shape, b.shape[1]
    if rows % _TILE or columns % _TILE or over * rows * columns < _LEAST:
        return False
    return all(v.aval.sharding.mesh.empty for v in eqn.invars)


def _replacement(eqn: Any, new: Any) -> list[Any]:
    """Return the ops of the same product whose first operand was transposed before."""
    options = {k: v for k, v in eqn.params.items() if k in ("precision", "preferred_element_type")}

    def product(a: Any, b: Any) -> Any:
        a = lax.optimization_barrier(a.T)
        return lax.dot_general(a, b, (((1,), (0,)), ((), ())), **options)

    made = jax.make_jaxpr(product)(*[v.aval for v in eqn.invars]).jaxpr
    known: dict[Any, Any] = dict(zip(made.invars, eqn.invars, strict=True))
    known.update(zip(made.outvars, eqn.outvars, strict=True))
    found = []
    for step in made.eqns:
        reads = [v if isinstance(v, Literal) else known[v] for v in step.invars]
        makes = [known.setdefault(v, new(v.aval)) for v in step.outvars]
        found.append(step.replace(invars=reads, outvars=makes, source_info=eqn.source_info))
    return found
