"""PyTorch's `torch.cuda.random`: with a GPU, the one generator that all devices draw from.

Without a GPU nothing draws there, so that seeding changes nothing, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._core.jax_devices import list_gpus
from .._ops.creation.generator import get_rng_state as _get
from .._ops.creation.generator import initial_seed as _initial_seed
from .._ops.creation.generator import manual_seed as _manual_seed
from .._ops.creation.generator import seed as _seed
from .._ops.creation.generator import set_rng_state as _set
from ._devices import find_gpu, need_gpu

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of the generator.

    Raises:
      AssertionError: there is no GPU.
    """
    find_gpu(device)
    return _get()


def get_rng_state_all() -> list[Any]:
    """Return the state of the generator, once for each GPU."""
    return [_get() for _ in list_gpus()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the generator."""
    if list_gpus():
        find_gpu(device)
        _set(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the state of the generator to the first of the states."""
    for state in list(new_states)[:1]:
        set_rng_state(state)


def manual_seed(seed: int) -> None:
    """Seed the generator."""
    if list_gpus():
        _manual_seed(seed)


def seed() -> None:
    """Seed the generator by chance."""
    if list_gpus():
        _seed()


def initial_seed() -> int:
    """Return the seed of the generator.

    Raises:
      AssertionError: there is no GPU.
    """
    need_gpu()
    return _initial_seed()


manual_seed_all, seed_all = manual_seed, seed  # objects that older pickles name so
