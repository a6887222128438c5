"""Programs that compute the same in another order are one, and each tensor gets its own value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import leafax
from leafax._core.run_log import plans
from leafax._runtime.turns import Preluded
from leafax.functional.execution.plan import Plan
from leafax.functional.lowering.lower import prune
from leafax.functional.program.canonical import canonical
from leafax.functional.program.op import TABLE
from leafax.functional.program.program import Aval, Input, Node, Program, Slot, call_of

VECTOR = Aval((3,), np.dtype("float32"))


def _node(name: str, *inputs: int) -> Node:
    call = call_of(TABLE[name], tuple(map(Slot, range(len(inputs)))), {})
    return Node(call, inputs, (VECTOR,))


def _key(entries: list[Any], outputs: tuple[int, ...], **facts: Any) -> Any:
    given = {"donate": (), "frozen": (), "guards": ()} | facts
    return canonical(prune(Program(tuple(entries), outputs)), **given).key


def test_the_order_of_inputs_and_ops_makes_no_other_program() -> None:
    x = Input(VECTOR)
    # sub(sin(a), cos(b))
    one = _key([x, _node("sin", 0), x, _node("cos", 2), _node("sub", 1, 3)], (4,), donate=(0,))
    other = _key([x, x, _node("cos", 0), _node("sin", 1), _node("sub", 3, 2)], (4,), donate=(1,))
    assert one == other
    for entries, donate in (
        ([x, x, _node("cos", 0), _node("sin", 1), _node("sub", 2, 3)], (1,)),  # the other way
        ([x, x, _node("cos", 0), _node("sin", 0), _node("sub", 3, 2)], (1,)),  # of one input
        ([x, x, _node("cos", 0), _node("sin", 1), _node("sub", 3, 2)], (0,)),  # other buffers
    ):
        assert _key(entries, (4,), donate=donate) != one


def test_turns_in_another_order_are_run_by_one_program() -> None:
    """All are of one shape, so values tell what each tensor holds afterwards."""

    def turn(swap: bool) -> tuple[list[Any], Any]:
        a, b = (leafax.full((40, 40), float(n)).exp() for n in (1, 2))
        v, w = (leafax.full((40, 40), float(n), requires_grad=True) for n in (3, 4))
        leafax.synchronize()
        first, second = (b / w, a * v) if swap else (a * v, b / w)
        p, q = (second, first) if swap else (first, second)
        (p.sin() - q.cos()).sum().backward()
        v.grad.sum().item()  # type: ignore[union-attr]
        return [t[3, 3].item() for t in (a, b, v, w, p, q, v.grad, w.grad)], plans[-1][1]

    (values, plan), (again, other) = turn(False), turn(True)
    for x, y in zip(values, again, strict=True):
        np.testing.assert_allclose(x, y)
    assert getattr(other, "plan", other) is getattr(plan, "plan", plan)


def test_what_comes_from_no_input_is_each_tensors_own() -> None:
    w = leafax.ones(64, 64, requires_grad=True)
    kept = []
    for turn in range(4):
        mask = leafax.tril(leafax.ones(64, 64) * 2).triu(-3)
        (w * mask).sin().sum().backward()
        np.testing.assert_allclose(w.grad[5, 4].item(), 2 * np.cos(2.0), rtol=1e-6)  # type: ignore[index]
        w.grad = None
        kept.append(mask)
        mask += turn
    for turn, mask in enumerate(kept):
        assert mask[5, 4].item() == 2.0 + turn


def test_an_interrupt_after_a_turn_with_sums_loses_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums that run beside the step have happened as the step has."""

    def outcome(self: Plan, flat: Any, how: str, seconds: float) -> Any:
        if len(self.nodes) > 3 and interrupts:
            interrupts.pop()
            raise KeyboardInterrupt
        return known(self, flat, how, seconds)

    known, interrupts = Plan.outcome, list[int]()
    monkeypatch.setattr(Plan, "outcome", outcome)
    total: Any = 0.0
    w, sums = leafax.ones(53, requires_grad=True), list[Any]()
    optimizer = leafax.optim.SGD([w], lr=0.5)
    for turn in range(5):
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        interrupts += [0] * (turn == 3)
        try:
            optimizer.step()
            assert turn != 3
        except KeyboardInterrupt:
            assert turn == 3
        if turn in (2, 3):
            assert isinstance(plans[-1][1], Preluded)
        sums.append(total)
        total += loss.detach()
    assert [float(x) for x in sums] == [0.0, *[53.0] * 4]  # the rate leaves nothing of the weights
    assert w.tolist() == [0.0] * 53
