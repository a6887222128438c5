"""Gradients that depend on the phases of complex eigenvectors and singular vectors.

These are determined up to a factor of absolute value 1 each, so what depends on it has no gradient.
Whether a loss does only the values of its gradient tell: a check beside the backward pass.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from leafax.functional.program.op import TABLE, Fault, Op

from ..._core.grad_modes import no_grad
from ..._core.transforms_running import active
from ..._dispatch.record import apply

_TOLERANCE = 1e-2  # PyTorch's


def _turns(vectors: Any, gradient: Any) -> Any:
    """Compute how the loss changes with the phase of each vector, a column."""
    return jnp.imag((vectors.conj() * gradient).sum(-2))


def _op(name: str, check: Any) -> Op:
    def nothing(*arrays: Any) -> Any:
        return jnp.zeros(())

    return Op(nothing, name=name, differentiable=False, check=check)


def _eigen(name: str) -> Op:
    words = (
        f"{name}_backward: The eigenvectors in the complex case are specified up to multiplication "
        "by e^{{i phi}}. The specified loss function depends on this quantity, so it is "
        "ill-defined."
    )

    def check(vectors: Any, gradient: Any) -> list[Fault]:
        return [Fault(jnp.abs(_turns(vectors, gradient)) > _TOLERANCE, RuntimeError, words)]

    return _op(name, check)


def _check_singular(u: Any, gu: Any, vh: Any, gvh: Any) -> list[Fault]:
    turns: Any = 0
    if gu is not None:
        turns = turns + _turns(u, gu)[..., : vh.shape[-2]]
    if gvh is not None:
        back = _turns(jnp.swapaxes(vh, -1, -2), jnp.swapaxes(gvh, -1, -2))
        turns = turns + back[..., : u.shape[-1]]
    words = (
        "svd_backward: The singular vectors in the complex case are specified up to multiplication "
        "by e^{{i phi}}. The specified loss function depends on this phase term, making it "
        "ill-defined."
    )
    return [Fault(2 * jnp.abs(turns) > _TOLERANCE, RuntimeError, words)]


_EIGEN = {
    TABLE["linalg.eig"]: _eigen("linalg_eig"),
    TABLE["linalg.eigh"]: _eigen("linalg_eigh"),
}
_SINGULAR = _op("svd", _check_singular)
WATCHED = frozenset({*_EIGEN, TABLE["linalg.svd"]})


def watch(node: Any, op: Op, grads: list[Any]) -> None:
    """Record the check for a node of one of the `WATCHED` ops and the gradients that it got.

    Inside of `func`'s transforms PyTorch does not look at those of eigenvectors.
    """
    check = _EIGEN.get(op, _SINGULAR)
    if check is not _SINGULAR and (active.pulling or active.depth):
        return
    vectors = (0, 2) if check is _SINGULAR else (1,)
    given = {k: grads[k] for k in vectors if k < len(grads) and grads[k] is not None}
    if not given or node.output_kinds()[vectors[0]].dtype.kind != "c":
        return
    with no_grad():
        if check is _SINGULAR:
            apply(check, node._saved_U, given.get(0), node._saved_Vh, given.get(2))
        else:
            apply(check, node._saved_eigenvectors, given[1])
