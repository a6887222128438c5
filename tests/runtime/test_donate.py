"""Which output takes which donated buffer: each one that of the input that it updates."""

import re

import numpy as np
import pytest
from helpers.cheap_programs import OPTIMIZED

import leafax
from leafax.functional import TABLE, Aval, Input, Node, Op
from leafax.functional.execution.donation import pair
from leafax.functional.program.program import Slot, call_of

F32 = Aval((3,), np.dtype("float32"))


def _update(n: int) -> Op:
    reuses = {k: k for k in range(n)} | {n + k: 2 * n + k for k in range(n)}
    return Op(lambda p, g, m: (*p, *m), name="update", reuses=reuses)


def test_each_result_of_an_update_takes_the_buffer_that_it_updates() -> None:
    call = call_of(_update(2), ((Slot(0), Slot(1)), (Slot(2), Slot(3)), (Slot(4), Slot(5))), {})
    entries = [Input(F32)] * 6 + [Node(call, (0, 1, 2, 3, 4, 5), (F32,) * 4)]
    # Values 6, 7 are the parameters, 8, 9 their momenta; 2 and 3, the gradients, are returned.
    outputs, donated = pair(entries, (2, 3, 6, 7, 8, 9), (0, 1, 4, 5))
    assert outputs == (6, 7, 8, 9, 2, 3)
    assert donated == (0, 1, 4, 5)


def test_a_buffer_that_nothing_updates_goes_to_any_output_of_its_shape() -> None:
    other = Aval((5,), np.dtype("float32"))
    call = call_of(TABLE["add"], (Slot(0), Slot(1)), {})
    entries = [Input(F32), Input(F32), Input(other), Node(call, (0, 1), (F32,))]
    assert pair(entries, (3,), (0, 1, 2)) == ((3,), (0,))
    assert pair(entries, (3,), (1, 2)) == ((3,), (1,)), "an operand's buffer will do"
    assert pair(entries, (3,), (2,)) == ((3,), ()), "no output has this shape"


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_a_training_step_copies_no_state(name: str) -> None:
    from leafax._runtime import cut

    weights = [leafax.rand(64, 64).requires_grad_() for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(leafax.optim, name)(weights, lr=0.1, **options)
    x = leafax.rand(8, 64)
    for _ in range(3):
        optimizer.zero_grad()
        ((x @ weights[0]).tanh() @ weights[1]).sum().backward()
        optimizer.step()
    plan = cut.plans[-1][1]
    avals = [e.aval.struct() for e in plan.program.entries if isinstance(e, Input)]
    text = plan.lowered(avals).compile(OPTIMIZED).as_text()
    entry = text[text.index("\nENTRY") :]
    copies = re.findall(r"copy[.\d]* = f32\[64,64\]\S* copy\(%(\S+?)\)", entry)
    # The second weight is read for the gradient of what the first one gave: nothing says that this
    # product is done when the weight is updated, so XLA copies it, as in a step written by hand.
    matrices = [i for i in plan.donate if avals[i].shape == (64, 64)]
    assert len(matrices) == (6 if name == "AdamW" else 4), "all that is updated"
    assert len(copies) <= 1, entry
