"""Named values inside loops and rematerialised parts, brought out of them.

What is inside `lax.scan` cannot be a tensor between two programs. So the loop is built anew: each
named value gets a *probe* added to it, an input of zeros with one slice an iteration, and is
returned beside the loop's results, stacked. What lies outside is then two values with names, the
probe and the stack, and the gradient of the probe is that of the stacked values.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Literal, jaxprs_in_params

from leafax.functional.lowering.tags import tag

from .boundary import Boundary

Arrays = dict[str, Any]


def exposed(eqn: Any, args: Sequence[Any], besides: Collection[str] = frozenset()) -> list[Any]:
    """Evaluate a loop or a rematerialised part whose body has names, with those outside of it.

    Args:
      besides: names that are outside already.

    Raises:
      ValueError: a name inside of something else, or one of a module's inputs.
    """
    shapes = inner_names(eqn, besides)
    probes = {
        name: tag(Boundary.read(name).probe(name), jnp.zeros(s.shape, s.dtype))
        for name, s in shapes.items()
    }
    outs, seen = _run(eqn, args, probes)
    for name in shapes:
        tag(name, seen[name])
    return outs


def inner_names(eqn: Any, besides: Collection[str] = frozenset()) -> dict[str, Any]:
    """Return the shapes of the values inside of an equation that have names, stacked."""
    found: dict[str, Any] = {}
    primitive = eqn.primitive.name
    for inner in jaxprs_in_params(eqn.params):
        for e in inner.eqns:
            if e.primitive.name == "tag":
                aval: Any = e.outvars[0].aval
                name = e.params["name"]
                if name not in besides:
                    _check(Boundary.read(name), primitive)
                    found[name] = jax.ShapeDtypeStruct(aval.shape, aval.dtype)
            else:
                found |= inner_names(e, besides)
    if found and not (is_checkpoint(eqn) or primitive in ("scan", "jit", "pjit")):
        _refuse(Boundary.read(next(iter(found))), primitive)
    if primitive == "scan":
        n = eqn.params["length"]
        found = {k: jax.ShapeDtypeStruct((n, *s.shape), s.dtype) for k, s in found.items()}
    return found


def _check(at: Boundary, primitive: str) -> None:
    if at.kind == "in":
        raise ValueError(
            f"`{at.path}` is called inside `{primitive}`, where no hook can run; `watch` shows its "
            f"values and their gradients, or hook the submodule that it lies in"
        )


def _refuse(at: Boundary, primitive: str) -> None:
    raise ValueError(
        f"`{at.path}` is called inside `{primitive}`, which is differentiated as a whole: watch "
        f"the submodule that it lies in"
    )


def _run(eqn: Any, args: Sequence[Any], probes: Arrays) -> tuple[list[Any], Arrays]:
    """Run an equation with names in it; return its results and the values that have them."""
    params = eqn.params
    inner = params["jaxpr"]
    if eqn.primitive.name == "scan":
        return _scan(params, args, probes)
    if is_checkpoint(eqn):

        def recomputed(args: Sequence[Any], probes: Arrays) -> Any:
            return _evaluate(inner, (), args, probes)

        made = jax.checkpoint(
            recomputed, policy=params["policy"], prevent_cse=params["prevent_cse"]
        )
        return made(args, probes)  # type: ignore[no-any-return]
    return _evaluate(inner.jaxpr, inner.consts, args, probes)


def _scan(params: Any, args: Sequence[Any], probes: Arrays) -> tuple[list[Any], Arrays]:
    consts, carry = params["num_consts"], params["num_carry"]
    inner = params["jaxpr"]

    def body(carried: Any, slices: Any) -> Any:
        xs, here = slices
        outs, seen = _evaluate(inner.jaxpr, inner.consts, (*args[:consts], *carried, *xs), here)
        return outs[:carry], (outs[carry:], seen)

    first, xs = list(args[consts : consts + carry]), list(args[consts + carry :])
    last, (ys, seen) = jax.lax.scan(
        body, first, (xs, probes), length=params["length"], reverse=params["reverse"],
        unroll=params["unroll"],
    )  # fmt: skip
    return [*last, *ys], seen


def _evaluate(
    jaxpr: Any, consts: Sequence[Any], args: Sequence[Any], probes: Arrays
) -> tuple[list[Any], Arrays]:
    held: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    held.update(zip(jaxpr.invars, args, strict=True))
    seen: Arrays = {}
    for eqn in jaxpr.eqns:
        given = [v.val if isinstance(v, Literal) else held[v] for v in eqn.invars]
        name = eqn.params["name"] if eqn.primitive.name == "tag" else None
        below = {n: p for n, p in probes.items() if n in _names(eqn)}
        if name in probes:
            seen[name] = given[0] + probes[name]
            outs = [seen[name]]
        elif name is not None:
            outs = given
        elif below:
            outs, found = _run(eqn, given, below)
            seen |= found
        else:
            outs = bind(eqn, given)
        held.update(zip(eqn.outvars, outs, strict=True))
    return [v.val if isinstance(v, Literal) else held[v] for v in jaxpr.outvars], seen


def bind(eqn: Any, args: Sequence[Any]) -> list[Any]:
    """Evaluate one equation."""
    bound = eqn.primitive.get_bind_params(eqn.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    with eqn.ctx.manager:
        out = eqn.primitive.bind(*functions, *args, **params)
    return list(out) if eqn.primitive.multiple_results else [out]


def _names(eqn: Any) -> set[str]:
    """Return all names inside of an equation."""
    found: set[str] = set()
    for inner in jaxprs_in_params(eqn.params):
        for e in inner.eqns:
            found |= {e.params["name"]} if e.primitive.name == "tag" else _names(e)
    return found


def is_checkpoint(eqn: Any) -> bool:
    """Return True for an equation that is computed again in backward."""
    return {"jaxpr", "policy", "prevent_cse"} <= set(eqn.params)
