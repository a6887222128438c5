"""Programs run op by op, as what is met for the first time may never be met again."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..lowering.lower import Side, note_line
from ..lowering.residuals import KeepingCall, Residual, keeping_of
from ..program.program import Aval, Input, Node, Program
from .confined import confined
from .policy import CompilePolicy
from .single_ops import check_node, is_ready, reads, run_node


class OpByOp:
    """A program that runs op by op.

    Args:
      checked: whether any of its nodes has something that only the data can tell.
      guards: as `lower` takes them.

    Attributes:
      policy: when it runs so, and when it is compiled whole.
    """

    def __init__(
        self, program: Program, checked: bool, guards: Sequence[tuple[int, int]] = ()
    ) -> None:
        self.program, self.checked, self.guards = program, checked, guards
        self._steps = _steps(program)
        self.policy = CompilePolicy(program, self._steps)
        self._kept: list[tuple[Residual, int]] = []
        self._residuals: list[Residual] = []

    def run(
        self, args: Sequence[Any], side: Side, make_room: Callable[[], None], host: bool = False
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], Any]:
        """Run the program; return outputs, residuals' leaves, and faults like `lower`, or None.

        Args:
          side: is told of the residuals and the fault sites.
          make_room: called before each compilation.
          host: what NumPy computed need not go to the device.
        """
        start, compiles = time.perf_counter(), False
        self.policy.note_run()
        env: list[Any] = []
        last_use, needed, used = self._uses
        supply = iter(args)
        flags: list[Any] = []
        steps = iter(self._steps)
        kept: list[tuple[Residual, int]] = []
        leaves: list[Any] = []
        side.faults = []
        for e, entry in enumerate(self.program.entries):
            if isinstance(entry, Input):
                env.append(next(supply))
                continue
            inputs = [env[i] for i in entry.inputs]
            node, key = next(steps)
            first, n, keeps = len(env), len(node.avals), isinstance(node.call, KeepingCall)
            if keeps or not used.isdisjoint(range(first, first + n)):
                if not is_ready(key):
                    make_room()
                    compiles = True
                try:
                    found = run_node(node, key, inputs)
                except Exception as error:
                    note_line(error, entry.where)
                    raise
            else:
                found = [None] * n  # it is there for its check alone
            env.extend(found[:n])
            if keeps:
                kept.append((node.call.residual, len(leaves)))
                leaves.extend(found[n:])
            if self.checked and getattr(node.call, "op", None) and node.call.op.check:
                flags.extend(check_node(entry, inputs, side))
            for i in set(entry.inputs):
                if last_use.get(i, e) <= e and i not in needed:
                    env[i] = None
        side.residuals = self._placed(kept)
        outputs = tuple([env[i] for i in self.program.outputs])
        if self.guards and any(flag for flag, _ in flags):
            before = dict(self.guards)
            outputs = tuple([args[before[k]] if k in before else x for k, x in enumerate(outputs)])
        if host:  # numbers that are inputs become arrays all the same
            outputs = tuple([x if hasattr(x, "dtype") else np.asarray(x) for x in outputs])
        else:
            outputs = _on_device(outputs)
        # What fails on the device fails here, where nothing was replaced yet.
        if not confined:
            jax.block_until_ready((outputs, leaves))
        if self.policy.is_timed and not compiles:
            self.policy.spent += (time.perf_counter() - start) * 1e3
        residuals = tuple(leaves)  # some still NumPy's: what takes them may run op by op as well
        if not self.checked:
            return outputs, residuals, None
        found = [(1, int(value)) if flag else (0, 0) for flag, value in flags]
        return outputs, residuals, np.array(found, np.int64).reshape(-1, 2).T.copy()

    @functools.cached_property
    def _uses(self) -> tuple[dict[int, int], set[int], set[int]]:
        """The last entry that takes each value, the values returned, and all that are used."""
        last_use: dict[int, int] = {}
        steps = iter(self._steps)
        for e, entry in enumerate(self.program.entries):
            if isinstance(entry, Node):
                node = next(steps)[0]
                for i in reads(node) if node.call is entry.call else entry.inputs:
                    last_use[i] = e
        needed = set(self.program.outputs)
        return last_use, needed, needed | last_use.keys()

    def _placed(self, kept: list[tuple[Residual, int]]) -> list[Residual]:
        """Return the residuals by their places in the whole program, the same objects in each run.

        Args:
          kept: those of single nodes, and how many arrays came before theirs.
        """
        if self._kept != kept:
            self._kept = kept
            self._residuals = [
                Residual(r.treedef, r.meta, tuple(first + i for i in r.places)) for r, first in kept
            ]
        return self._residuals


def _on_device(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put NumPy's arrays and Python's numbers on the device, in one call."""
    places = [k for k, array in enumerate(arrays) if not isinstance(array, jax.Array)]
    if not places:
        return arrays
    found = list(arrays)
    for k, array in zip(places, jax.device_put([arrays[k] for k in places]), strict=True):
        found[k] = array
    return tuple(found)


def _steps(program: Program) -> list[tuple[Node, Any]]:
    """Return the nodes as they run alone, each with its call and the abstract values it takes."""
    kept = dict(program.residuals)
    avals: list[Aval] = []
    steps = []
    for e, entry in enumerate(program.entries):
        if isinstance(entry, Node):
            taken = tuple(avals[i] for i in entry.inputs)
            node = entry
            if e in kept:
                call = keeping_of(entry.call, kept[e], taken)
                node = Node(call, entry.inputs, entry.avals, None, entry.where)
            steps.append((node, (node.call, taken)))
        avals.extend(entry.avals)
    return steps
