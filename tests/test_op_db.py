"""Every op that PyTorch's sample database and leafax share, against torch.

Values, dtypes, shapes, `requires_grad` and gradients of functions, methods and in-place methods.
`KNOWN` lists what does not agree yet and why; an entry that begins to pass must leave it.
"""

from __future__ import annotations

import warnings

import pytest
import torch
from op_samples import check

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal.common_methods_invocations import op_db

SAMPLES = 3
OUT_OF_SCOPE = ("jiterator", "_", "torch.", "sparse", "to_sparse", "hash_tensor")

_WHY = {
    "not there yet": (
        "stft geqrf gradient lu nn.functional.linear_cross_entropy "
        "nn.functional.linear_cross_entropy.chunked "
        "nn.functional.linear_cross_entropy.chunked_none"
    ),
}
KNOWN = {name: why for why, names in _WHY.items() for name in names.split()}


def key(entry) -> str:
    """The entry's name with its variant."""
    return f"{entry.name}.{entry.variant_test_name}".rstrip(".")


ENTRIES = [
    e for e in op_db
    if not e.name.startswith(OUT_OF_SCOPE) and torch.float64 in e.supported_dtypes("cpu")
]  # fmt: skip


def test_known_entries_exist():
    assert set(KNOWN) <= {key(e) for e in ENTRIES}


@pytest.mark.parametrize("entry", ENTRIES, ids=key)
def test_entry_agrees_with_torch(entry):
    wrong = check(entry, torch.float64, SAMPLES)
    if key(entry) in KNOWN:
        assert wrong, f"{key(entry)} agrees now: take it off KNOWN"
        pytest.skip(f"{KNOWN[key(entry)]}: {wrong}")
    assert not wrong, wrong
