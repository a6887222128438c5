"""Running a program op by op: what is met for the first time may never be met again.

Every op that ran alone before dispatches in microseconds, while to compile the program costs more
the longer it is.
"""

from __future__ import annotations

import functools
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import jax
import numpy as np

from ._dtypes import is_floating
from ._lower import FaultSite, Side, summarise
from ._numpy import MOST, evaluator
from ._program import Aval, Input, Node, Program

# Milliseconds, measured on 2 CPU cores (docs/design.md section 4): to compile one op alone, and
# a program of n nodes whole. They decide only when a program met for the first time is compiled.
_ALONE = 25.0
_BY_NUMPY = 5.0  # one on few elements, which is traced but not compiled
_WHOLE = 60.0
_WHOLE_PER_NODE = 8.0
# Op by op no buffer is written over, and what gives buffers away is mostly a loop's body that will
# be met again: to compile it whole must be this much dearer, and the buffers no more than this.
_DONATING = 3
_DONATED = 64 << 20

# How many programs with the same update were compiled whole and hardly ran again, before the next
# new one runs op by op as soon as that is cheaper: a loop has few (its first step, the last batch),
# a net that is another at each step has many, and may meet one a few times in a row.
_PATIENCE = 4
_HARDLY = 8
# A long program, met again, is compiled whole once it has taken this part of what that takes: at
# once if it is a loop's body (the same as the last time), unless it is very long. Episodes of other
# lengths are met again, too, but seldom.
_IN_TURN, _AT_ONCE = 0.02, 40.0  # ms
_BETWEEN_OTHERS = 0.3
_LONG, _LONG_STEP = 4000.0, 800.0  # ms to compile; the second of a program with an update

_ready: dict[Any, Any] = {}  # ops with the shapes that they ran alone with, and what ran them
_held: dict[Any, deque[ref[Any]]] = {}  # updates: the last plans compiled whole with them
_last: dict[Any, _Turns] = {}  # updates (None: of long programs without one)
_jitted: dict[Any, Any] = {}
_OFTEN = 1000  # runs of an op by NumPy after which it is compiled after all
_checks: dict[Any, _Checks] = {}


class OpByOp:
    """A program that runs op by op.

    Args:
      nodes: the program's.
      checked: whether any of them has something that only the data can tell.
    """

    def __init__(self, program: Program, nodes: list[Node], checked: bool) -> None:
        self.program, self.nodes, self.checked = program, nodes, checked
        self.spent = 0.0  # ms in runs that compiled nothing
        self.plan: ref[Any] | None = None  # of this program, once it is compiled whole
        self._whole = _WHOLE + _WHOLE_PER_NODE * len(nodes)

    def is_cheaper(self, donate: Sequence[int], met: bool) -> bool:
        """Whether the program's values are there sooner than if it was compiled whole.

        Args:
          donate: inputs whose buffers the compiled program could write over.
          met: it ran before.
        """
        if self.program.residuals:
            return False
        if any(_namespace(node.call) == "opaque" for node in self.nodes):
            return False  # a model is no little op
        updates, whole = self._optimizers, self._whole
        if met:
            return self.spent < self._worth()
        unknown = set(self._described) - _ready.keys()  # turns of a loop share what they compile
        alone = len(unknown) * _ALONE
        dearer = _DONATING if donate or updates else 1
        if self._hardly_loops:
            dearer = 1
        elif updates and whole < _LONG_STEP:
            return False
        if updates:
            alone -= sum(map(_is_little, unknown)) * (_ALONE - _BY_NUMPY)
        inputs = [e.avals[0] for e in self.program.entries if isinstance(e, Input)]
        given = sum(math.prod(inputs[i].shape) * inputs[i].dtype.itemsize for i in donate)
        return given <= _DONATED and alone * dearer <= whole

    def _worth(self) -> float:
        """The milliseconds to spend on runs op by op before the program is compiled whole."""
        kinds = self._kinds
        if not kinds:
            return 0.0
        in_turn = all(kind in _last and _last[kind].repeat(self) for kind in kinds)
        return _IN_TURN * self._whole - _AT_ONCE if in_turn else _BETWEEN_OTHERS * self._whole

    @property
    def _hardly_loops(self) -> bool:
        """Whether what was compiled with the same updates says that this is no loop's body."""
        return bool(self._optimizers) and all(map(_hardly_met_again, self._optimizers))

    @property
    def _kinds(self) -> list[Any]:
        """What the program takes turns by, a key of `_last` each; none for a short one."""
        if self._optimizers and (self._whole >= _LONG_STEP or self._hardly_loops):
            return self._optimizers
        return [None] * (self._whole >= _LONG)

    def _take_turn(self) -> None:
        for kind in self._kinds:
            _last.setdefault(kind, _Turns()).add(self)

    def compiled(self, plan: Any) -> None:
        """Note that `plan`, which is of this program, is compiled whole."""
        self.plan = ref(plan)
        self._take_turn()
        for update in self._optimizers:
            _held.setdefault(update, deque(maxlen=_PATIENCE)).append(ref(plan))

    @functools.cached_property
    def _optimizers(self) -> list[Any]:
        """The optimizers' updates among what `_described` says."""
        if not any(_namespace(node.call) == "optim" for node in self.nodes):
            return []
        return [described for described in self._described if _namespace(described[0]) == "optim"]

    def run(
        self, args: Sequence[Any], side: Side, make_room: Callable[[], None]
    ) -> tuple[tuple[Any, ...], Any]:
        """The outputs, and `(fault flags, values)` or None.

        Args:
          side: is told of the fault sites.
          make_room: called before each compilation.
        """
        start, compiles = time.perf_counter(), False
        self._take_turn()
        env: list[Any] = []
        last_use: dict[int, int] = {}
        for e, entry in enumerate(self.program.entries):
            for i in getattr(entry, "inputs", ()):
                last_use[i] = e
        kept = set(self.program.outputs)
        supply = iter(args)
        flags: list[Any] = []
        described = iter(self._described)
        side.faults = []
        for e, entry in enumerate(self.program.entries):
            if isinstance(entry, Input):
                env.append(next(supply))
                continue
            inputs = [env[i] for i in entry.inputs]
            alone = next(described)
            if alone not in _ready:
                make_room()
                compiles = True
            env.extend(_ran(_ready, alone, inputs, entry.call.evaluate, _compiled, entry))
            if self.checked and getattr(entry.call, "op", None) and entry.call.op.check:
                flags.extend(_check(entry, inputs, side))
            for i in set(entry.inputs):
                if last_use[i] == e and i not in kept:
                    env[i] = None
        outputs = tuple(jax.device_put(env[i]) for i in self.program.outputs)
        if self._kinds and not compiles:
            jax.block_until_ready(outputs)  # what they take to compute counts as well
            self.spent += (time.perf_counter() - start) * 1e3
        if not self.checked:
            return outputs, None
        bad = np.array([bool(f) for f, _ in flags], bool)
        return outputs, (bad, np.array([int(v) for _, v in flags], np.int64))

    @functools.cached_property
    def _described(self) -> list[Any]:
        """The ops with the shapes that they take."""
        avals: list[Aval] = []
        described = []
        for entry in self.program.entries:
            if isinstance(entry, Node):
                described.append((entry.call, tuple(avals[i] for i in entry.inputs)))
            avals.extend(entry.avals)
        return described


class _Turns:
    """The last programs with one update, and how often each ran in a row."""

    def __init__(self) -> None:
        self._last: deque[tuple[ref[OpByOp], int]] = deque(maxlen=_PATIENCE)

    def add(self, program: OpByOp) -> None:
        before = self._in_a_row(program)
        if before:
            self._last.pop()
        self._last.append((ref(program), before + 1))

    def repeat(self, program: OpByOp) -> bool:
        """Whether `program` is the same as before: many times, where the last were no loops."""
        *others, _ = self._last
        hardly = len(others) == _PATIENCE - 1 and not any(_looped(*other) for other in others)
        return self._in_a_row(program) > (_HARDLY if hardly else 0)

    def _in_a_row(self, program: OpByOp) -> int:
        if not self._last or self._last[-1][0]() is not program:
            return 0
        return self._last[-1][1]


def _looped(held: ref[OpByOp], times: int) -> bool:
    """Whether a program was met again and again, as far as it is still there."""
    program = held()
    plan = None if program is None or program.plan is None else program.plan()
    return times > _HARDLY or _ran_often(plan)


class _Checks:
    """The checks of one call, as a program of their own."""

    def __init__(self, call: Any) -> None:
        self.sites: dict[Any, list[FaultSite]] = {}

        def run(*arrays: Any) -> Any:
            faults = call.faults(*arrays)
            key = tuple((a.shape, a.dtype) for a in arrays)
            self.sites[key] = [FaultSite(f.error, f.message, None) for f in faults]
            return [x for f in faults for x in summarise(f)]

        self._run, self.jitted = run, jax.jit(run)
        self._ready: dict[Any, Any] = {}

    def __call__(self, inputs: Sequence[Any]) -> tuple[list[FaultSite], list[Any]]:
        arrays = [np.asarray(a) if type(a) in (int, float, bool) else a for a in inputs]
        key = tuple((a.shape, a.dtype) for a in arrays)
        found = _ran(self._ready, key, arrays, self._run, lambda checks: checks.jitted, self)
        return self.sites[key], list(zip(found[::2], found[1::2], strict=True))


def _ran(
    ready: dict[Any, Any], key: Any, arrays: Sequence[Any], fn: Callable[..., Any],
    compiled: Callable[[Any], Any], what: Any,
) -> Any:  # fmt: skip
    """What `fn` gives: by NumPy as long as that is for it, then by `compiled(what)`.

    Args:
      ready: what runs `fn` for arrays like these, by key.
    """
    run = ready.get(key)
    if run is None:
        run = ready[key] = _small(fn, arrays) or compiled(what)
    found = run(*arrays)
    if found is None:
        run = ready[key] = compiled(what)
        found = run(*arrays)
    return found


class _Small:
    """A function by NumPy, for arrays of few elements; None instead of what it returns once it ran
    so often that it should be compiled.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn, self._left = fn, _OFTEN

    def __call__(self, *arrays: Any) -> list[Any] | None:
        self._left -= 1
        return self._fn(*arrays) if self._left >= 0 else None


def _small(fn: Callable[..., Any], arrays: Sequence[Any]) -> _Small | None:
    """The function by NumPy, if that can compute it for arrays like these."""
    found = evaluator(fn, arrays) if _on_host() else None
    return None if found is None else _Small(found)


def _is_little(described: Any) -> bool:
    """Whether NumPy may compute an op, by what it takes."""
    return _on_host() and all(math.prod(aval.shape) <= MOST for aval in described[1])


@functools.cache
def _on_host() -> bool:
    """Whether NumPy's arrays are where a program's would be."""
    return jax.default_backend() == "cpu" and jax.local_device_count() == 1


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
    for remembered in (_jitted, _checks, _ready, _held, _last):
        remembered.clear()
    for jitted in compiled:
        jitted.clear_cache()


def _hardly_met_again(update: Any) -> bool:
    """Whether the last programs that held this update are no turns of a loop."""
    plans = [held() for held in _held.get(update, ())]
    return len(plans) == _PATIENCE and not any(map(_ran_often, plans))


def _ran_often(plan: Any) -> bool:
    """Whether what is compiled, if it is still there, ran as the body of a loop does."""
    return plan is not None and plan.runs > _HARDLY


def _namespace(call: Any) -> str | None:
    inner = getattr(call, "call", None) or getattr(call, "source", None) or call
    return getattr(getattr(inner, "op", None), "namespace", None)
