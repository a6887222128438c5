"""Random imperative programs under torch and leafax: nothing that a user can see may differ.

The programs are the same in every run; `python tests/fuzz.py` draws others.
"""

from __future__ import annotations

import fuzz
import pytest
from helpers import fuzz_programs

PROGRAMS = 2000
BLOCK = 50  # programs a test: small enough to share among processes

# What the fuzzer once found, as it was shrunk.
ONCE = (
    ("with torch.enable_grad(): x = z.imag",
     "with torch.set_grad_enabled(False): see(x.is_contiguous())"),
    ("x = a.expand(2, *a.shape)", "with torch.no_grad(): x[:] = 0.5"),
    ("cut()", "d.add_(d)", "(b * b.conj()).sum().real.backward()"),
    ("x = d.diagonal()", "x[torch.tensor([0])] = x"),
    ("x = torch.outer(d.diagonal(), c[:2])",),
    ("x = z.sum().softmax(0)",),
    ("a.resize_(2)", "x = a.as_strided((2, 2), (2, 1), 0)"),
    ("x = a + 1", "y = x[...]", "x.sub_(c)", "y.grad.mul_(2)"),
    ("x = b.t() * 2", "y = x.view(-1)", "y = x.as_strided((2,), (1,), 1)", "y.mul_(2)"),
    ("x = d.expand(2, *d.shape)", "x.zero_()", "d.sum().backward()"),
)  # fmt: skip


@pytest.mark.quick(4)
@pytest.mark.parametrize("first", range(0, PROGRAMS, BLOCK))
def test_programs(first: int) -> None:
    for seed in range(first, first + BLOCK):
        drawn = fuzz.draw(seed, most=10)
        found = fuzz.difference(drawn, fuzz.ways_of(seed))
        assert found is None, "\n".join([f"seed {seed}", *drawn.lines, found.text])


@pytest.mark.parametrize("watch", [False, True])
@pytest.mark.parametrize("lines", ONCE)
def test_what_differed_once(lines: tuple[str, ...], watch: bool) -> None:
    found = fuzz.difference(fuzz.Drawn((*fuzz_programs.START, *lines), watch))
    assert found is None, found.text


def test_a_seed_is_one_program() -> None:
    assert [fuzz.draw(seed, most=10) for seed in range(5)] == [
        fuzz.draw(seed, most=10) for seed in range(5)
    ]


def test_a_difference_is_found_and_shrunk() -> None:
    drawn = fuzz.Drawn((*fuzz_programs.START, "e = a + 1", "see(torch.__name__)"), True)
    found = fuzz.difference(drawn)
    assert found is not None
    small, found = fuzz.shrink(drawn, found, until=float("inf"))
    assert small == fuzz.Drawn(("see(torch.__name__)",))
    assert found.text == "first run: entry 0:\n  leafax: leafax\n  torch:  torch"
