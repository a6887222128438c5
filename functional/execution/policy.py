"""The policy that runs a program op by op or compiles it whole.

Every op that ran alone before dispatches in microseconds, while to compile the program costs more
the longer it is; but what is met again is mostly a loop's body, which runs fastest in one piece.
"""

from __future__ import annotations

import functools
import math
from collections import deque
from collections.abc import Sequence
from typing import Any
from weakref import ref

from ..program.options import lowerings
from ..program.program import Input, Node, Program
from .drawn_in_blocks import in_blocks
from .known_ops import SingleOp
from .recent_runs import RecentRuns, ran_often
from .single_ops import fits_numpy, is_exact, on_host
from .thresholds import (
    ALTERNATING_SHARE,
    CALLS_PER_MODEL,
    COMPILE_MODEL_MS,
    COMPILE_NODE_MS,
    COMPILE_OP_MS,
    COMPILE_PROGRAM_MS,
    COMPILED_UPDATES,
    DONATED_BYTES,
    DONATION_FACTOR,
    FILLS_PER_OTHER,
    LONG_PROGRAM_MS,
    LONG_STEP_MS,
    NUMPY_FAST_ELEMENTS,
    NUMPY_NODES,
    RECENT_PROGRAMS,
    SCALAR_BYTES,
    TRACE_OP_MS,
    WHOLE_REPEATS,
    WHOLE_WEIGHT,
)

#: Ops that parameters are made by, which give the same to the last bit wherever they run.
_FILLS = frozenset({
    "uniform", "fill.normal", "rand", "randn", "next_key", "fill", "zero", "zeros", "ones", "full",
    "mul",
})  # fmt: skip

_compiled_plans: dict[Any, deque[ref[Any]]] = {}  # families: the last plans compiled whole of them
_recent_runs: dict[Any, RecentRuns] = {}  # families (None: all long programs without an update)


class CompilePolicy:
    """The policy for one program.

    Args:
      nodes, ops: its nodes as they run alone, and what each is by itself.

    Attributes:
      spent: milliseconds in runs op by op that compiled nothing.
      whole: it is compiled at once, since it will run many times.
      plan: of this program, once it is compiled whole.
      is_long: to compile it whole takes long.
    """

    def __init__(self, program: Program, nodes: Sequence[Node], ops: Sequence[SingleOp]) -> None:
        self._program, self._nodes, self._ops = program, nodes, ops
        self.spent = 0.0
        self.whole = False
        self.plan: ref[Any] | None = None
        self._weight = sum(op.weight for op in ops)
        self._compile_ms = COMPILE_PROGRAM_MS + COMPILE_NODE_MS * self._weight
        self.is_long = self._compile_ms >= LONG_PROGRAM_MS

    def runs_op_by_op(self, donate: Sequence[int], met: bool, once: bool = False) -> bool:
        """Return True if the values are there sooner op by op than compiled whole.

        Args:
          donate: inputs whose buffers the compiled program could write over.
          met: it ran before.
          once: it is not likely to be met again.
        """
        if self.whole or not self._may_run_models_alone():
            return False
        if lowerings()["op_by_op"] == "exact" and not self._is_exact:
            return False
        inputs = [e.avals[0] for e in self._program.entries if isinstance(e, Input)]
        given = sum(math.prod(inputs[i].shape) * inputs[i].dtype.itemsize for i in donate)
        if self.makes_parameters or self._is_long_loop and given <= DONATED_BYTES:
            return True
        if met:
            return once or self._stays_with_numpy or self.spent < self._budget_ms()
        one_of_many = self._is_one_of_many
        steps = bool(self._optimizers or self._program.residuals)
        if steps and not one_of_many and self._compile_ms < LONG_STEP_MS:
            return False
        by_numpy = steps or one_of_many or once or self._compile_ms >= LONG_STEP_MS
        # Turns of a loop share what they compile.
        each = zip(self._ops, self._nodes, strict=True)
        unknown = {op: node for op, node in each if op.run is None}
        one_by_one = sum(
            COMPILE_MODEL_MS
            if op.namespace == "opaque"
            else TRACE_OP_MS
            if fits_numpy(op) and (by_numpy or is_exact(node))
            else COMPILE_OP_MS
            for op, node in unknown.items()
        )
        gives = (
            bool(self._optimizers)
            or bool(donate)
            and not (given <= SCALAR_BYTES and self._only_draws_and_scales)
        )
        dearer = DONATION_FACTOR if gives and not (one_of_many or once) else 1
        return given <= DONATED_BYTES and one_by_one * dearer <= self._compile_ms

    def reason(self, once: bool) -> str:
        """Say why the program runs op by op, and when it is compiled whole.

        Args:
          once: as `runs_op_by_op` takes it.
        """
        if self.makes_parameters:
            return "it makes parameters"
        if self._is_long_loop:
            return "pieces of so long a program are compiled once for all lengths"
        if self._stays_with_numpy:
            return "NumPy computes so few small ops as soon"
        if once:
            return "it is not likely to come again"
        turns = [_recent_runs.get(key) or RecentRuns() for key in self._turn_keys]
        if not turns:
            return "it is compiled whole when it comes again"
        runs = 1 + max(last.starts(self) for last in turns)
        often = "twice" if runs == 2 else f"{runs} times"
        return (
            f"it is compiled whole when it comes {often} in a row, or has taken "
            f"{ALTERNATING_SHARE * self._compile_ms:.0f} ms op by op"
        )

    def _may_run_models_alone(self) -> bool:
        """Return True if the models in the program, if any, may run alone.

        A model is no little op, but an episode, a sentence or a solver calls one at each turn: that
        are few different calls, and another number of them each time.
        """
        models = [op for op in self._ops if op.namespace == "opaque"]
        unknown = {op for op in models if op.run is None}
        return len(models) > CALLS_PER_MODEL * len(unknown) or not models

    @functools.cached_property
    def _is_long_loop(self) -> bool:
        """True if it consists of few different ops, or is too long to be compiled whole."""
        if len(self._ops) > WHOLE_REPEATS * len({*self._ops}):
            return True
        step = bool(self._optimizers or self._program.residuals)
        return not step and self._weight > WHOLE_WEIGHT

    @functools.cached_property
    def _stays_with_numpy(self) -> bool:
        """True if NumPy computes it as soon as a compiled program, to the same bits."""
        little = all(fits_numpy(op, NUMPY_FAST_ELEMENTS) for op in self._ops)
        return len(self._ops) <= NUMPY_NODES and little and self._is_exact

    @functools.cached_property
    def _waits_long(self) -> bool:
        """True if it runs op by op for long before it is compiled.

        So does a long program with an update, and one that NumPy computes without an update.
        """
        if self._optimizers:
            return self._compile_ms >= LONG_STEP_MS
        return not self._program.residuals and all(map(fits_numpy, self._ops))

    @functools.cached_property
    def makes_parameters(self) -> bool:
        """True if the program makes parameters: draws in blocks and little else but fills."""
        names = [getattr(getattr(op.call, "op", None), "qualified", None) for op in self._ops]
        draws = sum(in_blocks(node) is not None for node in self._nodes)
        others = sum(name not in _FILLS for name in names)
        return draws > 0 and on_host() and others * FILLS_PER_OTHER <= len(names)

    @functools.cached_property
    def _only_draws_and_scales(self) -> bool:
        """True if it draws and multiplies alone, as parameters are drawn.

        Compiled whole it gives the same numbers, as the same seed must.
        """
        return all(
            is_exact(node) or getattr(getattr(node.call, "op", None), "name", None) == "mul"
            for node in self._nodes
        )

    @functools.cached_property
    def _is_exact(self) -> bool:
        return all(map(is_exact, self._nodes))

    def _budget_ms(self) -> float:
        """Return the milliseconds of runs op by op before the program is compiled whole."""
        turns = [_recent_runs.get(key) for key in self._turn_keys]
        if all(last is not None and last.repeats(self) for last in turns):
            return 0.0
        return ALTERNATING_SHARE * self._compile_ms

    @functools.cached_property
    def _families(self) -> list[Any]:
        """Keys of programs like this one: with its updates, or that end at the same line."""
        where = self._nodes[-1].where if self._nodes else None
        return self._optimizers or ([where] if where is not None else [])

    @property
    def _is_one_of_many(self) -> bool:
        """True if the programs compiled of its families say that this is no loop's body.

        With an update these are several, else many that hardly ran again.
        """
        other = _has_several if self._optimizers else _hardly_met_again
        return bool(self._families) and all(map(other, self._families))

    @property
    def _turn_keys(self) -> list[Any]:
        """Keys of `_recent_runs` that the program is counted under; none for a short one."""
        keys = self._families if self._is_one_of_many or self._waits_long else []
        if self._optimizers and keys:
            return keys
        # Parts of one long computation, text that is sampled, end at lines of their own: each would
        # be in turn there.
        return keys + [None] * (
            self._compile_ms >= (LONG_STEP_MS if self._program.residuals else LONG_PROGRAM_MS)
        )

    @property
    def is_timed(self) -> bool:
        """True if it matters how long a run takes."""
        return bool(self._turn_keys)

    def note_run(self) -> None:
        """Note that the program runs."""
        for key in self._turn_keys:
            _recent_runs.setdefault(key, RecentRuns()).add(self)

    def note_compiled(self, plan: Any) -> None:
        """Note that `plan`, which is of this program, is compiled whole."""
        self.plan = ref(plan)
        self.note_run()
        for family in self._families:
            _compiled_plans.setdefault(family, deque(maxlen=RECENT_PROGRAMS)).append(ref(plan))

    @functools.cached_property
    def _optimizers(self) -> list[Any]:
        """Keys of the optimizers' updates among the nodes."""
        return [op for op in self._ops if op.namespace == "optim"]


def _has_several(family: Any) -> bool:
    """Return True if so many of a family were met that more are other lengths."""
    recent = _recent_runs.get(family)
    met = len(_compiled_plans.get(family, ())), 0 if recent is None else recent.programs
    return max(met) >= COMPILED_UPDATES


def _hardly_met_again(family: Any) -> bool:
    """Return True if the last programs of this family are no turns of a loop."""
    plans = [held() for held in list(_compiled_plans.get(family, ()))]  # other threads add to it
    return len(plans) == RECENT_PROGRAMS and not any(map(ran_often, plans))


def forget_runs() -> None:
    """Forget which programs ran, and which were compiled of which family."""
    _compiled_plans.clear()
    _recent_runs.clear()
