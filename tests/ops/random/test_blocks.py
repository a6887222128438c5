"""Large draws run block by block, with the numbers of the op compiled for its shape."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import leafax
from leafax.functional import TABLE
from leafax.functional.execution import drawn_in_blocks
from leafax.functional.execution.drawn_in_blocks import in_blocks
from leafax.functional.program.program import Aval, Node, Slot, call_of


@pytest.mark.quick(3)
@pytest.mark.parametrize("shape", [(7,), (64, 33, 3, 3), (1 << 15,), (0, 3), ()])
@pytest.mark.parametrize(
    ("name", "bounds"),
    [("uniform", (-0.3, 0.2)), ("uniform", (0.0, 1.0)), ("fill.normal", (0.1, 0.37))],
)
def test_blocks_have_the_numbers_of_one_program(name, bounds, shape):
    words = np.array([3, 5], np.uint32)
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    like = np.zeros(shape, np.float32)
    with jax.enable_x64(True):
        compiled = jax.jit(lambda key, like: TABLE[name].fn(key, like, *bounds))(key, like)
        call = call_of(TABLE[name], (Slot(0), Slot(1), *bounds), {})
        node = Node(call, (0, 1), (Aval(shape, np.dtype("float32"), False),), None)
        drawn = in_blocks(node)(words, like)[0]
    assert drawn.shape == shape
    np.testing.assert_array_equal(drawn, np.asarray(compiled))


def test_models_with_other_shapes_compile_no_draws_of_their_own():
    def build(width):
        leafax.explain(clear=True)
        layers = leafax.nn.Sequential(
            leafax.nn.Conv2d(3, width, 3), leafax.nn.Linear(width, 2 * width)
        )
        leafax.synchronize()
        assert {run.how for run in leafax.explain(clear=True)} == {"op by op"}
        return layers

    first, again = build(11), build(11)
    assert first[1].weight.shape == again[1].weight.shape
    before = drawn_in_blocks._uniform._cache_size()
    for width in (12, 13, 14):
        assert float(build(width)[1].weight.detach().std()) > 0
    assert drawn_in_blocks._uniform._cache_size() == before


def test_draws_that_are_drawn_over_are_not_computed():
    leafax.manual_seed(0)
    weight = leafax.empty(31, 17)
    weight.uniform_(-0.3, 0.2)
    kept = weight.clone()
    weight.normal_(0.1, 0.2)
    weight.uniform_(-0.1, 0.2)
    leafax.manual_seed(0)
    again = leafax.empty(31, 17).uniform_(-0.3, 0.2)
    leafax.empty(31, 17).normal_()
    last = leafax.empty(31, 17).uniform_(-0.1, 0.2)
    assert kept.tolist() == again.tolist()
    assert weight.tolist() == last.tolist()


def test_a_model_that_is_made_again_and_looked_at_runs_op_by_op():
    for _ in range(4):
        leafax.explain(clear=True)
        layer = leafax.nn.Sequential(*[leafax.nn.Linear(8 + i, 9 + i) for i in range(4)])
        leafax.nn.init.normal_(layer[0].weight)
        assert layer[0].weight.detach().sum().item() != 0
        assert [run.how for run in leafax.explain(clear=True)] == ["op by op"]
