"""`DistributedSampler`: the part of a dataset that one of several processes loads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

from ..._core.processes.group import default_group
from ..._ops.creation.generator import Generator
from .dataset import Dataset
from .sampler import Sampler

__all__ = ["DistributedSampler"]

_T_co = TypeVar("_T_co", covariant=True)


class DistributedSampler(Sampler[_T_co]):
    """Every so many-th key, each process beginning with another one.

    Call `set_epoch` before each epoch, so that the order is another one, and the same in all
    processes.

    Args:
      num_replicas: how many processes there are; by default those of the process group.
      rank: which one this is.
      drop_last: leave the last keys out where they do not go round; else the first come again.
    """

    def __init__(
        self,
        dataset: Dataset[_T_co],
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None:
            num_replicas = default_group().size()
        if rank is None:
            rank = default_group().rank()
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        size = self._size()
        if self.drop_last and size % self.num_replicas != 0:
            self.num_samples = math.ceil((size - self.num_replicas) / self.num_replicas)
        else:
            self.num_samples = math.ceil(size / self.num_replicas)
        self.total_size = self.num_samples * self.num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def _size(self) -> int:
        return len(self.dataset)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[_T_co]:
        indices = list(range(self._size()))
        if self.shuffle:
            draw = Generator().manual_seed(self.seed + self.epoch)._for_numpy()
            indices = draw.permutation(len(indices)).tolist()
        rounds = -(-self.total_size // max(len(indices), 1))  # the first keys come again
        mine = (indices * rounds)[self.rank : self.total_size : self.num_replicas]
        return iter(mine)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that the next order is drawn for."""
        self.epoch = epoch
