"""Plans of a loop's turns: the first turn runs the program that the later ones run.

What was made before a loop and is still pending, a mask or a table of positions, would be computed
in the first turn's program and enter the later ones'. What comes from no input is computed on its
own, and enters the first turn, too. A program that differs from a known one in the order of its
inputs alone is run by that one. One that differs in a prelude alone runs that by itself in each
turn: compiling what is known once more costs more than many thousand dispatches of a few ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from operator import itemgetter
from typing import Any
from weakref import ref

from leafax.functional.execution.donation import pair
from leafax.functional.execution.outcome import Outcome
from leafax.functional.execution.plan import Plan, plan_for
from leafax.functional.execution.several_devices import Pairs
from leafax.functional.lowering.lower import is_checked, prune
from leafax.functional.program.canonical import canonical
from leafax.functional.program.program import Call, Input, Node, Program
from leafax.functional.program.slices import PlacedEntry, needed_entries, placed_entries, renumber

from .preludes import Part, without_prelude

_MOST_BYTES = 64 << 20  # of constants that are kept for a program
_MOST_PLANS = 4096

#: By canonical key: a plan, its inputs in canonical order, its outputs by their canonical numbers.
_known: dict[Any, tuple[ref[Plan], tuple[int, ...], dict[int, int]]] = {}


class Arranged:
    """A program that a plan for another one runs; used as a plan is.

    Attributes:
      plan: what runs.
      donate: the inputs of the program whose buffers the outputs take.
    """

    donate: tuple[int, ...]

    def __init__(self, plan: Any, natural: tuple[Any, ...]) -> None:
        self.plan, self._natural = plan, natural

    def natural(self) -> Plan:
        """Return a plan of the program as it was recorded."""
        return plan_for(*self._natural)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plan, name)


class Reordered(Arranged):
    """A plan for a program whose inputs and outputs come in another order."""

    def __init__(
        self, plan: Plan, natural: tuple[Any, ...], alone: Sequence[int],
        inputs: Sequence[int], outputs: Sequence[int], entering: int,
    ) -> None:  # fmt: skip
        super().__init__(plan, natural)
        self._alone, self._entering = alone, entering
        self._constants: tuple[Any, ...] | None = None if alone else ()
        self._met = False
        self._inputs, self._outputs = _picks(inputs), _picks(outputs)
        self.donate = tuple(sorted([inputs[i] - entering for i in plan.donate]))

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Outcome:  # fmt: skip
        """Run on one array an input of the program, in its order; see `Plan.run`."""
        constants = self._made()
        given = self._inputs((*constants[: self._entering], *args))
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


class Preluded(Arranged):
    """A plan for a program after its prelude, which is computed by itself."""

    def __init__(
        self, plan: Any, natural: tuple[Any, ...], prelude: Part, rest: Part,
        order: Sequence[int],
    ) -> None:  # fmt: skip
        super().__init__(plan, natural)
        self.donate = tuple([rest.inputs[i] for i in plan.donate])
        self._prelude = plan_for(prelude.program)
        self._prelude.run_whole()  # nobody waits for its values, as running op by op does
        self._prelude.is_part = True
        n = len(self._prelude.nodes)
        self._why = f"what it begins with, {n} {'op' if n == 1 else 'ops'}, runs by itself"
        self._begins, self._goes_on = _picks(prelude.inputs), _picks(rest.inputs)
        self._n = len(prelude.outputs)
        places = [*prelude.outputs, *[rest.outputs[k] for k in order]]
        self._outputs = _picks(sorted(range(len(places)), key=places.__getitem__))

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Outcome:  # fmt: skip
        """Run on one array an input of the program, in its order; see `Plan.run`."""
        first = self._prelude.run(self._begins(args)).outputs
        try:
            found = self.plan.run(self._goes_on(args), host, once, landed)
        except BaseException:
            if landed:
                landed[0] = (*first, *landed[0])
            raise
        return self._put(found, first)

    def outcome(self, flat: tuple[Any, ...], how: str, seconds: float) -> Outcome:
        """Return the outcome of a run; see `Plan.outcome`."""
        return self._put(self.plan.outcome(flat[self._n :], how, seconds), flat[: self._n])

    def _put(self, found: Outcome, first: tuple[Any, ...]) -> Outcome:
        outputs = self._outputs((*first, *found.outputs))
        return found._replace(outputs=outputs, why=found.why or self._why)


def _picks(places: Sequence[int]) -> Any:
    if len(places) == 1:
        only = places[0]
        return lambda found: (found[only],)
    return itemgetter(*places) if places else lambda found: ()


def plan_of_turn(
    program: Program,
    donate: tuple[int, ...],
    frozen: tuple[int, ...],
    guards: Pairs,
    homes: Pairs = (),
) -> Plan | Arranged:
    """Return what runs a program that keeps nothing for later gradients.

    Args:
      program: as it was recorded; its outputs are paired with the inputs to donate.
      donate, frozen, guards, homes: as `plan_for` takes them.
    """
    natural = (program, donate, frozen, guards, homes)
    plan = _planned(*natural, known=True) or _after_prelude(*natural)
    return plan or _planned(*natural, known=False)  # type: ignore[return-value]


def _after_prelude(
    program: Program, donate: tuple[int, ...], frozen: tuple[int, ...], guards: Pairs, homes: Pairs
) -> Preluded | None:
    """Return a plan of a program of which the rest after its prelude is known."""
    parts = without_prelude(program, (*guards, *homes))
    if parts is None:
        return None
    prelude, rest = parts
    at = {i: n for n, i in enumerate(rest.inputs)}
    donated = [at[i] for i in donate if i in at]
    outputs, given = pair(rest.program.entries, rest.program.outputs, donated)
    order = [rest.program.outputs.index(v) for v in outputs]
    place = {rest.outputs[k]: n for n, k in enumerate(order)}
    over, lies = (
        tuple([(place[k], at[i]) for k, i in pairs if k in place]) for pairs in (guards, homes)
    )
    kept = tuple([at[i] for i in frozen if i in at])
    plan = _planned(rest.program._replace(outputs=outputs), given, kept, over, lies, known=True)
    if plan is None:
        return None
    return Preluded(plan, (program, donate, frozen, guards, homes), prelude, rest, order)


def _planned(
    program: Program, donate: tuple[int, ...], frozen: tuple[int, ...], guards: Pairs,
    homes: Pairs, *, known: bool,
) -> Plan | Reordered | None:  # fmt: skip
    """Return what runs a program whole.

    Args:
      known: return None if it is not known.
    """
    natural = (program, donate, frozen, guards, homes)
    alone = _constant_outputs(program)
    left = [k for k in range(len(program.outputs)) if k not in alone]
    n = 0
    if alone:
        entering, others = _entering(program, alone, left)
        n, alone = len(entering), [*entering, *others]
        program = _without(program, entering, left)
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
    found = _known.get(told.key)
    plan = None if found is None else found[0]()
    mine = {told.numbers[v]: k for k, v in enumerate(program.outputs)}
    if found is None or plan is None:
        if known:
            return None
        asked = (program, donate, frozen, guards, homes) if alone else natural
        plan = plan_for(*asked, pruned=program)
        if len(_known) >= _MOST_PLANS:
            _known.clear()
        found = _known[told.key] = ref(plan), told.inputs, mine
    inputs = [0] * len(told.inputs)
    for here, there in zip(told.inputs, found[1], strict=True):
        inputs[there] = here
    # Where each output of the recorded program is, among the constants and what the plan returns.
    places = {k: c for c, k in enumerate(alone)}
    places |= {left[k]: len(alone) + found[2][number] for number, k in mine.items()}
    outputs = tuple([places[k] for k in range(len(places))])
    if not alone and inputs == sorted(inputs) and outputs == tuple(sorted(outputs)):
        return plan
    return Reordered(plan, natural, alone, inputs, outputs, n)


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


def _entering(
    program: Program, alone: Sequence[int], left: Sequence[int]
) -> tuple[list[int], list[int]]:
    """Sort constant outputs into those that other outputs or checks need, and those they do not."""
    entries = placed_entries(program)
    checked = [v for p in entries if is_checked(p.entry) for v in p.entry.inputs]
    wanted = [*checked, *[program.outputs[k] for k in left]]
    known = dict.fromkeys([program.outputs[k] for k in alone])
    needed = {p.first for p in needed_entries(reversed(entries), wanted, known) if p.place is None}
    taken = [program.outputs[k] in needed for k in alone]
    return [*compress(alone, taken)], [k for k, t in zip(alone, taken, strict=True) if not t]


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
