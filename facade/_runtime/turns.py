"""Plans of a loop's turns: the first turn runs the program that the later ones run.

What was made before a loop and is still pending, a mask or a table of positions, would be computed
in the first turn's program and enter the later ones'. What comes from no input is computed on its
own, and enters the first turn, too. A program that differs from a known one in the order of its
inputs alone is run by that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any
from weakref import ref

from leafax.functional.execution.donation import pair
from leafax.functional.execution.outcome import Outcome
from leafax.functional.execution.plan import Plan, plan_for
from leafax.functional.lowering.lower import is_checked, prune
from leafax.functional.program.canonical import canonical
from leafax.functional.program.program import Call, Input, Node, Program
from leafax.functional.program.slices import PlacedEntry, needed_entries, placed_entries, renumber

_MOST_BYTES = 64 << 20  # of constants that are kept for a program
_MOST_PLANS = 4096

#: By canonical key: a plan, its inputs in canonical order, its outputs by their canonical numbers.
_known: dict[Any, tuple[ref[Plan], tuple[int, ...], dict[int, int]]] = {}


class Reordered:
    """A plan for a program whose inputs and outputs come in another order; used as a plan is.

    Attributes:
      plan: what runs.
      donate: the inputs of the program whose buffers the outputs take.
    """

    def __init__(
        self, plan: Plan, natural: tuple[Any, ...], alone: Sequence[int],
        inputs: Sequence[int], outputs: Sequence[int],
    ) -> None:  # fmt: skip
        self.plan, self._natural, self._alone = plan, natural, alone
        self._constants: tuple[Any, ...] | None = None if alone else ()
        self._met = False
        self._inputs, self._outputs = _picks(inputs), _picks(outputs)
        self.donate = tuple(sorted([inputs[i] - len(alone) for i in plan.donate]))

    def natural(self) -> Plan:
        """Return a plan of the program as it was recorded."""
        return plan_for(*self._natural)

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Outcome:  # fmt: skip
        """Run on one array an input of the program, in its order; see `Plan.run`."""
        constants = self._made()
        given = self._inputs((*constants, *args))
        return self._put(self.plan.run(given, host, once, landed), constants)

    def outcome(self, flat: tuple[Any, ...], how: str, seconds: float) -> Outcome:
        """Return the outcome of a run; see `Plan.outcome`."""
        return self._put(self.plan.outcome(flat, how, seconds), self._made())

    def _put(self, found: Outcome, constants: tuple[Any, ...]) -> Outcome:
        return found._replace(outputs=self._outputs((*constants, *found.outputs)))

    def _made(self) -> tuple[Any, ...]:
        """Return what comes from no input. A loop makes it anew in each turn, so it is kept then.

        At first it is not: what nobody else holds can be written over.
        """
        constants = self._constants
        if constants is None:
            program = self._natural[0]
            constants = _computed(program, [program.outputs[k] for k in self._alone])
            if self._met:
                self._constants = constants
            self._met = True
        return constants

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)


def _picks(places: Sequence[int]) -> Any:
    if len(places) == 1:
        only = places[0]
        return lambda found: (found[only],)
    return itemgetter(*places) if places else lambda found: ()


def plan_of_turn(
    program: Program,
    donate: tuple[int, ...],
    frozen: tuple[int, ...],
    guards: tuple[tuple[int, int], ...],
    homes: tuple[tuple[int, int], ...] = (),
) -> Plan | Reordered:
    """Return what runs a program that keeps nothing for later gradients.

    Args:
      program: as it was recorded; its outputs are paired with the inputs to donate.
      donate, frozen, guards, homes: as `plan_for` takes them.
    """
    natural = (program, donate, frozen, guards, homes)
    alone = _constant_outputs(program)
    n = len(alone)
    left = [k for k in range(len(program.outputs)) if k not in alone]
    if alone:
        program = _without(program, alone, left)
        over, lies = (
            {program.outputs[left.index(k)]: i + n for k, i in pairs if k in left}
            for pairs in (guards, homes)
        )
        outputs, donate = pair(program.entries, program.outputs, [i + n for i in donate])
        moved = {v: k for k, v in zip(left, program.outputs, strict=True)}
        left = [moved[v] for v in outputs]
        guards, homes = (
            tuple([(k, at[v]) for k, v in enumerate(outputs) if v in at]) for at in (over, lies)
        )
        frozen = tuple([i + n for i in frozen])
        program = program._replace(outputs=outputs)
    program = prune(program)
    told = canonical(program, donate, frozen, guards)
    known = _known.get(told.key)
    plan = None if known is None else known[0]()
    mine = {told.numbers[v]: k for k, v in enumerate(program.outputs)}
    if known is None or plan is None:
        asked = (program, donate, frozen, guards, homes) if alone else natural
        plan = plan_for(*asked, pruned=program)
        if len(_known) >= _MOST_PLANS:
            _known.clear()
        known = _known[told.key] = ref(plan), told.inputs, mine
    inputs = [0] * len(told.inputs)
    for here, there in zip(told.inputs, known[1], strict=True):
        inputs[there] = here
    # Where each output of the recorded program is, among the constants and what the plan returns.
    places = {k: c for c, k in enumerate(alone)}
    places |= {left[k]: n + known[2][number] for number, k in mine.items()}
    outputs = tuple([places[k] for k in range(len(places))])
    if not alone and inputs == sorted(inputs) and outputs == tuple(sorted(outputs)):
        return plan
    return Reordered(plan, natural, alone, inputs, outputs)


def _constant_outputs(program: Program) -> list[int]:
    """Return which outputs come from no input; none if all do, or if they are too large."""
    constant: set[int] = set()
    for entry, first in zip(program.entries, program.first_values(), strict=True):
        if not isinstance(entry, Node) or len(entry.avals) != 1 or not constant >= {*entry.inputs}:
            continue
        if isinstance(entry.call, Call) and entry.call.op.namespace != "opaque":
            if not is_checked(entry):
                constant.add(first)
    found = [k for k, v in enumerate(program.outputs) if v in constant]
    avals = [a for entry in program.entries for a in entry.avals] if found else []
    nbytes = sum(avals[program.outputs[k]].nbytes for k in found)
    return found if len(found) < len(program.outputs) and nbytes <= _MOST_BYTES else []


def _computed(program: Program, values: Sequence[int]) -> tuple[Any, ...]:
    """Compute values that come from no input."""
    needed = list(needed_entries(reversed(placed_entries(program)), values))
    return plan_for(renumber(reversed(needed), values)).run((), once=True).outputs


def _without(program: Program, alone: Sequence[int], left: Sequence[int]) -> Program:
    """Return the program with some outputs as its first inputs; the others are returned."""
    values = {program.outputs[k] for k in alone}
    entries = placed_entries(program)
    first = [e for e in entries if e.first in values and len(e.entry.avals)]
    order = {v: n for n, v in enumerate(program.outputs[k] for k in alone)}
    first.sort(key=lambda e: order[e.first])
    entered = [PlacedEntry(None, e.first, Input(e.entry.avals[0])) for e in first]
    rest = [e for e in entries if e.first not in values or not e.entry.avals]
    return renumber([*entered, *rest], [program.outputs[k] for k in left])
