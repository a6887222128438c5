"""Programs with values on several devices, divided into programs of one device each.

XLA compiles a program for one device (or one mesh). So a program that copies between devices runs
as a few: what comes before a copy, and what comes after it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..lowering.lower import Side
from ..lowering.residuals import Residual
from ..program.program import Aval, Input, Node, Program
from ..program.slices import PlacedEntry, placed_entries, renumber
from .outcome import Outcome
from .placement import free_outputs, is_on


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
      guards: as `Plan` takes them.
      here: where values are that were asked for nowhere.
      plan_for: makes the plans of the parts.

    Attributes:
      side: residual structures and fault sites of the last run.
    """

    donate: tuple[int, ...] = ()
    compiled = False

    def __init__(
        self, program: Program, guards: tuple[tuple[int, int], ...], here: Any,
        plan_for: Callable[[Program], Any],
    ) -> None:  # fmt: skip
        self.program, self.guards, self.side = program, guards, Side()
        self.nodes = [e for e in program.entries if isinstance(e, Node)]
        self.runs, self.used = 0, 0.0
        firsts = zip(program.entries, program.first_values(), strict=True)
        self._inputs = [first for entry, first in firsts if isinstance(entry, Input)]
        self._segments = _divide(program, here, plan_for)

    def run(
        self, args: Sequence[Any], host: bool = False, once: bool = False,
        landed: list[Any] | None = None,
    ) -> Any:  # fmt: skip
        """Run on one array an input; see `Plan.run`."""
        start = time.perf_counter()
        self.runs, self.used = self.runs + 1, start
        env: dict[int, Any] = dict(zip(self._inputs, args, strict=True))
        kept: dict[int, Residual] = {}
        leaves: list[Any] = []
        sites: list[Any] = []
        faults: list[Any] = []
        how = "cached"
        for segment in self._segments:
            given = [_moved(env[v], segment.device) for v in segment.inputs]
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


def _moved(array: Any, device: Any) -> Any:
    if isinstance(device, tuple) or not isinstance(array, jax.Array) or is_on(array, device):
        return array
    return jax.device_put(array, device)


def _divide(program: Program, here: Any, plan_for: Callable[[Program], Any]) -> list[Segment]:
    """Divide a program by devices: what must come later, for it needs what another returns."""
    placed = placed_entries(program)
    avals: list[Aval] = [a for entry in program.entries for a in entry.avals]
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
    order = sorted(groups.items(), key=lambda group: group[0][0])
    wanted = set(program.outputs)
    taken_by = [{v for p in nodes for v in p.entry.inputs} for _, nodes in order]
    kept = dict(program.residuals)
    found = []
    for n, ((_, device), nodes) in enumerate(order):
        made = [v for p in nodes for v in p.values]
        later = wanted.union(*taken_by[n + 1 :])
        inputs = tuple(sorted(taken_by[n].difference(made)))
        outputs = tuple([v for v in made if v in later])
        given = [PlacedEntry(None, v, Input(avals[v]._replace(device=device))) for v in inputs]
        entries = tuple([p.place for p in nodes if p.place in kept])
        part = renumber([*given, *nodes], outputs, [(e, kept[e]) for e in entries])
        found.append(Segment(plan_for(part), device, inputs, outputs, entries))
    return found


def _devices(program: Program, here: Any, placed: list[PlacedEntry]) -> dict[int, Any]:
    """Return for each node where it runs: what may run anywhere goes to what takes it first."""
    asked: dict[int, Any] = dict.fromkeys(free_outputs(program), here)  # where a value is wanted
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
