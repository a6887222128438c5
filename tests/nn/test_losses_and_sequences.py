"""Activations, losses, tables, attention and recurrent layers against PyTorch's sample database."""

from __future__ import annotations

import warnings

import pytest
import torch
from helpers.module_samples import ENTRIES, cases, check, check_error, error_cases

import leafax

FILES = ("activation", "distance", "loss", "rnn", "sparse", "transformer")
NAMES = [n for n, e in ENTRIES.items() if e.module_cls.__module__.rpartition(".")[2] in FILES]


@pytest.mark.quick(1, each="name")
@pytest.mark.parametrize(("name", "dtype", "training", "number"), cases(NAMES))
def test_a_layer_computes_what_pytorchs_does(name, dtype, training, number):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(name, dtype, training, number)


@pytest.mark.parametrize(("name", "number"), error_cases(NAMES))
def test_a_layer_refuses_what_pytorchs_refuses(name, number):
    check_error(name, number)


def test_all_of_pytorchs_layers_are_there():
    for file in (*FILES, "adaptive"):
        names = getattr(torch.nn.modules, file).__all__
        assert getattr(leafax.nn.modules, file).__all__ == names
        assert all(hasattr(leafax.nn, name) for name in names)
