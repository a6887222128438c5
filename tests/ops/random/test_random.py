"""The generator: reproducible, never repeating, independent of where programs are cut."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest
import torch

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
    # A program may round a product and a sum at once, two programs do not.
    np.testing.assert_allclose(draw(True), draw(False), rtol=1e-6)
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
    """The generator's next state is known without the program that failed."""
    leafax.manual_seed(3)
    leafax.rand(1)
    wanted = leafax.rand(2).tolist()
    leafax.manual_seed(3)
    with pytest.raises(RuntimeError, match="out of memory"):
        print(leafax.randn(10**13))
    assert leafax.rand(2).tolist() == wanted


def test_a_generator_is_copied_pickled_and_put_back_by_its_bytes() -> None:
    g = leafax.Generator().manual_seed(3)
    leafax.rand(2, generator=g)
    state = g.get_state()
    assert state.dtype is leafax.uint8
    others = [copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()]
    drawn = leafax.rand(4, generator=g).tolist()
    others.append(leafax.Generator().set_state(state.cpu().byte()))
    for other in others:
        assert leafax.rand(4, generator=other).tolist() == drawn
        assert other.initial_seed() == 3


def said(call: str, t: object) -> tuple[object, list[str]]:
    """Return the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            eval(call, {"t": t})
        except Exception as e:
            return (type(e), str(e)), []
    return None, [str(w.message).split(" (Triggered")[0] for w in caught]


@pytest.mark.parametrize(
    "call",
    ["t.manual_seed(1 << 64)", "t.Generator().manual_seed('a')", "t.Generator().manual_seed(True)",
     "t.Generator().manual_seed(-(1 << 63) - 1)", "t.Generator().manual_seed(-1) and None",
     "t.Generator().set_state(1)", "t.set_rng_state(t.zeros(3))",
     *(f"t.empty(1, dtype=t.{d}).random_({b})"
       for d in ("bool", "uint8", "int16", "int64", "float16", "bfloat16", "float32", "float64")
       for b in ("-(1 << 63), 1", "-1, 1", "0, 257", "70000, 70010", "0, 1 << 60", "3, 3")
       if (d, b) != ("bfloat16", "70000, 70010")),
     "t.empty(1).random_(1 << 30, None)", "t.empty(1, dtype=t.complex64).random_()",
     "t.randint(-1, 3, (2,), dtype=t.uint8)", "t.randint(0, 1 << 70, (2,))", "t.randint(3, 4)",
     "t.randint(2, (2,), dtype=t.complex64)", "t.empty(1, dtype=t.complex64).random_(2)",
     "t.randint(2.5, (2,))", "t.randint(high=1, size=(2,))", "t.randint(low=1, high=2, size=(2,))",
     "t.randint_like(t.ones(2, dtype=t.int8), 300)", "t.randperm(300, dtype=t.uint8)",
     "t.randperm(3000, dtype=t.float16)", "t.randperm(3, dtype=t.bool)",
     "t.normal(t.zeros(2), t.ones(3))", "t.normal(t.ones(2), t.zeros(2, dtype=t.complex64))",
     "t.empty(2).uniform_(-3e38, 3e38)", "t.empty(2, dtype=t.float16).uniform_(-1e5, 1)",
     "t.empty(2).uniform_(float('nan'), 1)", "t.empty(2, dtype=t.bool).geometric_(0.5)",
     "t.empty(2, dtype=t.int32).cauchy_()", "t.empty(2, dtype=t.int32).log_normal_()"],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_as_in_pytorch(call: str) -> None:
    for t in (torch, leafax):
        t.set_warn_always(True)
    try:
        assert said(call, leafax) == said(call, torch)
    finally:
        for t in (torch, leafax):
            t.set_warn_always(False)


def test_bounds_are_checked_also_once_they_have_become_inputs() -> None:
    for std in (1.0, 2.0, 3.0):
        leafax.normal(0.0, std, (2,))
        leafax.empty(2, dtype=leafax.uint8).random_(0, int(std))
    with pytest.raises(RuntimeError, match="normal expects std >= 0.0, but found std -1"):
        leafax.normal(0.0, -1.0, (2,))
    with pytest.raises(RuntimeError, match="to - 1 is out of bounds for unsigned char"):
        leafax.empty(2, dtype=leafax.uint8).random_(0, 300)


def test_a_generator_prints_what_it_is() -> None:
    g = leafax.Generator().manual_seed(7)
    assert repr(g) == "Generator(device='cpu', initial_seed=7)"
