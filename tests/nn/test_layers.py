"""Layers of images, sequences and features against PyTorch's sample database of modules."""

from __future__ import annotations

import pytest
from helpers.module_samples import ENTRIES, cases, check, check_error, error_cases

NAMES = [
    name
    for name, entry in ENTRIES.items()
    if entry.module_cls.__module__.rpartition(".")[2]
    in (
        "batchnorm", "channelshuffle", "conv", "dropout", "flatten", "fold", "instancenorm",
        "linear", "normalization", "padding", "pixelshuffle", "pooling", "upsampling",
    )
]  # fmt: skip


@pytest.mark.quick(1, each="name")
@pytest.mark.parametrize(("name", "dtype", "training", "number"), cases(NAMES))
def test_a_layer_computes_what_pytorchs_does(name, dtype, training, number):
    check(name, dtype, training, number)


@pytest.mark.parametrize(("name", "number"), error_cases(NAMES))
def test_a_layer_refuses_what_pytorchs_refuses(name, number):
    check_error(name, number)
