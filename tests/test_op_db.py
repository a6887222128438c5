"""Every op that PyTorch's sample database and leafax share, against torch.

Values, dtypes, shapes, `requires_grad` and gradients of functions, methods and in-place methods.
`op_db_samples.json` says which samples of which dtypes run here: `choose_samples.py` picks those
that reach different lines of the op table. `coverage_ops.py` runs them all.

`KNOWN` lists what does not agree and why; an entry that begins to pass must leave it.
"""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from op_runs import Case, batch
from op_samples import every_sample, variants

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

DTYPES = ("float64", "float32", "bfloat16", "int64", "complex64")
_OUTSIDE = ("jiterator", "_", "torch.", "sparse", "to_sparse", "hash_tensor")
# Entries of `torch.ops`, which carry a public-looking name here.
_TORCH_OPS = ("slice", "max_pool2d_with_indices_backward", "native_dropout_backward")
# name -> (why, dtypes); no dtypes: all that it has.
KNOWN: dict[str, tuple[str, tuple[str, ...]]] = {
    "chalf": ("JAX has no complex32", ()),
    "addbmm": ("in place, PyTorch resizes the output", ()),
    "as_strided_scatter": ("PyTorch's gradient of the input is that of the part written over", ()),
}
CHOSEN: dict[str, list[tuple[str, int]]] = json.loads(
    (Path(__file__).parent / "op_db_samples.json").read_text()
)


def key(entry: Any) -> str:
    """The entry's name with its variant."""
    return f"{entry.name}.{entry.variant_test_name}".rstrip(".")


def in_scope(dtype: torch.dtype | None = None) -> list[Any]:
    """The entries that leafax is to have, or those with this dtype."""
    return [
        e for e in op_db
        if not e.name.startswith(_OUTSIDE) and key(e) not in _TORCH_OPS
        and (dtype is None or dtype in e.supported_dtypes("cpu"))
    ]  # fmt: skip


def reason(name: str, dtype: str) -> str:
    """Why an entry is not expected to agree, or ""."""
    why, dtypes = KNOWN.get(name, ("", ()))
    return why if not dtypes or dtype in dtypes else ""


ENTRIES = {
    key(e): e
    for e in in_scope()
    if any(getattr(torch, d) in e.supported_dtypes("cpu") for d in DTYPES)
}


def test_lists_are_of_entries():
    assert set(KNOWN) <= set(ENTRIES)
    assert set(CHOSEN) == set(ENTRIES), "run tests/choose_samples.py"


def failures(name: str, chosen: list[tuple[str, int]]) -> list[str]:
    """What is wrong with these samples of an entry."""
    entry, bad = ENTRIES[name], []
    if not chosen:
        return []
    forms = list(variants(entry))
    if not forms:
        return ["missing"]
    cases = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for d in dict.fromkeys(d for d, _ in chosen):
            numbers = {n for kind, n in chosen if kind == d}
            dtype = getattr(torch, d)
            every = itertools.islice(every_sample(entry, dtype), max(numbers) + 1)
            cases += [Case(dtype, n, sample) for n, sample in enumerate(every) if n in numbers]
        for case, here in batch(entry, forms, cases, together=False):
            bad += [f"{case.dtype} {what}" for what in here]
    return bad


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_agrees_with_torch(name):
    bad = failures(name, [(d, n) for d, n in CHOSEN[name] if not reason(name, d)])
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


@pytest.mark.parametrize(("name", "dtype", "number"), ONCE)
def test_sample_agrees_by_now(name, dtype, number):
    bad = failures(name, [(dtype, number)])
    assert not bad, bad


@pytest.mark.parametrize("name", KNOWN)
def test_known_entry_still_differs(name):
    dtype = (KNOWN[name][1] or ("float64",))[0]
    assert failures(name, [(dtype, n) for n in range(4)]), f"{name} agrees: take it off KNOWN"
