"""PyTorch's `torch.utils.model_zoo`: older names of what `torch.hub` has."""

from importlib import import_module
from typing import Any

_NAMES = {"load_url": "load_state_dict_from_url", "tqdm": "tqdm"}


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'leafax.utils.model_zoo' has no attribute '{name}'")
    return getattr(import_module("leafax.hub"), _NAMES[name])  # which stands above this package
