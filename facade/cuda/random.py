"""PyTorch's `torch.cuda.random`: the default generators of the GPUs.

Without a GPU nothing draws there, so that seeding changes nothing, as in PyTorch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._core.jax_devices import list_gpus
from .._ops.creation.generator import default_of
from ._devices import find_gpu

__all__ = [
    "get_rng_state", "get_rng_state_all", "initial_seed", "manual_seed", "manual_seed_all", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all",
]  # fmt: skip


def get_rng_state(device: Any = "cuda") -> Any:
    """Return the state of a GPU's generator, by default of the current one's.

    Raises:
      AssertionError: there is no GPU.
    """
    return default_of(find_gpu(device)).get_state()


def get_rng_state_all() -> list[Any]:
    """Return the state of each GPU's generator."""
    return [default_of(gpu).get_state() for gpu in list_gpus()]


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of a GPU's generator, by default of the current one's."""
    if list_gpus():
        default_of(find_gpu(device)).set_state(new_state)


def set_rng_state_all(new_states: Iterable[Any]) -> None:
    """Set the states of all GPUs' generators, in their order."""
    for number, state in enumerate(new_states):
        set_rng_state(state, number)


def manual_seed(seed: int) -> None:
    """Seed the generator of the current GPU."""
    if list_gpus():
        default_of(find_gpu()).manual_seed(int(seed))


def manual_seed_all(seed: int) -> None:
    """Seed the generators of all GPUs."""
    for gpu in list_gpus():
        default_of(gpu).manual_seed(int(seed))


def seed() -> None:
    """Seed the generator of the current GPU by chance."""
    if list_gpus():
        default_of(find_gpu()).seed()


def seed_all() -> None:
    """Seed the generators of all GPUs by one chance."""
    gpus = list_gpus()
    if gpus:
        manual_seed_all(default_of(gpus[0]).seed())


def initial_seed() -> int:
    """Return the seed of the current GPU's generator.

    Raises:
      AssertionError: there is no GPU.
    """
    return default_of(find_gpu()).initial_seed()
