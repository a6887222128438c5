"""leafax refuses `op_db`'s error inputs with the same class and words as PyTorch.

`LEFT` counts the error inputs of an entry where that is not so yet; it must be exact.
"""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest
import torch
from helpers.op_db import in_scope, key
from helpers.op_samples import DROPPED, _ours, flat, lookup, to_leafax, to_torch

import leafax

LEFT = {
    "masked_fill": 1, "nn.functional.max_pool3d": 1, "narrow_copy": 2,
}  # fmt: skip


def complaint(f: Any, args: Any, kwargs: Any) -> tuple[type | None, str]:
    """The class and words of what a call raises, at the latest when its result is looked at."""
    try:
        made = [x for x in flat(f(*args, **kwargs)) if isinstance(x, leafax.Tensor)]
        leafax.synchronize()
        for x in made:
            x.detach().tolist()
    except Exception as error:
        with contextlib.suppress(Exception):
            leafax.synchronize()  # what else is wrong with the data is not the next call's
        return type(error), str(error)
    return None, ""


def differences(entry: Any) -> list[str]:
    """The error inputs that leafax takes, or refuses in other words."""
    found = []
    torch.manual_seed(0)
    for error in entry.error_inputs("cpu"):
        sample = error.sample_input
        whole = (sample.input, *sample.args)
        try:
            args, kwargs = to_leafax(whole, []), to_leafax(sample.kwargs, [])
        except (NotImplementedError, ValueError):
            continue  # meta tensors, and more dims than arrays can have
        if sample.kwargs.get("layout") not in (None, torch.strided):
            continue  # there are no sparse tensors to ask for
        kept = {k: v for k, v in kwargs.items() if k not in DROPPED or isinstance(v, str)}
        ours = _ours(entry) or lookup(entry.name) or getattr(leafax.Tensor, entry.name)
        want = complaint(entry.op, to_torch(whole, []), to_torch(sample.kwargs, []))
        have = complaint(ours, args, kept)
        if want != have:
            found.append(f"{have} instead of {want}")
    return found


ENTRIES = {key(e): e for e in in_scope() if e.error_inputs_func is not None}


@pytest.mark.parametrize("name", ENTRIES)
def test_error_inputs_are_refused_alike(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differences(ENTRIES[name])
    assert len(found) == LEFT.get(name, 0), found
