"""Intermediates by name: `tag` names a value, and its gradient can be asked for.

`tag` is an identity that leaves its name in the traced program (jaxpr). To differentiate with
respect to a name, the program is traced, and evaluated again with a *probe* behind each named
value: an input that adds nothing to the value and receives its whole cotangent. Reading the names
from the jaxpr, not from a stack of scopes, finds them inside `jax.jit` functions whose trace JAX
has cached too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, jaxprs_in_params
from jax.interpreters import ad, batching, mlir

from ..program.paths import nearest

Arrays = Sequence[jax.Array]
Probes = dict[str, jax.Array]

tag_p = Primitive("tag")
tag_p.def_impl(lambda x, *, name: x)
tag_p.def_abstract_eval(lambda x, *, name: x)
mlir.register_lowering(tag_p, lambda context, x, *, name: [x])
batching.defvectorized(tag_p)
# The tangent is not named: one name stands for one value.
ad.primitive_jvps[tag_p] = lambda primals, tangents, *, name: (
    tag_p.bind(*primals, name=name),
    tangents[0],
)


def tag(name: str, x: jax.Array) -> jax.Array:
    """Name an intermediate value; return it unchanged.

    The gradient of a loss with respect to it comes from `value_and_grad(..., wrt=(name,))`.
    Without that a tag costs nothing in a compiled program.

    Args:
      name: unique within the differentiated function.
      x: array of any shape and dtype.

    Returns:
      `x`.

    Raises:
      TypeError: `x` is not an array.

    >>> import jax.numpy as jnp
    >>> from leafax.functional import value_and_grad
    >>> def loss(w, x):
    ...     h = tag("h", w * x)
    ...     return (h**2).sum()
    >>> value, (gradient, named) = value_and_grad(loss, wrt=("h",))(jnp.float32(2), jnp.ones(3))
    >>> named["h"]
    Array([4., 4., 4.], dtype=float32)
    """
    try:
        jax.typeof(x)
    except TypeError:
        raise TypeError(
            f"`tag` of `{name}` takes one array, got {type(x).__name__}: tag each of its arrays "
            f"under its own name"
        ) from None
    named: jax.Array = tag_p.bind(x, name=name)
    return named


def with_probes(
    fn: Callable[..., Any], names: Sequence[str], *args: Any
) -> tuple[Callable[..., Any], Probes]:
    """Trace `fn(*args)` and give each named intermediate an additional input.

    Args:
      fn: pure function with tagged intermediates.
      names: the tags that are wanted.
      *args: pytrees of arrays to trace with.

    Returns:
      `(probed, probes)`: `probed(probes, *args)` equals `fn(*args)`, and its gradient with respect
      to `probes[name]`, zeros of the intermediate's shape and dtype, is that of the intermediate.

    Raises:
      ValueError: a name that is not tagged, or more than once, or within a loop or custom rule.
      TypeError: the intermediate is not floating point or complex.
    """
    closed, shape = jax.make_jaxpr(fn, return_shape=True)(*args)
    probes = _make_probes(list(_find(closed.jaxpr)), names)
    treedef = jax.tree.structure(shape)

    def probed(probes: Probes, *args: Any) -> Any:
        out = _evaluate(closed.jaxpr, closed.consts, jax.tree.leaves(args), probes)
        return jax.tree.unflatten(treedef, out)

    return probed, probes


class _Tagged(NamedTuple):
    name: str
    aval: Any
    inside: str | None  # the loop or custom rule that hides it, None where it can be reached


def _find(jaxpr: Jaxpr, inside: str | None = None) -> Iterator[_Tagged]:
    for eqn in jaxpr.eqns:
        if eqn.primitive is tag_p:
            yield _Tagged(eqn.params["name"], eqn.outvars[0].aval, inside)
        for inner in jaxprs_in_params(eqn.params):
            clear = _is_jit(eqn) or _is_checkpoint(eqn)
            yield from _find(inner, inside if clear else inside or eqn.primitive.name)


def _make_probes(found: list[_Tagged], names: Sequence[str]) -> Probes:
    probes = {}
    for name in names:
        same = [one for one in found if one.name == name]
        if not same:
            known = nearest(name, [one.name for one in found])
            hint = f"the nearest tags are {known}" if known else "it has no tags"
            raise ValueError(
                f"no intermediate of the function is tagged `{name}`; {hint}. Name one with "
                f"`x = leafax.functional.tag({name!r}, x)`"
            )
        if len(same) > 1:
            raise ValueError(
                f"{len(same)} intermediates are tagged `{name}`: give each its own name"
            )
        probes[name] = _make_probe(same[0])
    return probes


def _make_probe(tagged: _Tagged) -> jax.Array:
    name, aval, inside = tagged
    if inside:
        raise ValueError(
            f"`{name}` is tagged inside `{inside}`, which is differentiated as a whole: return the "
            f"value from there and tag it outside"
        )
    if not jnp.issubdtype(aval.dtype, jnp.inexact):
        raise TypeError(
            f"`{name}` has dtype {aval.dtype.name}: only floating point and complex intermediates "
            f"have gradients"
        )
    return jnp.zeros(aval.shape, aval.dtype)


@jax.custom_jvp
def _probe(x: jax.Array, probe: jax.Array) -> jax.Array:
    # Not `x + probe`: this is `x` bit for bit (-0.0 too), and leaves no addition to compile.
    return x


@_probe.defjvp
def _probe_jvp(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] + tangents[1]


def _is_jit(eqn: JaxprEqn) -> bool:
    return eqn.primitive.name in ("jit", "pjit") and isinstance(
        eqn.params.get("jaxpr"), ClosedJaxpr
    )


def _is_checkpoint(eqn: JaxprEqn) -> bool:
    return {"jaxpr", "policy", "prevent_cse"} <= set(eqn.params)


def _evaluate(jaxpr: Jaxpr, consts: Arrays, args: Arrays, probes: Probes) -> list[jax.Array]:
    """Evaluate a program, as `jax.core.eval_jaxpr` does, with probes behind the tagged values."""
    held: dict[Any, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    held.update(zip(jaxpr.invars, args, strict=True))

    def read(place: Any) -> Any:
        return place.val if isinstance(place, Literal) else held[place]

    for eqn in jaxpr.eqns:
        out = _apply(eqn, [read(place) for place in eqn.invars], probes)
        held.update(zip(eqn.outvars, out, strict=True))
    return [read(place) for place in jaxpr.outvars]


def _apply(eqn: JaxprEqn, args: Arrays, probes: Probes) -> Arrays:
    if eqn.primitive is tag_p and eqn.params["name"] in probes:
        return [_probe(*args, probes[eqn.params["name"]])]
    hidden = (tagged.name for inner in jaxprs_in_params(eqn.params) for tagged in _find(inner))
    if probes.keys().isdisjoint(hidden):
        return _bind(eqn, args)
    inner = eqn.params["jaxpr"]
    if _is_jit(eqn):
        # Inlined: a new `jax.jit` here would compile anew in every call that is not jitted itself.
        return _evaluate(inner.jaxpr, inner.consts, args, probes)

    again = jax.checkpoint(
        lambda probes, *args: _evaluate(inner, (), args, probes),
        policy=eqn.params["policy"],
        prevent_cse=eqn.params["prevent_cse"],
    )
    return again(probes, *args)  # type: ignore[no-any-return]


def _bind(eqn: JaxprEqn, args: Arrays) -> Arrays:
    bound = eqn.primitive.get_bind_params(eqn.params)
    # Some releases of JAX return the functions among the parameters apart.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    with eqn.ctx.manager:
        out = eqn.primitive.bind(*functions, *args, **params)
    return out if eqn.primitive.multiple_results else [out]
