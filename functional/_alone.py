"""Running a program op by op: what is met for the first time may never be met again.

Every op that ran alone before dispatches in microseconds, while to compile the program costs more
the longer it is.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import jax
import numpy as np

from ._dtypes import is_floating
from ._lower import FaultSite, Side, summarise
from ._program import Aval, Input, Node, Program

# Milliseconds, measured on 2 CPU cores (docs/design.md section 4): to compile one op alone, and
# a program of n nodes whole. They decide only when a program met for the first time is compiled.
_ALONE = 25.0
_WHOLE = 60.0
_WHOLE_PER_NODE = 8.0
# Op by op no buffer is written over, and what gives buffers away is mostly a loop's body that will
# be met again: to compile it whole must be this much dearer, and the buffers no more than this.
_DONATING = 3
_DONATED = 64 << 20

# How many programs with the same update were compiled whole and hardly ran again, before the next
# new one may run op by op: a loop has few (its first step, the last batch), a net that is another
# at each step has many.
_PATIENCE = 4
_HARDLY = 2

_known: set[Any] = set()  # ops with the shapes that they ran alone with
_held: dict[Any, deque[ref[Any]]] = {}  # updates: the last plans compiled whole with them
_jitted: dict[Any, Any] = {}
_checks: dict[Any, _Checks] = {}


class OpByOp:
    """A program that runs op by op.

    Args:
      nodes: the program's.
      checked: whether any of them has something that only the data can tell.
    """

    def __init__(self, program: Program, nodes: list[Node], checked: bool) -> None:
        self.program, self.nodes, self.checked = program, nodes, checked

    def is_cheaper(self, donate: Sequence[int]) -> bool:
        """Whether the program's values are there sooner than if it was compiled whole."""
        if self.program.residuals:
            return False
        if any(_namespace(node.call) == "opaque" for node in self.nodes):
            return False  # a model is no little op
        updates = self._optimizers()
        if any(not _hardly_met_again(update) for update in updates):
            return False
        unknown = set(self._described()) - _known  # turns of a loop share what they compile
        whole = _WHOLE + _WHOLE_PER_NODE * len(self.nodes)
        if donate:
            inputs = [e.avals[0] for e in self.program.entries if isinstance(e, Input)]
            given = sum(math.prod(inputs[i].shape) * inputs[i].dtype.itemsize for i in donate)
            dearer = 1 if updates else _DONATING  # no loop's body, as these say
            whole = whole / dearer if given <= _DONATED else 0
        return len(unknown) * _ALONE <= whole

    def compiled(self, plan: Any) -> None:
        """Note that `plan`, which is of this program, is compiled whole."""
        for update in self._optimizers():
            _held.setdefault(update, deque(maxlen=_PATIENCE)).append(ref(plan))

    def _optimizers(self) -> list[Any]:
        """The optimizers' updates among what `_described` says."""
        if not any(_namespace(node.call) == "optim" for node in self.nodes):
            return []
        return [described for described in self._described() if _namespace(described[0]) == "optim"]

    def run(
        self, args: Sequence[Any], side: Side, make_room: Callable[[], None]
    ) -> tuple[tuple[Any, ...], Any]:
        """The outputs, and `(fault flags, values)` or None.

        Args:
          side: is told of the fault sites.
          make_room: called before each compilation.
        """
        env: list[Any] = []
        last_use: dict[int, int] = {}
        for e, entry in enumerate(self.program.entries):
            for i in getattr(entry, "inputs", ()):
                last_use[i] = e
        kept = set(self.program.outputs)
        supply = iter(args)
        flags: list[Any] = []
        described = iter(self._described())
        side.faults = []
        for e, entry in enumerate(self.program.entries):
            if isinstance(entry, Input):
                env.append(next(supply))
                continue
            inputs = [env[i] for i in entry.inputs]
            alone = next(described)
            if alone not in _known:
                make_room()
                _known.add(alone)
            env.extend(_compiled(entry)(*inputs))
            if self.checked and getattr(entry.call, "op", None) and entry.call.op.check:
                flags.extend(_check(entry, inputs, side))
            for i in set(entry.inputs):
                if last_use[i] == e and i not in kept:
                    env[i] = None
        outputs = tuple(jax.numpy.asarray(env[i]) for i in self.program.outputs)
        if not self.checked:
            return outputs, None
        bad = np.array([bool(f) for f, _ in flags], bool)
        return outputs, (bad, np.array([int(v) for _, v in flags], np.int64))

    def _described(self) -> list[Any]:
        avals: list[Aval] = []
        described = []
        for entry in self.program.entries:
            if isinstance(entry, Node):
                described.append((entry.call, tuple(avals[i] for i in entry.inputs)))
            avals.extend(entry.avals)
        return described


class _Checks:
    """The checks of one call, as a program of their own."""

    def __init__(self, call: Any) -> None:
        self.sites: dict[Any, list[FaultSite]] = {}

        def run(*arrays: Any) -> Any:
            faults = call.faults(*arrays)
            key = tuple((a.shape, a.dtype) for a in arrays)
            self.sites[key] = [FaultSite(f.error, f.message, None) for f in faults]
            return [summarise(f) for f in faults]

        self.jitted = jax.jit(run)

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[FaultSite], list[Any]]:
        inputs = [jax.numpy.asarray(a) for a in inputs]
        found = self.jitted(*inputs)
        return self.sites[tuple((a.shape, a.dtype) for a in inputs)], found


def _check(node: Node, inputs: Sequence[Any], side: Side) -> list[Any]:
    checks = _checks.get(node.call)
    if checks is None:
        checks = _checks[node.call] = _Checks(node.call)
    sites, found = checks(inputs)
    side.faults.extend(site._replace(where=node.where) for site in sites)
    return found


def _compiled(node: Node) -> Any:
    options = options_of((node,))
    key = (node.call, bool(options))
    jitted = _jitted.get(key)
    if jitted is None:
        jitted = _jitted[key] = jax.jit(node.call.evaluate, **options)
    return jitted


def options_of(nodes: Sequence[Node]) -> dict[str, Any]:
    """What to tell `jax.jit` for these nodes.

    XLA leaves out the rounding to 16 bits of what another op of the program reads, so that numbers
    would depend on where the program was cut.
    """
    dtypes = (aval.dtype for node in nodes for aval in node.avals)
    if any(dtype.itemsize == 2 and is_floating(dtype) for dtype in dtypes):
        return {"compiler_options": {"xla_allow_excess_precision": False}}
    return {}


def forget_alone() -> None:
    """Let go of all that was compiled alone."""
    compiled = [*_jitted.values(), *[checks.jitted for checks in _checks.values()]]
    for remembered in (_jitted, _checks, _known, _held):
        remembered.clear()
    for jitted in compiled:
        jitted.clear_cache()


def _hardly_met_again(update: Any) -> bool:
    """Whether the last programs that held this update are no turns of a loop."""
    plans = [held() for held in _held.get(update, ())]
    return len(plans) == _PATIENCE and all(p is None or p.runs <= _HARDLY for p in plans)


def _namespace(call: Any) -> str | None:
    inner = getattr(call, "call", None) or getattr(call, "source", None) or call
    return getattr(getattr(inner, "op", None), "namespace", None)
