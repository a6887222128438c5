"""Random imperative programs under torch and leafax: nothing that a user can see may differ."""

from __future__ import annotations

import fuzz_programs
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sameness import assert_equal, run

import leafax

NUMBER = st.integers(0, 999)
STEPS = st.lists(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER), min_size=2, max_size=9)


@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
@given(STEPS, st.booleans())
def test_programs(steps: list[fuzz_programs.Step], watch: bool) -> None:
    lines = fuzz_programs.write(steps)
    program = fuzz_programs.program(lines, watch)
    expected = run(program, torch)
    text = "\n".join(lines)
    assert_equal(run(program, leafax), expected, f"{text}\nfirst run")
    assert_equal(run(program, leafax), expected, f"{text}\nfrom memory")
    assert_equal(run(program, leafax, eager=True), expected, f"{text}\nvalues read at once")
