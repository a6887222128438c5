"""Lowering of a program to one pure JAX function.

A node whose gradient is wanted in the same program is evaluated by `jax.vjp` once, and its
gradient node calls the closure: nothing is computed twice. Which pairs share is decided here,
by looking at the program; a gradient node that is itself differentiated stays a plain call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters.partial_eval import dce_jaxpr

from ..program.meta import META
from ..program.platform import platform_of, traced_for
from ..program.program import Aval, Input, Node, Program
from ..program.slices import needed_entries, placed_entries, renumber
from ..program.symbolic_lengths import general
from .guards import evaluate_guarded, unwritten
from .micro_batches import hold_back, turns_of
from .residuals import Leaves, Residual
from .scopes import scopes_of
from .shared_traces import SharedTraces
from .vjp import VjpCall


class FaultSite(NamedTuple):
    """One data-dependent check: the error to raise, should its flag be set."""

    error: type[Exception]
    message: str
    where: tuple[str, int] | None


class Side:
    """The by-products of tracing a lowered function, the same at every trace."""

    def __init__(self) -> None:
        self.residuals: list[Residual] = []
        self.faults: list[FaultSite] = []


def prune(program: Program) -> Program:
    """Remove the nodes that no output and no check needs; inputs stay where they are."""
    entries = placed_entries(program)
    kept = {e for e, _ in program.residuals}
    kept |= {e for e, entry in enumerate(program.entries) if is_checked(entry)}
    wanted = {*program.outputs, *[v for e in kept for v in program.entries[e].inputs]}
    kept |= {placed.place for placed in needed_entries(reversed(entries), wanted)}
    left = [p for p in entries if p.place in kept or isinstance(p.entry, Input)]
    if len(left) == len(entries):
        return program
    return renumber(left, program.outputs, program.residuals)


def is_checked(entry: Any) -> bool:
    """Return True if an entry has a check that only the data can answer, and data."""
    op = getattr(getattr(entry, "call", None), "op", None)
    return op is not None and op.check is not None and entry.avals[0].device is not META


def shared_pullbacks(program: Program) -> dict[int, tuple[int, ...]]:
    """Return the entries to evaluate by `jax.vjp`, with the inputs to differentiate by.

    A node shares with its gradient nodes if they take the very values that it took and are not
    differentiated in their turn.
    """
    differentiated = {
        e.primal for e in program.entries if isinstance(e, Node) and e.primal is not None
    }
    wanted: dict[int, set[int]] = {e: set(w) for e, w in program.residuals}
    for e, entry in enumerate(program.entries):
        if _shares(program, e, entry, differentiated):
            wanted.setdefault(entry.primal, set()).update(entry.call.wanted)
    return {e: tuple(sorted(w)) for e, w in wanted.items()}


def _shares(program: Program, e: int, entry: Any, differentiated: set[int]) -> bool:
    if not isinstance(entry, Node) or entry.primal is None or e in differentiated:
        return False
    call = entry.call
    if not isinstance(call, VjpCall) or call.missing:
        return False
    primal = program.entries[entry.primal]
    return bool(primal.call is call.call and primal.inputs == entry.inputs[: call.n])


def lower(
    program: Program, side: Side | None = None, guards: Sequence[tuple[int, int]] = ()
) -> Callable[..., tuple[Any, ...]]:
    """Turn the program into a pure JAX function of its inputs.

    Args:
      program: what to lower.
      side: filled with what tracing learns (residual structures, checks). If it is given, the
        function returns `(outputs, residual arrays, faults)`, else only the outputs. `faults` is
        an int64 array `(2, checks)`: 1 where a check found something, and the value that it found;
        all zeros if none did.
      guards: places of outputs that write over an input, and the place of that input: where a
        check found something, what the input held is returned.

    Returns:
      A function of one array an `Input`, in order.
    """
    firsts, scopes = program.first_values(), scopes_of(program)
    pulls = shared_pullbacks(program)
    differentiated = {
        e.primal for e in program.entries if isinstance(e, Node) and e.primal is not None
    }
    kept, turns = dict(program.residuals), turns_of(program, pulls)
    early = _guarded_early(program, guards, pulls)
    taken = {(firsts[e] + k, i) for e, those in early.items() for k, i in those.items()}
    late = [(k, i) for k, i in guards if (program.outputs[k], i) not in taken]
    platform = platform_of(aval for entry in program.entries for aval in entry.avals)

    def run(*arrays: Any) -> Any:
        with traced_for(platform):
            return evaluate(*arrays)

    def evaluate(*arrays: Any) -> Any:
        env: list[Any] = []
        closures: dict[int, Any] = {}
        supply = iter(arrays)
        leaves = Leaves()
        residuals: list[Residual] = []
        sites: list[FaultSite] = []
        faults: list[Any] = []
        traces = SharedTraces()
        for e, entry in enumerate(program.entries):
            if isinstance(entry, Input):
                env.append(next(supply))
                hold_back(env, turns.get(e))
                continue
            args = [env[i] for i in entry.inputs]
            call = entry.call
            try:
                with jax.named_scope(scopes[e]) if scopes[e] else nullcontext():
                    if e in pulls:
                        outs, closures[e] = traces.differentiate(call, args, pulls[e])
                        if e in kept:
                            residuals.append(leaves.add(closures[e]))
                    elif _shares(program, e, entry, differentiated):
                        outs = _pull(closures[entry.primal], pulls[entry.primal], call, args)
                    elif faults and e in early:
                        olds = {k: arrays[i] for k, i in early[e].items()}
                        bad = jnp.stack(faults, 1)[0].any()
                        outs = evaluate_guarded(call.evaluate, args, olds, bad)
                    else:
                        outs = tuple(traces.call(call, call.evaluate, args))
            except Exception as error:
                note_line(error, entry.where)
                raise
            env.extend(outs)
            hold_back(env, turns.get(e))
            if side is not None:
                for fault in call.faults(*args):
                    sites.append(FaultSite(fault.error, fault.message, entry.where))
                    flag, value = summarise(fault)
                    faults.append(jnp.stack([flag.astype("int64"), jnp.where(flag, value, 0)]))
        results = tuple(env[i] for i in program.outputs)
        if side is None:
            return results
        side.residuals, side.faults = residuals, sites
        found = jnp.stack(faults, 1) if faults else jnp.zeros((2, 0), "int64")
        if faults and late:
            results = unwritten(results, arrays, late, found[0].any())
        return results, tuple(leaves.arrays), found

    return run


def _guarded_early(
    program: Program, guards: Sequence[tuple[int, int]], pulls: Mapping[int, Any]
) -> dict[int, dict[int, int]]:
    """Return which results of entries behind all checks are guarded, and by which inputs."""
    over = {program.outputs[k]: i for k, i in guards}
    found: dict[int, dict[int, int]] = {}
    values = list(zip(program.entries, program.first_values(), strict=True)) if over else []
    last = max([e for e, (entry, _) in enumerate(values) if is_checked(entry)], default=-1)
    for e, (entry, first) in enumerate(values[last + 1 :], last + 1):
        mine = {k: over[first + k] for k in range(len(entry.avals)) if first + k in over}
        if mine and e not in pulls and isinstance(entry, Node) and entry.primal is None:
            found[e] = mine
    return found


def note_line(error: BaseException, where: tuple[str, int] | None) -> None:
    """Add to an error the user's line that recorded the op in which it was raised."""
    if where is not None and not any(
        n.startswith("recorded at ") for n in getattr(error, "__notes__", ())
    ):
        error.add_note(f"recorded at {where[0]}:{where[1]}")


def _pull(closure: Any, have: Sequence[int], call: VjpCall, args: Sequence[Any]) -> tuple[Any, ...]:
    cts = dict(zip(call.given, args[call.n :], strict=True))
    grads = closure([cts.get(k) for k in range(len(closure.meta.avals))])
    return tuple(grads[have.index(i)] for i in call.wanted)


def summarise(fault: Any) -> tuple[Any, Any]:
    bad = jnp.asarray(fault.bad)
    flag = jnp.any(bad)
    if fault.value is None:
        return flag, jnp.zeros((), "int64")
    if bad.size == 0:
        return flag, jnp.zeros((), "int64")
    value = jnp.broadcast_to(fault.value, bad.shape).reshape(-1)
    return flag, value[jnp.argmax(bad.reshape(-1))].astype("int64")


def needed_inputs(call: VjpCall, avals: tuple[Aval, ...]) -> frozenset[int]:
    """Return which inputs of the differentiated call its gradient really reads.

    Found by tracing the gradient and dropping what does not reach it, so what backward keeps
    over a cut is what it will use: nothing for `add`, both factors for `mul`. Gradients that differ
    in lengths alone read the same.
    """
    found = general(call, avals)
    trace = None if found is None else found[0].traced(call, avals, found[1])
    if trace is not None and trace.reads is not None:
        return trace.reads
    with jax.enable_x64(True):
        closed = jax.make_jaxpr(call.evaluate)(*[a.struct() for a in avals])
    reads = _read_by(closed, call.n)
    if found is not None and trace is not None:
        if reads == _read_by(trace.jaxpr, call.n):
            trace.reads = reads
        else:
            found[0].refuse()
    return reads


def _read_by(traced: Any, n: int) -> frozenset[int]:
    """Return which of the first inputs the outputs come from."""
    used = dce_jaxpr(traced.jaxpr, [True] * len(traced.jaxpr.outvars))[1]
    return frozenset(i for i in range(n) if used[i])
