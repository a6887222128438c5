"""`jax()` of small data on the host: a question, after which the data stay where they are."""

from __future__ import annotations

import jax
import numpy as np

import leafax


def test_a_look_after_jax_still_needs_no_program() -> None:
    """Packages ask `isinstance(x.jax(), Tracer)` to learn whether they are traced by JAX."""
    mask = leafax.from_numpy(np.array([[True, False], [True, True]]))
    leafax.synchronize()
    leafax.explain(clear=True)
    pending = leafax.ones(300, 30) * 2
    array = mask.jax()
    assert isinstance(array, jax.Array) and not isinstance(array, jax.core.Tracer)
    np.testing.assert_array_equal(array, [[True, False], [True, True]])
    assert not mask.all() and not leafax.explain()
    assert pending[0, 0].item() == 2


def test_the_array_keeps_its_values_when_the_tensor_is_written_to() -> None:
    x = leafax.tensor([1, 2])
    before = x.jax()
    x[0] = 5
    assert before.tolist() == [1, 2] and x.jax().tolist() == [5, 2]
