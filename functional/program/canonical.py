"""Programs that differ only in the order in which their inputs came.

A loop's first turn meets its tensors in another order than the later ones: what was prepared
before it entered first. The programs compute the same, so one is run for the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .program import Input, Node, Program


class Canonical(NamedTuple):
    """A program told without the order of its inputs.

    Attributes:
      key: equal for programs that compute the same from inputs in another order.
      inputs: its inputs' positions, in the order in which nodes use them; then the others.
      numbers: of each value, the number that `key` has for it.
    """

    key: Any
    inputs: tuple[int, ...]
    numbers: dict[int, int]


def canonical(
    program: Program,
    donate: Iterable[int],
    frozen: Iterable[int],
    guards: Sequence[tuple[int, int]],
) -> Canonical:
    """Tell a program without the order of its inputs.

    Args:
      program: without nodes that nothing needs.
      donate, frozen, guards: as `plan_for` takes them.
    """
    firsts = program.first_values()
    nodes = [(e, n) for e, n in enumerate(program.entries) if isinstance(n, Node)]
    values = [first for e, first in zip(program.entries, firsts, strict=True) if type(e) is Input]
    position = {value: i for i, value in enumerate(values)}
    used = dict.fromkeys(v for _, node in nodes for v in node.inputs if v in position)
    used.update(dict.fromkeys(values))
    numbers = {value: n for n, value in enumerate(used)}
    for e, node in nodes:
        for k in range(len(node.avals)):
            numbers[firsts[e] + k] = len(numbers)
    order = tuple([position[value] for value in used])
    place = {i: n for n, i in enumerate(order)}
    entry = {e: n for n, (e, _) in enumerate(nodes)}
    avals = [e.aval for e in program.entries if isinstance(e, Input)]
    outputs = [numbers[v] for v in program.outputs]
    key = (
        tuple([avals[i] for i in order]),
        tuple([(node.call, tuple([numbers[v] for v in node.inputs])) for _, node in nodes]),
        frozenset(outputs),
        frozenset([(entry[e], wanted) for e, wanted in program.residuals]),
        frozenset([place[i] for i in donate]),
        frozenset([place[i] for i in frozen]),
        frozenset([(outputs[k], place[i]) for k, i in guards]),
    )
    return Canonical(key, order, numbers)
