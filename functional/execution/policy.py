"""Whether a program runs op by op or is compiled whole.

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

from ..lowering.vjp import ResidualCall
from ..program.options import lowerings
from ..program.program import Input, Node, Program
from .drawn_in_blocks import in_blocks
from .single_ops import LITTLE, is_exact, is_little, is_ready, namespace_of, on_host

# Milliseconds, measured on 2 CPU cores (benchmarks/decisions.md): to compile one op alone, and
# a program of n nodes whole. They decide only when a program met for the first time is compiled.
_ALONE = 25.0
_BY_NUMPY = 5.0  # one on few elements, which is traced but not compiled
_MODEL = 100.0  # the gradient of a small model
_WHOLE = 60.0
_WHOLE_PER_NODE = 8.0
# Op by op no buffer is written over, and what gives buffers away is mostly a loop's body that will
# be met again: to compile it whole must be this much dearer, and the buffers no more than this.
_DONATING = 3
_DONATED = 64 << 20
_ONE = 16  # bytes of a number, or of a generator's state, which every draw gives away

# How many programs with the same update were compiled whole before the next new one runs op by op
# as soon as that is cheaper: a loop has a first step, the next, and a body in which numbers that
# change are inputs; more are batches of other lengths.
_SEVERAL = 3
# Without an update: how many that end at the same line and hardly ran again, maybe in a row.
_PATIENCE = 4
_HARDLY = 8
# A long program, met again, is compiled whole once it has taken this part of what that takes: at
# once if it is a loop's body (the same as the last time), unless it is very long. Episodes of other
# lengths are met again, too, but seldom.
_IN_TURN, _AT_ONCE = 0.02, 40.0  # ms
_BETWEEN_OTHERS = 1.0
_LONG, _LONG_STEP = 4000.0, 800.0  # ms to compile; the second of a program with an update

#: Ops that parameters are made by, which give the same to the last bit wherever they run.
_FILLS = frozenset({
    "uniform", "fill.normal", "rand", "randn", "next_key", "fill", "zero", "zeros", "ones", "full",
    "mul",
})  # fmt: skip

_OFTEN_ASKED = 2  # gradients of small models in a program, for each that is to be compiled alone
_FEW = 8  # nodes that NumPy computes in about the time that a compiled program takes to start

_held: dict[Any, deque[ref[Any]]] = {}  # families: the last plans compiled whole of them
_last: dict[Any, _Turns] = {}  # families (None: all long programs without an update)


class Choice:
    """When one program runs op by op.

    Args:
      steps: its nodes as they run alone, each with its call and what that takes.

    Attributes:
      spent: milliseconds in runs op by op that compiled nothing.
      plan: of this program, once it is compiled whole.
    """

    def __init__(self, program: Program, steps: list[tuple[Node, Any]]) -> None:
        self._program, self._steps = program, steps
        self.spent = 0.0
        self.plan: ref[Any] | None = None
        self._whole = _WHOLE + _WHOLE_PER_NODE * len(steps)

    def op_by_op(self, donate: Sequence[int], met: bool, once: bool = False) -> bool:
        """Whether the program's values are there sooner than if it was compiled whole.

        Args:
          donate: inputs whose buffers the compiled program could write over.
          met: it ran before.
          once: it is not likely to be met again.
        """
        if not self._takes_models_apart():
            return False
        if lowerings()["op_by_op"] == "exact" and not self._is_exact:
            return False
        if self._fills:
            return True
        if met:
            return once or self._stays_by_numpy or self.spent < self._worth()
        one_of_many = self._is_one_of_many
        steps = bool(self._optimizers or self._program.residuals)
        if steps and not one_of_many and self._whole < _LONG_STEP:
            return False
        by_numpy = steps or one_of_many or once or self._whole >= _LONG_STEP
        # Turns of a loop share what they compile.
        unknown = {alone: node for node, alone in self._steps if not is_ready(alone)}
        alone = sum(
            _MODEL
            if namespace_of(node.call) == "opaque"
            else _BY_NUMPY
            if is_little(key) and (by_numpy or is_exact(node))
            else _ALONE
            for key, node in unknown.items()
        )
        inputs = [e.avals[0] for e in self._program.entries if isinstance(e, Input)]
        given = sum(math.prod(inputs[i].shape) * inputs[i].dtype.itemsize for i in donate)
        gives = bool(self._optimizers) or bool(donate) and not (given <= _ONE and self._only_scales)
        dearer = _DONATING if gives and not (one_of_many or once) else 1
        return given <= _DONATED and alone * dearer <= self._whole

    def _takes_models_apart(self) -> bool:
        """Tell whether the models in the program, if any, may run alone.

        A model is no little op, but an episode that asked a small one at each of its turns has as
        many of its gradients, which are few different ones, and another length each time.
        """
        models = self._models
        if not all(isinstance(node.call, ResidualCall) and is_little(a) for node, a in models):
            return False
        unknown = {alone for _, alone in models if not is_ready(alone)}
        return not unknown or len(models) > _OFTEN_ASKED * len(unknown)

    @functools.cached_property
    def _models(self) -> list[tuple[Node, Any]]:
        return [step for step in self._steps if namespace_of(step[0].call) == "opaque"]

    @functools.cached_property
    def _stays_by_numpy(self) -> bool:
        """Whether it is as soon there by NumPy as compiled, and the same to the last bit."""
        little = all(is_little(alone, LITTLE) for _, alone in self._steps)
        return len(self._steps) <= _FEW and little and self._is_exact

    @functools.cached_property
    def _is_cheap(self) -> bool:
        """Whether it runs op by op for long before compiling it is worth it: a long one with an
        update, or without one what NumPy computes."""
        if self._optimizers:
            return self._whole >= _LONG_STEP
        return not self._program.residuals and all(is_little(alone) for _, alone in self._steps)

    @functools.cached_property
    def _fills(self) -> bool:
        """Tell whether the program makes parameters: draws in blocks and little else but fills."""
        names = [
            getattr(getattr(node.call, "op", None), "qualified", None) for node, _ in self._steps
        ]
        draws = sum(in_blocks(node) is not None for node, _ in self._steps)
        others = sum(name not in _FILLS for name in names)
        return draws > 0 and on_host() and others * _FEW <= len(names)

    @functools.cached_property
    def _only_scales(self) -> bool:
        """Whether it draws and multiplies alone, as parameters are drawn: compiled whole it gives
        the same numbers, and the same seed must."""
        return all(
            is_exact(node) or getattr(getattr(node.call, "op", None), "name", None) == "mul"
            for node, _ in self._steps
        )

    @functools.cached_property
    def _is_exact(self) -> bool:
        return all(is_exact(node) for node, _ in self._steps)

    def _worth(self) -> float:
        """The milliseconds to spend on runs op by op before the program is compiled whole."""
        kinds = self._kinds
        if not kinds:
            return 0.0
        turns = [_last.get(kind) for kind in kinds]
        in_turn = all(last is not None and last.repeat(self) for last in turns)
        return _IN_TURN * self._whole - _AT_ONCE if in_turn else _BETWEEN_OTHERS * self._whole

    @functools.cached_property
    def _families(self) -> list[Any]:
        """Others that a program is like: those with its updates, or that end at the same line."""
        where = self._steps[-1][0].where if self._steps else None
        return self._optimizers or ([where] if where is not None else [])

    @property
    def _is_one_of_many(self) -> bool:
        """Whether what was compiled of the same families says that this is no loop's body: with
        an update several, else many that hardly ran again."""
        other = _are_several if self._optimizers else _hardly_met_again
        return bool(self._families) and all(map(other, self._families))

    @property
    def _kinds(self) -> list[Any]:
        """What the program takes turns by, a key of `_last` each; none for a short one."""
        kinds = self._families if self._is_one_of_many or self._is_cheap else []
        if self._optimizers and kinds:
            return kinds
        # Parts of one long computation, text that is sampled, end at lines of their own: each would
        # be in turn there.
        return kinds + [None] * (self._whole >= (_LONG_STEP if self._program.residuals else _LONG))

    @property
    def counts(self) -> bool:
        """Whether it matters how long a run takes."""
        return bool(self._kinds)

    def take_turn(self) -> None:
        """Note that the program runs."""
        for kind in self._kinds:
            _last.setdefault(kind, _Turns()).add(self)

    def compiled(self, plan: Any) -> None:
        """Note that `plan`, which is of this program, is compiled whole."""
        self.plan = ref(plan)
        self.take_turn()
        for family in self._families:
            _held.setdefault(family, deque(maxlen=_PATIENCE)).append(ref(plan))

    @functools.cached_property
    def _optimizers(self) -> list[Any]:
        """The optimizers' updates among what runs alone."""
        return [alone for node, alone in self._steps if namespace_of(node.call) == "optim"]


class _Turns:
    """The last programs of one family, and how often each ran in a row."""

    def __init__(self) -> None:
        self._last: tuple[tuple[ref[Choice], int], ...] = ()  # set whole: threads share it

    def add(self, program: Choice) -> None:
        last = self._last
        before = _in_a_row(last, program)
        rest = last[:-1] if before else last
        self._last = (*rest, (ref(program), before + 1))[-_PATIENCE:]

    def repeat(self, program: Choice) -> bool:
        """Whether `program` is the same as before: many times, where the last were no loops."""
        last = self._last
        others = last[:-1]
        hardly = len(others) == _PATIENCE - 1 and not any(_looped(*other) for other in others)
        return _in_a_row(last, program) > (_HARDLY if hardly else 0)


def _in_a_row(last: Sequence[tuple[ref[Choice], int]], program: Choice) -> int:
    return last[-1][1] if last and last[-1][0]() is program else 0


def _looped(held: ref[Choice], times: int) -> bool:
    """Whether a program was met again and again, as far as it is still there."""
    program = held()
    plan = None if program is None or program.plan is None else program.plan()
    return times > _HARDLY or _ran_often(plan)


def _are_several(family: Any) -> bool:
    """Whether so many of this family were compiled that more are batches of other lengths."""
    return len(_held.get(family, ())) >= _SEVERAL


def _hardly_met_again(family: Any) -> bool:
    """Whether the last programs of this family are no turns of a loop."""
    plans = [held() for held in list(_held.get(family, ()))]  # other threads add to it
    return len(plans) == _PATIENCE and not any(map(_ran_often, plans))


def _ran_often(plan: Any) -> bool:
    """Whether what is compiled, if it is still there, ran as the body of a loop does."""
    return plan is not None and plan.runs > _HARDLY


def forget_choices() -> None:
    """Forget what was compiled of which family, and what ran in turns."""
    _held.clear()
    _last.clear()
