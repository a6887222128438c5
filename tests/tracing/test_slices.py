"""Slices of programs: what some values come from, as a program of its own."""

import random
import threading
from collections.abc import Iterator

import jax
import numpy as np
import pytest

import leafax as lx
from leafax.functional.lowering.lower import lower, prune
from leafax.functional.program.op import Op
from leafax.functional.program.program import Aval, Input, Node, Program, call_of
from leafax.functional.program.slices import PlacedEntry, needed_entries, needed_steps, renumber
from leafax.functional.program.templates import Slot

AVAL = Aval((), np.dtype(np.float64))
ADD = call_of(Op(lambda a, b: a + b, name="add"), (Slot(0), Slot(1)), {})
SPLIT = call_of(Op(lambda a: (a, -a), name="split"), (Slot(0),), {})
CHECKED = call_of(Op(lambda a: a, name="checked", check=lambda a: []), (Slot(0),), {})


def program(*outputs: int, checked: int | None = None) -> Program:
    """Return 0, 1 = inputs; 2 = 0 + 1; 3, 4 = split 2; 5 = 0 + 0; 6 = 4 + 5; 7 = 5 + 5."""
    nodes = [
        Node(ADD, (0, 1), (AVAL,)), Node(SPLIT, (2,), (AVAL, AVAL)), Node(ADD, (0, 0), (AVAL,)),
        Node(ADD, (4, 5), (AVAL,)), Node(ADD, (5, 5), (AVAL,)),
    ]  # fmt: skip
    if checked is not None:
        nodes.append(Node(CHECKED, (checked,), (AVAL,)))
    return Program((Input(AVAL), Input(AVAL), *nodes), outputs)


def placed(whole: Program) -> list[PlacedEntry]:
    firsts = whole.first_values()
    return [PlacedEntry(e, firsts[e], entry) for e, entry in enumerate(whole.entries)]


def run(made: Program, *arrays: float) -> list[float]:
    with jax.enable_x64(True):
        return [float(x) for x in lower(made)(*map(np.float64, arrays))]


def test_a_slice_computes_what_the_whole_does() -> None:
    whole = program(6)
    for wanted in range(2, 8):
        found = [*needed_entries(reversed(placed(whole)), [wanted])][::-1]
        inputs = [e.place for e in found if isinstance(e.entry, Input)]
        given = [(2.0, 5.0)[i] for i in inputs]
        expected = run(whole._replace(outputs=(wanted,)), 2.0, 5.0)
        assert run(renumber(found, (wanted,)), *given) == expected
    assert [e.place for e in needed_entries(reversed(placed(whole)), [7])] == [6, 4, 0]


def test_known_values_become_inputs_unless_others_of_their_node_are_wanted() -> None:
    whole = placed(program())
    found = [*needed_entries(reversed(whole), [6], {4: -7.0, 5: 4.0})][::-1]
    assert [(e.first, e.array) for e in found] == [(4, -7.0), (5, 4.0), (6, None)]
    assert run(renumber(found, (6,)), -7.0, 4.0) == [-3.0]
    both = [*needed_entries(reversed(whole), [3, 4], {4: -7.0})][::-1]
    assert [e.first for e in both] == [0, 1, 2, 3]


def test_entries_before_what_is_needed_are_not_read() -> None:
    def entries() -> Iterator[PlacedEntry]:
        yield PlacedEntry(0, 0, Input(AVAL))
        raise AssertionError("nothing is wanted any more")

    assert len([*needed_entries(entries(), [0])]) == 1


def test_a_gradient_node_keeps_its_primal_only_where_that_is_there() -> None:
    gradient = Node(ADD, (0, 1), (AVAL,), primal=2)
    whole = Program((Input(AVAL), Input(AVAL), Node(ADD, (1, 1), (AVAL,)), gradient), (3,))
    entries = placed(whole)
    assert renumber(entries, (3,)).entries[3].primal == 2
    assert renumber([*entries[:2], entries[3]], (3,)).entries[2].primal is None
    assert renumber(entries[1:3], (2,), [(2, (0,))]).residuals == ((1, (0,)),)


def test_prune_keeps_inputs_checks_and_residuals() -> None:
    def calls(made: Program) -> list[str]:
        return [e.call.op.name for e in made.entries[2:]]

    assert isinstance(prune(program(2)).entries[1], Input)
    assert calls(prune(program(5))) == ["add"]
    assert calls(prune(program(5, checked=3))) == ["add", "split", "add", "checked"]
    assert prune(program(5)._replace(residuals=((3, (0,)),))).residuals == ((3, (0,)),)
    everything = program(3, 6, 7)
    assert prune(everything) is everything


@pytest.mark.parametrize("seed", range(3))
def test_needed_steps_are_those_that_can_be_reached(seed: int) -> None:
    rng = random.Random(seed)
    reads = [rng.sample(range(i), min(i, rng.randrange(3))) for i in range(40)]
    wanted, reached = [rng.randrange(20, 40) for _ in range(2)], set()
    stack = list(wanted)
    while stack:
        i = stack.pop()
        reached.add(i)
        stack += reads[i]
    found = needed_steps(range(39, -1, -1), wanted, lambda i: [i], lambda i: reads[i])
    assert [i for i, _ in found] == sorted(reached, reverse=True)


def test_another_threads_values_are_computed_from_their_slice() -> None:
    x = lx.tensor([1.0, 2.0])
    pending: list[lx.Tensor] = []
    release, ready = threading.Event(), threading.Event()

    def record() -> None:
        y = x * 2
        pending.extend([y, y + 1, (y * y).sum()])
        ready.set()
        release.wait()

    thread = threading.Thread(target=record)
    thread.start()
    ready.wait()
    try:
        assert pending[1].tolist() == [3.0, 5.0]
        assert pending[2].item() == 20.0
        assert pending[0].tolist() == [2.0, 4.0]
    finally:
        release.set()
        thread.join()
