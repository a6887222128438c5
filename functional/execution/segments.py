"""Programs with values on several devices, divided into programs of one device each.

XLA compiles a program for one device (or one mesh). So a program that copies between devices runs
as a few: what comes before a copy, and what comes after it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..lowering.lower import Side, is_checked
from ..lowering.residuals import Residual
from ..program.program import Aval, Input, Node, Program
from ..program.slices import PlacedEntry, placed_entries, renumber
from .donation import pair
from .outcome import Outcome
from .placement import free_values, is_on, spread_over
from .several_devices import Pairs


class Segment(NamedTuple):
    """A part of a program that runs at once, on one device.

    Attributes:
      plan: of it.
      device: where it runs; a tuple of devices for a mesh.
      inputs, outputs: values of the whole program that it takes and returns.
      entries: places in the whole program of those whose residuals it returns.
    """

    plan: Any
    device: Any
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    entries: tuple[int, ...]


class Scattered:
    """A program with values on several devices; used as a plan is.

    Args:
      program: without what nothing needs.
      donate, guards: as `Plan` takes them.
      here: where values are that were asked for nowhere.
      plan_for: makes the plans of the parts.

    Attributes:
      donate: inputs whose buffers outputs take: those that one part alone reads.
      guards: those that no part sees to: a check of one stands for what another writes.
      side: residual structures and fault sites of the last run.
    """

    compiled = False

    def __init__(
        self, program: Program, donate: tuple[int, ...], guards: Pairs, here: Any,
        plan_for: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.program, self.side = program, Side()
        self.nodes = [e for e in program.entries if isinstance(e, Node)]
        firsts = zip(program.entries, program.first_values(), strict=True)
        self._inputs = [first for entry, first in firsts if isinstance(entry, Input)]
        parts = _Parts(program, here)
        self.guards = tuple([pair for pair in guards if not parts.has(pair, self._inputs)])
        late = {i for _, i in self.guards}
        free = {self._inputs[i]: i for i in donate if i not in late}
        inner = [(program.outputs[k], self._inputs[i]) for k, i in guards if i not in late]
        self._segments, given = parts.planned(free, inner, plan_for)
        self.donate = tuple(sorted([free[v] for v in given]))

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Run on one array an input; see `Plan.run`."""
        start = time.perf_counter()
        env: dict[int, Any] = dict(zip(self._inputs, args, strict=True))
        kept: dict[int, Residual] = {}
        leaves: list[Any] = []
        sites: list[Any] = []
        faults: list[Any] = []
        how = "cached"
        for segment in self._segments:
            given = _moved([env[v] for v in segment.inputs], segment.device)
            found = segment.plan.run(given, False, once)
            env.update(zip(segment.outputs, found.outputs, strict=True))
            side = segment.plan.side
            for e, residual in zip(segment.entries, side.residuals, strict=True):
                shifted = tuple([len(leaves) + i for i in residual.places])
                kept[e] = Residual(residual.treedef, residual.meta, shifted)
            leaves += found.residuals
            if found.faults is not None:
                sites += side.faults
                faults.append(np.asarray(found.faults))
            how = found.how if found.how == "compiled" else how
        self.side.residuals = [kept[e] for e, _ in self.program.residuals]
        self.side.faults = sites
        outputs = [env[v] for v in self.program.outputs]
        all_faults = np.concatenate(faults, 1) if faults else None
        if all_faults is not None and all_faults[0].any():
            for k, i in self.guards:
                outputs[k] = args[i]
        seconds = time.perf_counter() - start
        return Outcome(tuple(outputs), tuple(leaves), all_faults, how, seconds)

    def run_whole(self) -> None:
        """Compile all parts at their next run."""
        for segment in self._segments:
            segment.plan.run_whole()

    def forget(self) -> None:
        """Release nothing: the parts are plans of their own."""


def _moved(arrays: list[Any], device: Any) -> list[Any]:
    if isinstance(device, tuple):
        return spread_over(device, arrays)
    with jax.enable_x64(True):
        return [
            jax.device_put(a, device) if isinstance(a, jax.Array) and not is_on(a, device) else a
            for a in arrays
        ]


class _Parts:
    """The parts of a program, in an order in which each has what it takes.

    Attributes:
      parts: of each its device, nodes, and the values that it takes and returns.
    """

    def __init__(self, program: Program, here: Any) -> None:
        self._program = program
        self._avals: list[Aval] = [a for entry in program.entries for a in entry.avals]
        groups = _grouped(program, here)
        taken = [{v for p in nodes for v in p.entry.inputs} for _, nodes in groups]
        wanted = set(program.outputs)
        self.parts = []
        for n, (device, nodes) in enumerate(groups):
            made = [v for p in nodes for v in p.values]
            later = wanted.union(*taken[n + 1 :])
            inputs = tuple(sorted(taken[n].difference(made)))
            self.parts.append((device, nodes, inputs, tuple([v for v in made if v in later])))

    def has(self, guard: tuple[int, int], inputs: Sequence[int]) -> bool:
        """Return True if one part has all checks of the program, and what a guard is about."""
        output, given = self._program.outputs[guard[0]], inputs[guard[1]]
        checked = [part for part in self.parts if any(is_checked(p.entry) for p in part[1])]
        return len(checked) == 1 and output in checked[0][3] and given in checked[0][2]

    def planned(
        self, free: Container[int], guarded: Sequence[tuple[int, int]], plan_for: Callable[..., Any]
    ) -> tuple[list[Segment], list[int]]:
        """Return the parts with their plans, and the inputs whose buffers these write over.

        Args:
          free: values of inputs that may be written over.
          guarded: values of outputs and inputs that a part is to guard.
        """
        kept = dict(self._program.residuals)
        counts = Counter(v for part in self.parts for v in part[2])
        segments, gone = [], []
        for device, nodes, inputs, outputs in self.parts:
            given = [Input(self._avals[v]._replace(device=device)) for v in inputs]
            entries = tuple([p.place for p in nodes if p.place in kept])
            placed = [PlacedEntry(None, v, x) for v, x in zip(inputs, given, strict=True)]
            part = renumber([*placed, *nodes], outputs, [(e, kept[e]) for e in entries])
            own = [i for i, v in enumerate(inputs) if v in free and counts[v] == 1]
            own = [i for i in own if self._avals[inputs[i]].device in (device, None)]
            back = dict(zip(part.outputs, outputs, strict=True))
            paired, donated = pair(part.entries, part.outputs, own)
            outputs = tuple([back[n] for n in paired])
            mine = [(v, i) for v, i in guarded if v in outputs and i in inputs]
            guards = tuple([(outputs.index(v), inputs.index(i)) for v, i in mine])
            plan = plan_for(part._replace(outputs=paired), donated, (), guards)
            segments.append(Segment(plan, device, inputs, outputs, entries))
            gone += [inputs[i] for i in donated]
        return segments, gone


def _grouped(program: Program, here: Any) -> list[tuple[Any, list[PlacedEntry]]]:
    """Group a program's nodes by device, in the order in which groups need what others return."""
    placed = placed_entries(program)
    devices = _devices(program, here, placed)
    level: dict[int, int] = {}  # of values
    where: dict[int, Any] = {}
    groups: dict[tuple[int, Any], list[PlacedEntry]] = {}
    for p in placed:
        if isinstance(p.entry, Input):
            mine, device = 0, p.entry.aval.device
        else:
            device = devices[p.place]
            mine = max(
                [level[v] + (where[v] not in (device, None)) for v in p.entry.inputs], default=0
            )
            groups.setdefault((mine, device), []).append(p)
        level.update(dict.fromkeys(p.values, mine))
        where.update(dict.fromkeys(p.values, device))
    found = sorted(groups.items(), key=lambda group: group[0][0])
    return [(device, nodes) for (_, device), nodes in found]


def _devices(program: Program, here: Any, placed: list[PlacedEntry]) -> dict[int, Any]:
    """Return for each node where it runs: what may run anywhere goes to what takes it first."""
    asked: dict[int, Any] = dict.fromkeys(free_values(program), here)  # where a value is wanted
    found: dict[int, Any] = {}
    for p in reversed(placed):
        if isinstance(p.entry, Input):
            continue
        device = next((a.device for a in p.entry.avals if a.device is not None), None)
        if device is None:
            device = next((asked[v] for v in p.values if v in asked), here)
        found[p.place] = device
        for v in p.entry.inputs:
            if asked.get(v) is not here:
                asked[v] = device
    return found
