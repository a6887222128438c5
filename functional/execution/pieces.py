"""Pieces of a program that does not run whole: what comes again and again is compiled once.

A loop of any length, a tree of any shape and their backward passes consist of few different
sequences of ops. Where a program is divided follows from the few ops around that place alone, so
the turns of a loop are equal pieces however many there are and whatever comes before. A piece runs
op by op until that has cost what compiling it costs, wherever it was met.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import jax

from ..lowering.lower import Side, is_checked, lower
from ..lowering.scopes import name_program
from ..program.program import Aval, Input, Node, Program
from ..program.slices import PlacedEntry, renumber
from .instructions import note_compiled
from .known_ops import SingleOp
from .single_ops import compiler_options_of
from .thresholds import (
    OP_BY_OP_MS,
    PIECE_MS,
    PIECE_ROW,
    PIECE_WEIGHT,
    PIECE_WEIGHT_MS,
    PIECE_WINDOW,
)

_MAX_PIECES = 4096
_pieces: dict[Any, Piece] = {}
_LOCK = threading.Lock()


class Piece:
    """A sequence of nodes as a program of its own.

    Args:
      weight: how many ops it counts for.

    Attributes:
      program, nodes: what it computes.
      compiled: runs it at once, and returns its outputs and faults; None before `compile`.
      side: of `compiled`. Each site has for its line the number of the node as well.
    """

    def __init__(self, program: Program, weight: int) -> None:
        self.program, self.side = program, Side()
        self.nodes = [e for e in program.entries if isinstance(e, Node)]
        self._left = PIECE_MS + PIECE_WEIGHT_MS * weight
        self.compiled: Any = None

    def is_due(self) -> bool:
        """Count a run op by op; return True if it has run so for long enough."""
        self._left -= OP_BY_OP_MS * len(self.nodes)
        return self._left <= 0

    def compile(self, arrays: Sequence[Any]) -> Any:
        """Compile and run it; return its outputs and faults, as `compiled` does from now on."""
        fn, checked = lower(self.program, self.side), any(map(is_checked, self.nodes))

        def flat(*arrays: Any) -> Any:
            outputs, _, faults = fn(*arrays)
            return outputs, faults if checked else None

        note_compiled(name_program(flat, "piece", self.program), self)
        jitted = jax.jit(flat, **compiler_options_of(self.nodes))
        found = jitted(*arrays)
        self.compiled = jitted  # at last: other threads run it at once
        return found

    @property
    def executable(self) -> Any:
        """The `jax.stages.Compiled`, to be asked about; None before it was compiled."""
        if self.compiled is None:
            return None
        avals = [e.aval.struct() for e in self.program.entries if isinstance(e, Input)]
        with jax.enable_x64(True):
            return self.compiled.lower(*avals).compile()

    def forget(self) -> None:
        """Release the executable."""
        jitted, self.compiled = self.compiled, None
        if jitted is not None:
            jitted.clear_cache()


class Placed(NamedTuple):
    """A piece in a program.

    Attributes:
      start, end: the numbers of its first node and of the one after its last.
      inputs, outputs: values of the program that it takes, and those of its own that are needed.
      ended: values that nobody needs after it.
      piece: None for a single node.
    """

    start: int
    end: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    ended: tuple[int, ...]
    piece: Piece | None


def divide(
    program: Program,
    alone: Sequence[bool],
    ops: Sequence[SingleOp],
    reads: Sequence[tuple[int, ...]],
) -> list[Placed]:
    """Divide a program into pieces.

    Args:
      alone: for each node, whether it runs by itself.
      ops: for each node, what it is by itself.
      reads: for each node, the values that it needs.

    Returns:
      The pieces, in order; together they have all nodes.
    """
    bounds: list[int] = []
    for single, places in groupby(range(len(ops)), key=lambda k: alone[k]):
        section = [*places]
        if single:
            bounds += section
        else:
            start, end = section[0], section[-1] + 1
            weights = [op.weight for op in ops[start:end]]
            marks = [op.mark for op in ops[start:end]]
            bounds += [start + k for k in _bounds(marks, weights)]
    return _placed(program, [*pairwise([*bounds, len(ops)])], ops, reads)


def _bounds(marks: list[int], weights: list[int]) -> list[int]:
    """Return where the pieces of a section begin."""
    n, window = len(marks), PIECE_WINDOW
    # A piece begins where some ops in a row have the lowest mark around, and not those before.
    rows = [hash(tuple(marks[max(0, i - PIECE_ROW + 1) : i + 1])) for i in range(n)]
    bounds = [0] + [
        i
        for i in range(1, n)
        if rows[i] != rows[i - 1] and rows[i] == min(rows[max(0, i - window) : i + window + 1])
    ]
    turns: list[tuple[int, int]] = []
    for start, end in pairwise([*bounds, n]):
        alike = len({*marks[start:end]}) == 1
        turns += pairwise([*range(start, end, 1 if alike else PIECE_WEIGHT), end])
    found: list[int] = []
    for _, same in groupby(turns, key=lambda turn: marks[turn[0] : turn[1]]):
        run = [*same]
        weight = sum(weights[run[0][0] : run[0][1]])
        # Powers of four: runs of any lengths have few different pieces.
        together = 1
        while together * 4 * weight <= PIECE_WEIGHT:
            together *= 4
        k = 0
        while k < len(run):
            while together > len(run) - k:
                together //= 4
            found.append(run[k][0])
            k += together
    return found


def _placed(
    program: Program,
    spans: Sequence[tuple[int, int]],
    ops: Sequence[SingleOp],
    reads: Sequence[tuple[int, ...]],
) -> list[Placed]:
    """Return the pieces that have the nodes of these spans."""
    avals: list[Aval] = []
    nodes: list[PlacedEntry] = []
    maker: list[int] = []  # of each value: the number of the node that makes it, -1 for an input
    for e, entry in enumerate(program.entries):
        number = -1
        if isinstance(entry, Node):
            number = len(nodes)
            nodes.append(PlacedEntry(e, len(avals), entry))
        avals.extend(entry.avals)
        maker += [number] * len(entry.avals)
    last = {i: k for k, places in enumerate(reads) for i in places}
    last.update(dict.fromkeys(program.outputs, len(nodes)))
    found = []
    for start, end in spans:
        mine = nodes[start:end]
        taken = dict.fromkeys([i for placed in mine for i in placed.entry.inputs])
        inputs = tuple([i for i in taken if not start <= maker[i] < end])
        made = [i for placed in mine for i in placed.values]
        outputs = tuple([i for i in made if last.get(i, -1) >= end])
        piece = None
        if len(mine) > 1:
            given = [PlacedEntry(None, i, Input(avals[i])) for i in inputs]
            numbered = [
                placed._replace(entry=_numbered(placed.entry, k)) for k, placed in enumerate(mine)
            ]
            weight = sum(op.weight for op in ops[start:end])
            piece = _piece_of(renumber([*given, *numbered], outputs), weight)
        ended = tuple([i for i in (*inputs, *made) if last.get(i, -1) < end])
        found.append(Placed(start, end, inputs, outputs, ended, piece))
    return found


def _numbered(node: Node, k: int) -> Node:
    """Return a node that has its number in the piece beside its line."""
    where: Any = (*(node.where or ("?", 0)), k)
    return Node(node.call, node.inputs, node.avals, node.primal, where)


def _piece_of(program: Program, weight: int) -> Piece:
    """Return the piece of a program of this weight, one for equal structure."""
    key = program.key
    with _LOCK:
        piece = _pieces.get(key)
        if piece is None:
            if len(_pieces) >= _MAX_PIECES:
                _pieces.pop(next(iter(_pieces)))
            piece = _pieces[key] = Piece(program, weight)
        return piece


def forget_pieces() -> None:
    """Release all pieces that were compiled."""
    with _LOCK:
        known = [*_pieces.values()]
        _pieces.clear()
    for piece in known:
        piece.forget()
