"""Which donated buffers XLA can write its outputs into without copying them first.

An output may take the buffer of the input that it updates if all that reads the input comes
before it. XLA (on CPUs at least) asks the data dependencies alone: a weight that backward reads
for the gradient of its layer's input is copied as a whole at the beginning of each step, since
nothing says that this product is done when the weight is updated. Not to donate such a weight takes
no more memory than the copy, and no time: 2 % of the step of an MLP.

What reads an input is not only what takes it: XLA fuses elementwise ops into those that use their
results, so an input is read where the last op of such a fusion is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

# Ops that XLA makes another reading of the same memory.
_VIEWS = frozenset({"transpose", "reshape", "squeeze", "expand_dims", "copy", "stop_gradient"})
# Ops that are programs of their own, in the words of their parameters.
_INNER = ("jaxpr", "call_jaxpr", "fun_jaxpr")
_CALLS = frozenset({
    "jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call",
    "custom_vjp_call", "custom_vjp_call_jaxpr",
})  # fmt: skip
# Ops that end a fusion: their operands are computed, and written to memory, before.
_HEAVY = frozenset({
    "dot_general", "conv_general_dilated", "scan", "while", "cond", "sort", "fft", "cumsum",
    "cumprod", "cummax", "cummin", "cumlogsumexp", "scatter", "scatter_add", "scatter-add",
    "scatter_mul", "gather", "top_k", "approx_top_k", "custom_call", "ffi_call", "pure_callback",
    "io_callback", "cholesky", "eigh", "svd", "qr", "lu", "triangular_solve", "select_and_scatter",
    "select_and_scatter_add", "random_bits", "threefry2x32", "optimization_barrier",
})  # fmt: skip


class _Step(NamedTuple):
    """One op of a program without inner programs; values are numbers."""

    name: str
    reads: tuple[int, ...]
    makes: tuple[int, ...]


def written_in_place(program: ClosedJaxpr, pairs: Mapping[int, int]) -> tuple[int, ...]:
    """The donated inputs that need no copy, in order.

    Args:
      program: the function's jaxpr.
      pairs: position of a donated input -> position of the output that takes its buffer.
    """
    jaxpr = program.jaxpr
    number: dict[Any, int] = {v: n for n, v in enumerate(jaxpr.invars)}
    steps = list(_flatten(jaxpr, number, iter(range(len(number), 1 << 62))))
    outputs = [None if isinstance(v, Literal) else number[v] for v in jaxpr.outvars]
    maker: dict[int, int] = {}  # value -> the step that makes it
    users: dict[int, list[int]] = {}
    before: dict[int, int] = {}  # value -> the steps that it depends on, as bits
    for n, step in enumerate(steps):
        bits = 1 << n
        for v in step.reads:
            bits |= before.get(v, 0)
            users.setdefault(v, []).append(n)
        for v in step.makes:
            maker[v], before[v] = n, bits
    returned = set(outputs)

    def readers(start: int) -> Iterator[int]:
        """The steps at which the memory of an input is read."""
        waiting, seen = [(start, True)], {start}
        while waiting:
            value, same_memory = waiting.pop()
            using = users.get(value, [])
            ends = any(steps[n].name in _HEAVY for n in using)
            if not same_memory and (ends or value in returned):
                yield maker[value]  # it is written to memory: whoever comes later reads that
                continue
            for n in using:
                if steps[n].name in _HEAVY or _reduces(steps[n].name):
                    yield n
                    continue
                for v in steps[n].makes:
                    if v not in seen:
                        seen.add(v)
                        waiting.append((v, same_memory and steps[n].name in _VIEWS))

    safe = []
    for i, k in pairs.items():
        out = outputs[k]
        if out is None or out not in maker or number[jaxpr.invars[i]] in returned:
            continue
        bits = before[out]
        if all(bits >> n & 1 for n in readers(number[jaxpr.invars[i]])):
            safe.append(i)
    return tuple(sorted(safe))


def _flatten(jaxpr: Jaxpr, number: dict[Any, int], fresh: Iterator[int]) -> Iterator[_Step]:
    """The ops of a program and of those in it; enters the values' numbers into `number`."""
    for v in jaxpr.constvars:
        number[v] = next(fresh)
    for eqn in jaxpr.eqns:
        reads = [v for v in eqn.invars if not isinstance(v, Literal)]
        inner = _inner(eqn)
        if inner is None or len(inner.invars) != len(eqn.invars):
            for v in eqn.outvars:
                number[v] = next(fresh)
            makes = tuple([number[v] for v in eqn.outvars])
            yield _Step(eqn.primitive.name, tuple([number[v] for v in reads]), makes)
            continue
        scope: dict[Any, int] = {}
        for v, given in zip(inner.invars, eqn.invars, strict=True):
            scope[v] = next(fresh) if isinstance(given, Literal) else number[given]
        yield from _flatten(inner, scope, fresh)
        for v, made in zip(eqn.outvars, inner.outvars, strict=True):
            number[v] = next(fresh) if isinstance(made, Literal) else scope[made]


def _reduces(name: str) -> bool:
    return name.startswith(("reduce_", "arg")) and name != "reduce_precision"


def _inner(eqn: Any) -> Jaxpr | None:
    if eqn.primitive.name not in _CALLS:
        return None
    for name in _INNER:
        found = eqn.params.get(name)
        if found is not None:
            return found.jaxpr if isinstance(found, ClosedJaxpr) else found
    return None
