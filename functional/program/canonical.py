"""Programs that compute the same, recorded in another order.

A loop's first turn meets its tensors and ops in another order than the later ones: what was
prepared before it entered first, a view of a label was read later. One program is run for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from .program import Input, Node, Program


class Canonical(NamedTuple):
    """A program told without the order of its inputs and ops.

    Attributes:
      key: equal for programs that compute the same in another order.
      inputs: its inputs' positions, in the order in which `key` has them.
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
    """Tell a program without the order of its inputs and ops.

    Args:
      program: without nodes that nothing needs.
      donate, frozen, guards: as `plan_for` takes them.
    """
    values: list[int] = []  # of the inputs
    makers: dict[int, tuple[int, Node, int]] = {}  # by value: entry, node, the node's first value
    firsts = program.first_values()
    for e, (entry, first) in enumerate(zip(program.entries, firsts, strict=True)):
        if isinstance(entry, Input):
            values.append(first)
        else:
            makers.update({first + k: (e, entry, first) for k in range(len(entry.avals))})
    numbers: dict[int, int] = {}
    nodes: list[Any] = []
    entered: dict[int, int] = {}  # entries to their places among the nodes
    used: list[int] = []
    for value in _operands_first(values, makers):
        if value not in makers:
            numbers[value] = -1 - len(used)
            used.append(value)
            continue
        e, node, first = makers[value]
        entered[e] = len(nodes)
        nodes += (node.call, len(node.inputs), *[numbers[v] for v in node.inputs])
        made = len(numbers)
        numbers.update({first + k: made + k for k in range(len(node.avals))})
    position = {value: i for i, value in enumerate(values)}
    order = tuple([position[value] for value in used])
    place = {i: n for n, i in enumerate(order)}
    avals = [e.aval for e in program.entries if isinstance(e, Input)]
    outputs = [numbers[v] for v in program.outputs]
    key = (
        tuple([avals[i] for i in order]),
        tuple(nodes),
        frozenset(outputs),
        frozenset([(entered[e], wanted) for e, wanted in program.residuals]),
        frozenset([place[i] for i in donate]),
        frozenset([place[i] for i in frozen]),
        frozenset([(outputs[k], place[i]) for k, i in guards]),
    )
    return Canonical(key, order, numbers)


def _operands_first(inputs: Sequence[int], makers: dict[int, tuple[int, Node, int]]) -> list[int]:
    """List the inputs, and of each node its first value: operands before what takes them.

    The last node is looked at first, since that takes most of what there is in one order.
    """
    found: dict[int, None] = {}
    for root in [*sorted(makers, reverse=True), *inputs]:
        stack = [(root, False)]
        while stack:
            value, done = stack.pop()
            maker = makers.get(value)
            value = value if maker is None else maker[2]
            if value in found:
                continue
            if maker is None or done:
                found[value] = None
            else:
                stack.append((value, True))
                stack += [(v, False) for v in reversed(maker[1].inputs)]
    return list(found)
