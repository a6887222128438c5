"""The generator: reproducible, never repeating, independent of where programs are cut."""

from __future__ import annotations

import numpy as np
import pytest

import leafax


def draw(cut: bool) -> list[float]:
    leafax.manual_seed(7)
    values = []
    for _ in range(3):
        x = leafax.rand(2)
        if cut:
            leafax.synchronize()
        values.append(x + leafax.randn(2))
    return [v for x in values for v in x.tolist()]


def test_cuts_change_no_number() -> None:
    assert draw(True) == draw(False)
    assert len(set(draw(False))) == 6


def test_a_loop_neither_compiles_nor_repeats() -> None:
    leafax.manual_seed(0)
    seen = []
    leafax.rand(3).tolist()
    leafax.rand(3).tolist()
    leafax.explain(clear=True)
    for _ in range(5):
        seen += leafax.rand(3).tolist()
    assert len(set(seen)) == 15
    assert leafax.explain().compiles <= 1


def test_generators_and_state() -> None:
    g = leafax.Generator().manual_seed(3)
    a = leafax.rand(4, generator=g).tolist()
    state = g.get_state()
    b = leafax.rand(4, generator=g).tolist()
    g.set_state(state)
    assert leafax.rand(4, generator=g).tolist() == b != a
    assert g.initial_seed() == 3
    leafax.manual_seed(1)
    before = leafax.rand(2).tolist()
    leafax.manual_seed(1)
    with leafax.fork_rng():
        leafax.rand(5).tolist()
    assert leafax.rand(2).tolist() == before


@pytest.mark.parametrize(
    ("make", "mean", "std"),
    [
        (lambda: leafax.rand(20000), 0.5, 12**-0.5),
        (lambda: leafax.randn(20000), 0.0, 1.0),
        (lambda: leafax.randint(10, (20000,)).double(), 4.5, (99 / 12) ** 0.5),
    ],
)
def test_moments(make: object, mean: float, std: float) -> None:
    leafax.manual_seed(0)
    x = make().numpy()  # type: ignore[operator]
    # Five standard errors of the mean and of the standard deviation.
    assert abs(x.mean() - mean) < 5 * std / 20000**0.5
    assert abs(x.std() - std) < 5 * std / 20000**0.5


def test_randperm_is_a_permutation() -> None:
    assert sorted(leafax.randperm(50).tolist()) == list(range(50))
    assert np.any(np.asarray(leafax.randperm(50).tolist()) != np.arange(50))


def test_normal_with_a_tensor_of_means_alone() -> None:
    leafax.manual_seed(0)
    found = leafax.normal(leafax.zeros(2000) + 5)
    assert abs(found.mean().item() - 5) < 0.2 and abs(found.std().item() - 1) < 0.2


def test_a_failed_program_does_not_end_the_sequence() -> None:
    """What the generator's state was to be is known without the program that failed."""
    leafax.manual_seed(3)
    leafax.rand(1)
    wanted = leafax.rand(2).tolist()
    leafax.manual_seed(3)
    with pytest.raises(RuntimeError, match="Out of memory"):
        print(leafax.randn(10**13))
    assert leafax.rand(2).tolist() == wanted
