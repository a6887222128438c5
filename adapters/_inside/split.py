"""A traced program cut into several at named values.

`leafax.functional.tag` leaves names in the traced program. Between two groups of names lies a
segment: a pure function from the values that it reads to those that later segments read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, Literal, jaxprs_in_params

import leafax
from leafax.functional.lowering.tags import tag

from .boundary import Boundary
from .probes import bind, exposed, is_checkpoint


class Segment:
    """Equations between two boundaries, as a function of the values that they read."""

    def __init__(self, name: str, eqns: list[Any], reads: list[Any], writes: list[Any],
                 consts: dict[Any, Any]) -> None:  # fmt: skip
        self.__name__ = name
        self.eqns, self.reads, self.writes, self.consts = eqns, reads, writes, consts

    def __call__(self, *arrays: Any) -> list[Any]:
        held = {**self.consts, **dict(zip(self.reads, arrays, strict=True))}
        evaluate(self.eqns, held)
        return [held[v] for v in self.writes]


class Split:
    """The segments of a call, and what lies between them.

    Attributes:
      paths: of the submodules that the call runs.
    """

    def __init__(
        self, invars: Any, consts: dict[Any, Any], parts: list[Any], outs: Any, tree: Any
    ) -> None:
        self.invars, self.consts, self.parts = invars, consts, parts
        self.outs, self.tree = outs, tree
        self.paths: list[str] = []

    def run(self, arguments: Any, between: Callable[[Boundary, Any], Any]) -> Any:
        """Record the call; `between` gets each boundary's value and returns what replaces it."""
        flat = jax.tree.leaves(arguments, is_leaf=_is_tensor)
        held: dict[Any, Any] = dict(
            zip(self.invars, [t for t in flat if _is_tensor(t)], strict=True)
        )
        for segment, at, tags, shape in self.parts:
            if segment.writes:
                out = leafax.call_jax(segment, *[held[v] for v in segment.reads])
                held.update(zip(segment.writes, out, strict=True))
            if at is None:
                continue
            treedef, rest, places = shape
            values = list(rest)
            for i, eqn in zip(places, tags, strict=True):
                values[i] = self._read(eqn.invars[0], held)
            value = between(at, jax.tree.unflatten(treedef, values))
            after = _leaves(value, treedef, at)
            for i, eqn in zip(places, tags, strict=True):
                held[eqn.outvars[0]] = _fitting(after[i], values[i], at)
        return jax.tree.unflatten(self.tree, [self._read(v, held) for v in self.outs])

    def _read(self, v: Any, held: dict[Any, Any]) -> Any:
        if isinstance(v, Literal):
            return leafax.as_tensor(jnp.asarray(v.val))
        if v in self.consts:
            return leafax.as_tensor(jnp.asarray(self.consts[v]))
        return held[v]


def _leaves(value: Any, treedef: Any, at: Boundary) -> list[Any]:
    """Return the leaves of what took a value's place."""
    try:
        value = list(treedef.flatten_up_to(value))
    except ValueError:  # another structure, a list for a tuple perhaps
        pass
    after = jax.tree.leaves(value, is_leaf=lambda x: x is None or _is_tensor(x))
    if len(after) != treedef.num_leaves:
        raise TypeError(
            f"a hook at `{at.path}` returned {len(after)} values in place of {treedef.num_leaves}"
        )
    return after


def _fitting(new: Any, old: Any, at: Boundary) -> Any:
    if not _is_tensor(new) or new.shape != old.shape or new.dtype != old.dtype:
        got = f"{list(new.shape)} of {new.dtype}" if _is_tensor(new) else type(new).__name__
        raise TypeError(
            f"a hook at `{at.path}` returned {got} in place of {list(old.shape)} of {old.dtype}"
        )
    return new


def _is_tensor(x: Any) -> bool:
    return isinstance(x, leafax.Tensor)


def split(fn: Callable[..., Any], shapes: Sequence[Any], trees: dict[Any, Any], name: str) -> Split:
    """Trace `fn` and cut it at its tags.

    Args:
      fn: returns a pytree of arrays.
      shapes: of its arguments.
      trees: filled by tracing: for each boundary its structure, static leaves and the places of
        arrays.
      name: of the recorded ops.

    Raises:
      ValueError: a tag within a transformation that is neither a loop nor rematerialisation.
    """
    closed, shape = jax.make_jaxpr(fn, return_shape=True)(*shapes)
    if any(_has_tag(sub) for eqn in closed.jaxpr.eqns for sub in jaxprs_in_params(eqn.params)):
        closed = jax.make_jaxpr(_inlined(closed))(*shapes)
    eqns, outs = closed.jaxpr.eqns, closed.jaxpr.outvars
    consts: dict[Any, Any] = dict(zip(closed.jaxpr.constvars, closed.consts, strict=True))
    groups = _grouped(eqns)
    makers = {v: eqn for eqn in eqns for v in eqn.outvars if _is_key(v)}
    pieces = [(at, tags, _with_keys(body, makers)) for body, at, tags in groups]
    parts: list[Any] = []
    needed = {v for v in outs if not isinstance(v, Literal)}
    for at, tags, body in reversed(pieces):
        needed |= {eqn.invars[0] for eqn in tags if not isinstance(eqn.invars[0], Literal)}
        made = dict.fromkeys(v for eqn in body for v in eqn.outvars)
        reads = list(dict.fromkeys(
            v for eqn in body for v in eqn.invars
            if not isinstance(v, Literal) and v not in made and v not in consts
        ))  # fmt: skip
        writes = [v for v in made if v in needed and not _is_key(v)]
        tree = trees.get(at._replace(kind="out") if at and at.kind == "probe" else at)
        parts.append((Segment(name, body, reads, writes, consts), at, tags, tree))
        needed |= set(reads)
    parts.reverse()
    return Split(closed.jaxpr.invars, consts, parts, outs, jax.tree.structure(shape))


def _inlined(closed: Any) -> Callable[..., Any]:
    """Write out the jitted parts of a program that have tags."""
    jaxpr = closed.jaxpr

    def run(*arrays: Any) -> Any:
        held = dict(zip(jaxpr.constvars, closed.consts, strict=True))
        held.update(zip(jaxpr.invars, arrays, strict=True))
        evaluate(jaxpr.eqns, held, inline=True)
        return [v.val if isinstance(v, Literal) else held[v] for v in jaxpr.outvars]

    return run


def _grouped(eqns: list[Any]) -> list[tuple[list[Any], Boundary | None, list[Any]]]:
    """Group the equations up to each boundary, with the tags that make it up."""
    found: list[tuple[list[Any], Boundary | None, list[Any]]] = []
    body: list[Any] = []
    for eqn in eqns:
        if eqn.primitive.name != "tag":
            body.append(eqn)
            continue
        at = Boundary.read(eqn.params["name"])
        if not body and found and found[-1][1] == at:
            found[-1][2].append(eqn)
        else:
            found.append((body, at, [eqn]))
            body = []
    return [*found, (body, None, [])]


def _with_keys(body: list[Any], makers: dict[Any, Any]) -> list[Any]:
    """Put the equations after those that make their random keys: keys do not cross."""
    made = {v for eqn in body for v in eqn.outvars}
    before: dict[int, Any] = {}

    def need(v: Any) -> None:
        if isinstance(v, Literal) or v in made or v not in makers:
            return
        eqn = makers[v]
        if id(eqn) not in before:
            for w in eqn.invars:
                need(w)
            before[id(eqn)] = eqn

    for eqn in body:
        for v in eqn.invars:
            need(v)
    return [*before.values(), *body]


def _is_key(v: Any) -> bool:
    dtype: Any = getattr(v.aval, "dtype", None)
    return dtype is not None and bool(jnp.issubdtype(dtype, jax.dtypes.extended))


def _has_tag(jaxpr: Jaxpr) -> str | None:
    for eqn in jaxpr.eqns:
        if eqn.primitive.name == "tag":
            return str(eqn.params["name"])
        for inner in jaxprs_in_params(eqn.params):
            name = _has_tag(inner)
            if name is not None:
                return name
    return None


def evaluate(jaxpr_eqns: Sequence[Any], held: dict[Any, Any], inline: bool = False) -> None:
    """Evaluate equations; `held` has the values by variable, and gets the results.

    Args:
      inline: evaluate jitted parts that have tags equation by equation.
    """
    for eqn in jaxpr_eqns:
        args = [v.val if isinstance(v, Literal) else held[v] for v in eqn.invars]
        inner = eqn.params.get("jaxpr")
        if inline and eqn.primitive.name in ("jit", "pjit") and _has_tag(inner.jaxpr):
            sub = dict(zip(inner.jaxpr.constvars, inner.consts, strict=True))
            sub.update(zip(inner.jaxpr.invars, args, strict=True))
            evaluate(inner.jaxpr.eqns, sub, inline)
            out = [v.val if isinstance(v, Literal) else sub[v] for v in inner.jaxpr.outvars]
        elif inline and is_checkpoint(eqn) and _has_tag(inner):
            out = _checkpointed(eqn, args)
        elif inline and any(_has_tag(sub) for sub in jaxprs_in_params(eqn.params)):
            out = exposed(eqn, args)
        else:
            out = bind(eqn, args)
        held.update(zip(eqn.outvars, out, strict=True))


def _checkpointed(eqn: Any, args: list[Any]) -> list[Any]:
    """Run a part that is computed again in backward, the names at its ends outside."""
    inner = eqn.params["jaxpr"]
    tags = [e for e in inner.eqns if e.primitive.name == "tag"]
    entering = {e.invars[0]: e for e in tags if e.invars[0] in inner.invars}
    leaving = {e.outvars[0]: e for e in tags if e.outvars[0] in inner.outvars}
    args = [
        tag(entering[v].params["name"], x) if v in entering else x
        for v, x in zip(inner.invars, args, strict=True)
    ]
    moved = {e.params["name"] for e in (*entering.values(), *leaving.values())}
    return [
        tag(leaving[v].params["name"], x) if not isinstance(v, Literal) and v in leaving else x
        for v, x in zip(inner.outvars, exposed(eqn, args, moved), strict=True)
    ]
