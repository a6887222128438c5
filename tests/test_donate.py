"""Which output takes which donated buffer: each one that of the input that it updates."""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import leafax
from leafax.functional import TABLE, Aval, Input, Node, Op, Plan, Program, call_of, pair
from leafax.functional._in_place import written_in_place
from leafax.functional._program import Slot

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
    from leafax import _run

    weights = [leafax.rand(64, 64).requires_grad_() for _ in range(2)]
    options = {"momentum": 0.9} if name == "SGD" else {}
    optimizer = getattr(leafax.optim, name)(weights, lr=0.1, **options)
    x = leafax.rand(8, 64)
    for _ in range(3):
        optimizer.zero_grad()
        ((x @ weights[0]).tanh() @ weights[1]).sum().backward()
        optimizer.step()
    plan = _run.plans[-1][1]
    avals = [e.aval.struct() for e in plan.program.entries if isinstance(e, Input)]
    text = plan.lowered(avals).compile().as_text()
    entry = text[text.index("\nENTRY") :]
    copies = re.findall(r"copy[.\d]* = f32\[64,64\]\S* copy\(%(\S+?)\)", entry)
    assert not copies, entry
    # The second weight is read for the gradient of what the first one gave: when it is updated
    # nothing says that this product is done, so its buffer is not donated.
    matrices = [i for i in plan.donate if avals[i].shape == (64, 64)]
    assert set(matrices) - set(plan.donated) == {matrices[1]}


def _pairs(fn: Callable[..., Any], donated: int, *args: Any) -> tuple[int, ...]:
    program = jax.make_jaxpr(fn)(*args)
    return written_in_place(program, {k: k for k in range(donated)})


W, X = jnp.ones((8, 8)), jnp.ones((4, 8))


def test_an_input_read_beside_its_update_is_not_written_in_place() -> None:
    def backward(w: Any, x: Any) -> Any:
        return w - x.T @ x, x @ w.T

    assert _pairs(backward, 1, W, X) == ()
    assert _pairs(lambda w, x: (w - (x @ w).T @ x, 0), 1, W, X) == (0,)
    assert _pairs(lambda w, x: (w - x.T @ x, w), 1, W, X) == (), "it is returned itself"
    assert _pairs(lambda w, x: (jnp.zeros((8, 8)), x), 1, W, X) == (0,), "nobody reads it"


def test_an_input_is_read_where_a_fusion_ends() -> None:
    def update(m: Any, w: Any, g: Any) -> Any:
        new = 0.9 * m + g  # returned, so that the weight's update reads that
        return new, w - 0.1 * new

    assert _pairs(update, 2, W, W, W) == (0, 1)

    def fused(b: Any, w: Any, x: Any) -> Any:
        g = jnp.where(x @ w + b > 0, x, 0)  # the sum's memory holds `g`, not `b`
        return b - g.sum(0), g @ w

    assert _pairs(fused, 1, jnp.ones(8), W, X) == (0,)

    def inner(w: Any, x: Any) -> Any:
        return w - jax.jit(lambda y: y.T @ y)(x), jax.jit(jnp.dot)(x, w)

    assert _pairs(inner, 1, W, X) == (), "programs in the program are looked into"


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="what XLA does on CPUs")
def test_outputs_keep_their_order_when_one_is_not_donated() -> None:
    mul, mm, sub = (TABLE[name] for name in ("mul", "mm", "sub"))
    aval = Aval((4, 4), np.dtype("float32"))
    entries = (
        Input(aval), Input(aval), Input(aval),
        Node(call_of(mm, (Slot(2), Slot(2)), {}), (0, 1, 2), (aval,)),
        Node(call_of(sub, (Slot(0), Slot(1)), {}), (0, 3), (aval,)),
        Node(call_of(mul, (Slot(0), Slot(0)), {}), (1,), (aval,)),
        Node(call_of(mm, (Slot(0), Slot(1)), {}), (2, 0), (aval,)),
    )  # fmt: skip
    plan = Plan(Program(entries, (4, 5, 6)), (0, 1))
    arrays = [np.random.rand(4, 4).astype("float32") for _ in range(3)]
    a, b, c = arrays
    expected = a - c @ c, b * b, c @ a
    for _ in range(2):
        found = plan.run([jnp.array(x) for x in arrays]).outputs
        for x, y in zip(found, expected, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-6)
    assert plan.donated == (1,)
