"""Every op that PyTorch's sample database and leafax share, against torch.

Values, dtypes, shapes, `requires_grad` and gradients of functions, methods and in-place methods.
`op_db_samples.json` says which samples of which dtypes run here: `choose_samples.py` picks those
that reach different lines of the op table; the quick suite runs one or two of each entry.
`coverage_ops.py` runs all that PyTorch has.
"""

import pytest
from helpers.op_db import CHOSEN, ENTRIES, KNOWN, failures, reason

TOGETHER = 16  # entries whose samples one program computes


def test_lists_are_of_entries():
    assert set(KNOWN) <= set(ENTRIES)
    assert set(CHOSEN) == set(ENTRIES), "run tests/choose_samples.py"


def known_to_agree(name: str) -> list[tuple[str, int]]:
    """Return the dtypes and numbers of an entry's samples that are expected to agree."""
    return [(dtype, n) for dtype, n in CHOSEN[name] if not reason(name, dtype)]


def one_or_two(place: int, name: str) -> list[tuple[str, int]]:
    """Return the first sample of an entry; of each third, one of another dtype as well."""
    first = {dtype: (dtype, n) for dtype, n in reversed(known_to_agree(name))}
    samples = list(first.values())[::-1]
    others = samples[1:]
    return samples[:1] + ([others[place % len(others)]] if others and place % 3 == 0 else [])


@pytest.mark.parametrize("start", range(0, len(ENTRIES), TOGETHER))
def test_one_or_two_samples_of_some_entries_agree_with_torch(start):
    names = enumerate(list(ENTRIES)[start : start + TOGETHER])
    wanted = {name: one_or_two(place, name) for place, name in names}
    bad = failures({name: samples for name, samples in wanted.items() if samples})
    assert not bad, bad


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [*filter(known_to_agree, ENTRIES)])
def test_entry_agrees_with_torch(name):
    bad = failures({name: known_to_agree(name)})
    assert not bad, bad


# Samples that differed once; the chosen ones do not reach what was wrong.
ONCE = (
    ("tensordot", "float64", 2), ("unique_consecutive", "float64", 252),
    ("nn.functional.fractional_max_pool3d", "float64", 42),
    ("nn.functional.ctc_loss", "float64", 1), ("linalg.lstsq.grad_oriented", "float64", 2),
    ("masked.var", "bfloat16", 1), ("masked.std", "float32", 13), ("searchsorted", "int64", 128),
    ("linalg.eigh", "float64", 0), ("linspace", "int64", 32), ("logspace", "int64", 50),
    ("linspace.tensor_overload", "int64", 160), ("special.zeta", "int64", 4),
    ("unravel_index", "int64", 10), ("histogramdd", "float32", 41), ("mode", "int64", 6),
    ("logcumsumexp", "complex64", 1), ("ldexp", "bfloat16", 6), ("masked_select", "bfloat16", 6),
    ("nn.functional.batch_norm", "float64", 3),
    ("nn.functional.conv_transpose2d", "bfloat16", 2), ("sort", "bfloat16", 0),
)  # fmt: skip


@pytest.mark.quick(8)
@pytest.mark.parametrize(("name", "dtype", "number"), ONCE)
def test_sample_agrees_by_now(name, dtype, number):
    bad = failures({name: [(dtype, number)]})
    assert not bad, bad


@pytest.mark.parametrize("name", KNOWN)
def test_known_entry_still_differs(name):
    dtype = (KNOWN[name][1] or ("float64",))[0]
    assert failures({name: [(dtype, n) for n in range(4)]}), f"{name} agrees: take it off KNOWN"
