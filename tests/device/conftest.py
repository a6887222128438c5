"""Tests of whatever device JAX has; without torch, against NumPy in float64."""

import os
from collections.abc import Iterator

import pytest

import leafax
from leafax.functional import lowerings


@pytest.fixture(scope="session", autouse=True)
def on_the_chosen_device() -> Iterator[None]:
    """Make new data on the device that the environment names, `LEAFAX_TEST_DEVICE=cpu:1`."""
    where = os.environ.get("LEAFAX_TEST_DEVICE")
    if where is None:
        yield
        return
    leafax.set_default_device(where)
    yield
    leafax.set_default_device(None)


@pytest.fixture(autouse=True)
def seeded() -> None:
    leafax.manual_seed(0)


@pytest.fixture
def all_compiled() -> Iterator[None]:
    """Compile each program when it is first met: nothing is left to NumPy, or run op by op."""
    lowerings(op_by_op="exact")
    yield
    leafax.synchronize()
    lowerings(op_by_op="auto")
