"""Programs run op by op, as what is met for the first time may never be met again."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from ..lowering.lean_gradients import with_lean_gradients
from ..lowering.lower import FaultSite, Side, is_checked, note_line
from ..lowering.residuals import KeepingCall, Residual, keeping_of
from ..program.program import Aval, Node, Program
from .confined import confined
from .known_ops import SingleOp, single_op
from .pieces import Placed, divide
from .policy import CompilePolicy
from .single_ops import check_node, reads, run_node
from .thresholds import PIECE_WINDOW

# How a program ran, as `Outcome.how` says it; in pieces if most of it ran in compiled ones.
OP_BY_OP, IN_PIECES = "op by op", "in pieces"


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
        self.policy = CompilePolicy(program, *_single_ops(program))
        self._kept: list[tuple[Residual, int]] = []
        self._residuals: list[Residual] = []

    def run(
        self, args: Sequence[Any], side: Side, make_room: Callable[[], None], host: bool = False
    ) -> tuple[tuple[Any, ...], tuple[Any, ...], Any, str]:
        """Run the program; return outputs, residuals' leaves, faults like `lower` or None, and how.

        Args:
          side: is told of the residuals and the fault sites.
          make_room: called before each compilation.
          host: what NumPy computed need not go to the device.
        """
        start, compiles = time.perf_counter(), False
        self.policy.note_run()
        all_nodes, ops, firsts, places, returned, pieces = self._parts
        env: list[Any] = [None] * (firsts[-1] + 1)
        for i, array in zip(places, args, strict=True):
            env[i] = array
        faults = _Faults(side)
        kept: list[tuple[Residual, int]] = []
        leaves: list[Any] = []
        at_once = 0
        for placed in pieces:
            piece = placed.piece
            ran: Any = None
            if piece is not None:
                given = [env[i] for i in placed.inputs]
                if piece.compiled is not None:
                    ran = piece.compiled(*given)
                elif piece.is_due():
                    make_room()
                    ran, compiles = piece.compile(given), True
            if piece is not None and ran is not None:
                at_once += placed.end - placed.start
                for i, value in zip(placed.outputs, ran[0], strict=True):
                    env[i] = value
                if ran[1] is not None:
                    nodes = all_nodes[placed.start : placed.end]
                    faults.add_piece(piece.side.faults, ran[1], nodes)
            for k in range(placed.start, placed.end) if ran is None else ():
                node, op = all_nodes[k], ops[k]
                first, n = firsts[k], len(node.avals)
                inputs = [env[i] for i in node.inputs]
                keeps = isinstance(node.call, KeepingCall)
                if keeps or piece is not None or placed.outputs:
                    if op.run is None:
                        make_room()
                        compiles = True
                    try:
                        found = run_node(node, op, inputs)
                    except Exception as error:
                        note_line(error, node.where)
                        raise
                    env[first : first + n] = found[:n]
                if keeps:
                    kept.append((node.call.residual, len(leaves)))
                    leaves.extend(found[n:])
                if self.checked and is_checked(node):
                    faults.add_node(node, inputs)
            for i in placed.ended:
                env[i] = None
        side.residuals = self._placed(kept)
        outputs = tuple([env[i] for i in returned])
        if self.guards and faults.any():
            before = dict(self.guards)
            outputs = tuple([args[before[k]] if k in before else x for k, x in enumerate(outputs)])
        if host:  # numbers that are inputs become arrays all the same
            outputs = tuple([x if hasattr(x, "dtype") else np.asarray(x) for x in outputs])
            for x in outputs:
                if type(x) is np.ndarray:  # later runs of the program leave them on a device
                    x.flags.writeable = False
        else:
            outputs = _on_device(outputs)
        # What fails on the device fails here, where nothing was replaced yet.
        if not confined:
            jax.block_until_ready((outputs, leaves))
        if self.policy.is_timed and not compiles:
            self.policy.spent += (time.perf_counter() - start) * 1e3
        residuals = tuple(leaves)  # some still NumPy's: what takes them may run op by op as well
        how = IN_PIECES if 2 * at_once > len(ops) else OP_BY_OP
        return outputs, residuals, faults.array() if self.checked else None, how

    @functools.cached_property
    def _parts(self) -> _Parts:
        program = with_lean_gradients(self.program)
        nodes, ops = _single_ops(program)
        places = [*zip(program.first_values(), program.entries, strict=True)]
        firsts = [first for first, entry in places if isinstance(entry, Node)]
        inputs = [first for first, entry in places if not isinstance(entry, Node)]
        reading = [reads(node) for node in nodes]
        few = confined or len(nodes) <= PIECE_WINDOW or self.policy.makes_parameters
        alone = [
            bool(few) or isinstance(node.call, KeepingCall) or read != node.inputs
            for node, read in zip(nodes, reading, strict=True)
        ]
        pieces = divide(program, alone, ops, reading)
        end = sum(len(entry.avals) for entry in program.entries)
        return _Parts(nodes, ops, [*firsts, end], inputs, program.outputs, pieces)

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


class _Parts(NamedTuple):
    """A program as it runs op by op.

    Attributes:
      nodes, ops: its nodes, and what each is by itself.
      firsts: the first value of each node, and the number of all values.
      inputs, outputs: the values of its inputs, and those that are returned.
      pieces: they have all nodes.
    """

    nodes: list[Node]
    ops: list[SingleOp]
    firsts: list[int]
    inputs: list[int]
    outputs: tuple[int, ...]
    pieces: list[Placed]


class _Faults:
    """Findings of a program's checks, one after the other.

    Args:
      side: is told of the sites.
    """

    def __init__(self, side: Side) -> None:
        self._side, self._found = side, []  # type: ignore[var-annotated]
        side.faults = []

    def add_node(self, node: Node, inputs: Sequence[Any]) -> None:
        """Run the checks of a node."""
        if isinstance(node.call, KeepingCall):
            node = Node(node.call.call, node.inputs, node.avals, None, node.where)
        for flag, value in check_node(node, inputs, self._side):
            self._found.append([[flag], [value]])

    def add_piece(self, sites: Sequence[FaultSite], flags: Any, nodes: Sequence[Node]) -> None:
        """Add what the checks of a piece found, which has these nodes."""
        for site in sites:
            where: Any = site.where
            self._side.faults.append(site._replace(where=nodes[where[2]].where))
        self._found.append(flags)

    def array(self) -> np.ndarray:
        """Return all of it, as a lowered program does."""
        parts = [np.asarray(found, np.int64) for found in self._found]
        flags = np.concatenate(parts, 1) if parts else np.zeros((2, 0), np.int64)
        return np.where(flags[0] != 0, flags, 0)

    def any(self) -> bool:
        """Return True if any check found something."""
        return bool(self.array()[0].any())


def _on_device(arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    """Put NumPy's arrays and Python's numbers on the device, in one call."""
    places = [k for k, array in enumerate(arrays) if not isinstance(array, jax.Array)]
    if not places:
        return arrays
    found = list(arrays)
    for k, array in zip(places, jax.device_put([arrays[k] for k in places]), strict=True):
        found[k] = array
    return tuple(found)


def _single_ops(program: Program) -> tuple[list[Node], list[SingleOp]]:
    """Return the nodes as they run alone, and what each is by itself."""
    kept = dict(program.residuals)
    avals: list[Aval] = []
    nodes, ops = [], []
    for e, entry in enumerate(program.entries):
        if isinstance(entry, Node):
            taken = tuple([avals[i] for i in entry.inputs])
            node = entry
            if e in kept:
                call = keeping_of(entry.call, kept[e], taken)
                node = Node(call, entry.inputs, entry.avals, None, entry.where)
            nodes.append(node)
            ops.append(single_op(node.call, taken))
        avals.extend(entry.avals)
    return nodes, ops
