"""Where layers are found: pickles and packages name PyTorch's files."""

from __future__ import annotations

import importlib
import pickle
from typing import Any

import torch

import leafax

NAMES = sorted(
    name for name, found in vars(torch.nn).items()
    if isinstance(found, type) and found.__module__.startswith("torch.nn.modules.")
)  # fmt: skip


def test_layers_stand_where_pytorch_has_them() -> None:
    assert len(NAMES) > 140
    for name in NAMES:
        theirs: Any = getattr(torch.nn, name)
        ours: Any = getattr(leafax.nn, name)
        assert ours.__module__ == theirs.__module__.replace("torch.", "leafax.", 1), name
        assert getattr(importlib.import_module(ours.__module__), name) is ours


def test_a_pickled_class_names_pytorchs_file() -> None:
    assert b"leafax.nn.modules.activation" in pickle.dumps(leafax.nn.ReLU, protocol=0)
    assert pickle.loads(pickle.dumps(leafax.nn.ReLU())).__class__ is leafax.nn.ReLU
