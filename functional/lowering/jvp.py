"""Forward derivatives as calls, which carry tangents through an op.

`JvpCall` is the pair of `VjpCall`: an ordinary call, so it can be differentiated in its turn, in
either direction. It evaluates the op again beside its derivative; XLA finds what is the same.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from ..program.op import Fault
from ..program.program import Aval


class JvpCall:
    """The derivative of a call: `(*inputs, *given tangents) -> tangents of the wanted outputs`.

    Attributes:
      call: what is differentiated.
      n: how many inputs it has.
      given: positions of the inputs whose tangents are passed; the others' are zero.
      wanted: positions of the outputs whose tangents are returned.
      missing: inputs that the derivative does not read, by position: they are not passed.
    """

    __slots__ = ("call", "n", "given", "wanted", "missing", "__weakref__")

    residuals = False
    many = True
    wrap = None

    def __init__(self, call: Any, n: int, given: Any, wanted: Any, missing: Any) -> None:
        self.call, self.n, self.given, self.wanted = call, n, given, wanted
        self.missing: tuple[tuple[int, Aval], ...] = missing

    def __repr__(self) -> str:
        return f"jvp[{self.call!r}]"

    @property
    def name(self) -> str:
        return f"jvp[{self.call.name}]"

    def evaluate(self, *arrays: Any) -> tuple[Any, ...]:
        absent = dict(self.missing)
        present = iter(arrays[: self.n - len(absent)])
        inputs = [
            jnp.zeros(absent[i].shape, absent[i].dtype) if i in absent else next(present)
            for i in range(self.n)
        ]
        tangents = arrays[self.n - len(absent) :]

        def moved(*moving: Any) -> tuple[Any, ...]:
            full = list(inputs)
            for i, x in zip(self.given, moving, strict=True):
                full[i] = x
            outs = self.call.evaluate(*full)
            return tuple(outs[k] for k in self.wanted)

        at = [
            jnp.asarray(inputs[i], _wide(inputs[i].dtype, t.dtype))
            for i, t in zip(self.given, tangents, strict=True)
        ]
        along = [jnp.asarray(t, x.dtype) for t, x in zip(tangents, at, strict=True)]
        return jax.jvp(moved, at, along)[1]  # type: ignore[no-any-return]

    def faults(self, *arrays: Any) -> list[Fault]:
        return []

    def abstract(self, avals: tuple[Aval, ...]) -> tuple[Aval, ...]:
        """Return abstract tangents: the outputs', or in wider dtypes that follow from such."""
        absent = dict(self.missing)
        present = iter(avals)
        inputs = [absent[i] if i in absent else next(present) for i in range(self.n)]
        for i, t in zip(self.given, present, strict=True):
            inputs[i] = inputs[i]._replace(dtype=_wide(inputs[i].dtype, t.dtype))
        outs = self.call.abstract(tuple(inputs))
        return tuple(Aval(outs[k].shape, outs[k].dtype) for k in self.wanted)


def _wide(dtype: Any, along: Any) -> Any:
    """Return the dtype to compute an input in whose tangent may be of a wider dtype."""
    real = jnp.issubdtype(dtype, jnp.floating)
    if dtype == along or real != jnp.issubdtype(along, jnp.floating):
        return dtype
    return jnp.promote_types(dtype, along)


_JVPS: weakref.WeakValueDictionary[Any, JvpCall] = weakref.WeakValueDictionary()


def jvp_of(
    call: Any, n: int, given: tuple[int, ...], wanted: tuple[int, ...],
    missing: tuple[tuple[int, Aval], ...] = (),
) -> JvpCall:  # fmt: skip
    """Return the one `JvpCall` with these columns."""
    key = (call, n, given, wanted, missing)
    made = _JVPS.get(key)
    if made is None:
        made = _JVPS[key] = JvpCall(call, n, given, wanted, missing)
    return made


@functools.lru_cache(4096)
def unread_inputs(call: JvpCall, avals: tuple[Aval, ...]) -> tuple[tuple[int, Aval], ...]:
    """Return which inputs of the differentiated call its derivative does not read: for `missing`.

    Args:
      call: has nothing missing.
      avals: those of the inputs, then those of the tangents.
    """
    with jax.enable_x64(True):
        closed = jax.make_jaxpr(call.evaluate)(*[a.struct() for a in avals])
    read = _read(closed.jaxpr)
    return tuple((i, avals[i]) for i in range(call.n) if i not in read)


@functools.lru_cache(4096)
def reached_outputs(call: Any, avals: tuple[Aval, ...], given: tuple[int, ...]) -> frozenset[int]:
    """Return which outputs of a call depend on any of these inputs."""
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(call.evaluate)(*[a.struct() for a in avals]).jaxpr
    live = {jaxpr.invars[i] for i in given}
    for eqn in jaxpr.eqns:
        if any(v in live for v in eqn.invars if not hasattr(v, "val")):
            live.update(eqn.outvars)
    return frozenset(k for k, v in enumerate(jaxpr.outvars) if not hasattr(v, "val") and v in live)


@functools.lru_cache(4096)
def read_inputs(call: Any, avals: tuple[Aval, ...], outputs: tuple[int, ...]) -> frozenset[int]:
    """Return from which inputs these outputs of a call are computed."""
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(call.evaluate)(*[a.struct() for a in avals]).jaxpr
    used = dce_jaxpr(jaxpr, [k in outputs for k in range(len(jaxpr.outvars))])[1]
    return frozenset(i for i, yes in enumerate(used) if yes)


def _read(jaxpr: Any) -> Sequence[int]:
    live = {v for v in jaxpr.outvars if not hasattr(v, "val")}
    for eqn in reversed(jaxpr.eqns):
        if any(v in live for v in eqn.outvars):
            live.update(v for v in eqn.invars if not hasattr(v, "val"))
    return [i for i, v in enumerate(jaxpr.invars) if v in live]
