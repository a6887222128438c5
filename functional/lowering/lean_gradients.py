"""Gradient nodes without the operands that they do not read, for programs that do not run whole."""

from __future__ import annotations

import functools
from typing import Any

from ..program.program import Aval, Node, Program
from .lower import needed_inputs, prune
from .vjp import VjpCall, vjp_of


def with_lean_gradients(program: Program) -> Program:
    """Leave out what gradient nodes take and do not read, and what is computed for that alone.

    In a program that is compiled whole XLA does so. Its inputs and outputs stay the same.

    Args:
      program: any program.

    Returns:
      One that computes the same.
    """
    avals: list[Aval] = []
    entries: list[Any] = []
    for entry in program.entries:
        if isinstance(entry, Node) and type(entry.call) is VjpCall and not entry.call.missing:
            entries.append(_lean(entry, tuple([avals[i] for i in entry.inputs])))
        else:
            entries.append(entry)
        avals.extend(entry.avals)
    return prune(Program(tuple(entries), program.outputs, program.residuals))


def _lean(node: Node, taken: tuple[Aval, ...]) -> Node:
    call: VjpCall = node.call
    read = _reads(call, taken)
    missing = tuple([(i, taken[i]) for i in range(call.n) if i not in read])
    if not missing:
        return node
    lean = vjp_of(call.call, call.n, call.wanted, call.given, missing)
    inputs = tuple([v for i, v in enumerate(node.inputs) if i >= call.n or i in read])
    return Node(lean, inputs, node.avals, node.primal, node.where)


@functools.lru_cache(1 << 14)
def _reads(call: VjpCall, taken: tuple[Aval, ...]) -> frozenset[int]:
    return needed_inputs(call, taken)
