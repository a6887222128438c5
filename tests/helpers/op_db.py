"""Entries of PyTorch's sample database that leafax is to have, and the samples that tests run.

`KNOWN` lists what does not agree and why; an entry that begins to pass must leave it.
"""

from __future__ import annotations

import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import torch

from helpers.op_runs import Case, Job, batch_jobs
from helpers.op_samples import every_sample, variants

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
    (Path(__file__).parents[1] / "ops" / "op_db_samples.json").read_text()
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


def failures(chosen: dict[str, list[tuple[str, int]]]) -> list[str]:
    """Run samples of entries, all as one program, and return what is wrong with them.

    Args:
      chosen: for each entry by name the dtypes and numbers of its samples.
    """
    jobs, bad = [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, samples in chosen.items():
            entry = ENTRIES[name]
            forms = list(variants(entry))
            if not forms:
                bad.append(f"{name} is missing")
            for d in dict.fromkeys(d for d, _ in samples):
                numbers = {n for kind, n in samples if kind == d}
                dtype = getattr(torch, d)
                every = itertools.islice(every_sample(entry, dtype), max(numbers) + 1)
                cases = [Case(dtype, n, s) for n, s in enumerate(every) if n in numbers]
                jobs += [Job(entry, forms, case) for case in cases]
        for job, here in batch_jobs(jobs, together=False):
            bad += [f"{key(job.entry)}, {job.case.dtype} {what}" for what in here]
    return bad
