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

SAMPLES, SAMPLES_KNOWN = 1, 3  # `coverage_ops.py` takes more of each
OUT_OF_SCOPE = ("jiterator", "_", "torch.", "sparse", "to_sparse", "hash_tensor")

_WHY = {
    "not there yet": (
        "stft geqrf ormqr svd_lowrank pca_lowrank histogramdd nn.functional.linear_cross_entropy "
        "nn.functional.linear_cross_entropy.chunked "
        "nn.functional.linear_cross_entropy.chunked_none nn.functional.fractional_max_pool2d "
        "nn.functional.fractional_max_pool3d linalg.ldl_factor linalg.ldl_factor_ex "
        "linalg.ldl_solve special.erfcx special.airy_ai special.bessel_y0 special.bessel_y1 "
        "special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0 "
        "special.scaled_modified_bessel_k1"
    ),
    "PyTorch's name for a kernel, which users do not call": (
        "native_group_norm native_layer_norm native_batch_norm max_pool2d_with_indices_backward "
        "native_dropout_backward grid_sampler_2d grid_sampler_3d slice"
    ),
    "JAX arrays have neither strides nor complex32": "empty_strided empty_permuted chalf",
    "the sample holds a module of torch's": "nn.functional.triplet_margin_with_distance_loss",
    "in place, PyTorch resizes the output": "addbmm",
    "PyTorch's gradient of an overwritten 0-dim part is 1, ours 0": "as_strided_scatter",
    "never differentiable, which PyTorch says at backward": "nextafter",
    "PyTorch reads one triangle, JAX the mean of both": "linalg.pinv.hermitian",
    "differs by 2e-7": "special.bessel_j0",
    "PyTorch returns the input's dtype for 0-dim tensors": "masked.argmax masked.argmin",
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
    wrong = check(entry, torch.float64, SAMPLES_KNOWN if key(entry) in KNOWN else SAMPLES)
    if key(entry) in KNOWN:
        assert wrong, f"{key(entry)} agrees now: take it off KNOWN"
        pytest.skip(f"{KNOWN[key(entry)]}: {wrong}")
    assert not wrong, wrong
