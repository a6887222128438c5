"""The first difference between two programs, in words for whoever wonders why both compile."""

from __future__ import annotations

from collections import Counter, OrderedDict
from pathlib import Path
from typing import Any
from weakref import ref

from leafax.functional.execution.plan import Plan
from leafax.functional.lowering.vjp import ResidualCall, VjpCall
from leafax.functional.program.program import Aval, Call, Input, Node, Program
from leafax.functional.program.templates import freeze

from .._core.run_log import Run

_UNKNOWN = "the program before it is forgotten"
_SAME = "it is the same program, which was forgotten for many others"

_MOST_LINES = 1000
_last: OrderedDict[tuple[str, int], ref[Plan]] = OrderedDict()  # by line: its last new program


def note_new(run: Run, plan: Plan) -> Run:
    """Note that a line ran a new program, or ran one op by op; return the run with that."""
    now = ref(plan)
    before = _last.pop(run.where, None)
    _last[run.where] = now
    if len(_last) > _MOST_LINES:
        _last.popitem(last=False)
    donated = run.donated if run.how == "compiled" else 0
    return run._replace(donated=donated, programs=(now, before))


def file_line(where: tuple[str, int] | None) -> str:
    return "an unknown line" if where is None else f"{Path(where[0]).name}:{where[1]}"


def difference(before: Plan | None, now: Plan) -> str:
    """Say what is first different in a program from the one that the same line ran before."""
    if before is None:
        return _UNKNOWN
    if before is now:
        return _SAME
    old, new = before.program, now.program
    found = _other_ops(old, new) or _other_entries(old, new)
    if found:
        return found
    if len(old.outputs) != len(new.outputs):
        return f"{len(new.outputs)} results are wanted where it were {len(old.outputs)}"
    if old.outputs != new.outputs or old.residuals != new.residuals:
        return "other results are wanted"
    if before.donate != now.donate:
        return (
            f"{len(now.donate)} buffers can be written over where it were {len(before.donate)}: "
            "something holds on to an old value, or no longer does"
        )
    return "other inputs stay as they are"


def _other_ops(old: Program, new: Program) -> str:
    """Name an op that one program has and the other has not."""
    was, is_ = (Counter(_op_of(e) for e in p.entries if isinstance(e, Node)) for p in (old, new))
    for op, where in is_ - was:
        return f"`{op}` ({file_line(where)}) is computed in it, which was not before"
    for op, where in was - is_:
        return f"`{op}` ({file_line(where)}) is not computed in it, which was before"
    return ""


def _op_of(node: Node) -> tuple[str, tuple[str, int] | None]:
    return node.call.name, node.where


def _other_entries(old: Program, new: Program) -> str:
    """Say what differs first in two programs of the same ops."""
    was, is_ = _inputs_by_taker(old), _inputs_by_taker(new)
    for taker, (i, aval) in is_.items():
        before = was.get(taker, (0, aval))[1]
        if aval != before:
            by = f", which `{taker[0]}` ({file_line(taker[1])}) takes,"
            if (now := _kind(aval)) != (last := _kind(before)):
                return f"input {i}{by} is {now} where it was {last}"
            return f"input {i}{by} is on {_place(aval)} where it was on {_place(before)}"
    for a, b in zip(old.entries, new.entries, strict=False):
        if isinstance(a, Input) and isinstance(b, Input):
            continue
        if isinstance(a, Node) and isinstance(b, Node):
            if a.call is not b.call:
                return _other_call(a, b)
            if a.inputs != b.inputs:
                return f"`{b.call.name}` ({file_line(b.where)}) takes other operands"
        else:
            node = a if isinstance(a, Node) else b
            return f"`{node.call.name}` ({file_line(node.where)}) comes at another place"
    if len(old.entries) != len(new.entries):
        return f"it has {len(new.entries)} inputs and ops where it had {len(old.entries)}"
    return ""


def _inputs_by_taker(program: Program) -> dict[tuple[Any, ...], tuple[int, Aval]]:
    """Map the operands that are inputs to these: the order of inputs says little."""
    found: dict[tuple[Any, ...], tuple[int, Aval]] = {}
    firsts = zip(program.entries, program.first_values(), strict=True)
    inputs = [(first, entry.aval) for entry, first in firsts if isinstance(entry, Input)]
    number = {first: (i, aval) for i, (first, aval) in enumerate(inputs)}
    times: Counter[Any] = Counter()
    for entry in program.entries:
        if isinstance(entry, Node):
            op = _op_of(entry)
            times[op] += 1
            takes = [(k, v) for k, v in enumerate(entry.inputs) if v in number]
            found |= {(*op, times[op], k): number[v] for k, v in takes}
    return found


def _kind(aval: Aval) -> str:
    if aval.weak:
        return f"a number of {aval.dtype.name}"
    return f"{aval.dtype.name}{list(aval.shape)}"


def _place(aval: Aval) -> str:
    if isinstance(aval.device, tuple):
        return f"a mesh of {len(aval.device)} devices"
    return "the default device" if aval.device is None else str(aval.device)


def _other_call(old: Node, new: Node) -> str:
    """Say how a call differs from one of the same name at the same place."""
    a, b, place = old.call, new.call, file_line(new.where)
    if isinstance(a, VjpCall) and isinstance(b, VjpCall):
        if (a.wanted, a.given) != (b.wanted, b.given):
            return f"other gradients of `{b.call.name}` ({place}) are wanted"
        a, b = a.call, b.call
    if isinstance(b, ResidualCall):
        return f"`{b.name}` ({place}) is the gradient of another call"
    if not (isinstance(a, Call) and isinstance(b, Call)):
        return f"`{b.name}` ({place}) is another call"
    if b.op.namespace == "opaque":
        return f"the JAX function `{b.op.name}` ({place}) was traced anew"
    if b.op.namespace == "optim":
        return f"`{b.name}` ({place}) has other hyperparameters, or updates other parameters"
    was, is_ = a.arguments, b.arguments
    for name in [*is_, *was]:
        if freeze(was.get(name)) != freeze(is_.get(name)):
            return (
                f"`{name}` of `{b.name}` ({place}) is {is_.get(name)!r} where it was "
                f"{was.get(name)!r}"
            )
    for fact in ("matmul", "conv", "rnn", "opaque"):
        before, now = getattr(a.numerics, fact), getattr(b.numerics, fact)
        if before != now:
            return (
                f"products in `{b.name}` ({place}) are of precision {now!r} where it was {before!r}"
            )
    return f"`{b.name}` ({place}) is computed in another dtype"
