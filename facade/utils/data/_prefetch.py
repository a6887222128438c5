"""Batches that are brought to a device before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from ..._core.dtypes import device as device_class
from ._utils._containers import map_leaves


class prefetch:  # noqa: N801 # used like a function
    """Iterate over batches of which the next ones are on their way to a device already.

    A copy to an accelerator begins at `Tensor.to` and blocks nobody, so a loop that reads no value
    needs this not: its `.to(device)` copies while the last step computes. A loop that reads the
    loss in each step waits for it, and the copy of the next batch begins only then.

    Args:
      batches: a `DataLoader`, or any iterable of tensors, of containers with tensors, or of objects
        with a method `to`.
      device: where tensors go.
      size: how many batches are brought before they are asked for.

    Raises:
      ValueError: `size` is not positive.

    >>> import leafax
    >>> loader = leafax.utils.data.DataLoader(range(4), batch_size=2)
    >>> [batch.tolist() for batch in leafax.utils.data.prefetch(loader, "cpu")]
    [[0, 1], [2, 3]]
    """

    def __init__(self, batches: Iterable[Any], device: Any, size: int = 2) -> None:
        if size < 1:
            raise ValueError(f"`size` must be positive, got {size}")
        self._batches, self._device, self._size = batches, device_class(device), size

    def __iter__(self) -> Iterator[Any]:
        ready: deque[Any] = deque()
        for batch in self._batches:
            ready.append(map_leaves(lambda x: x.to(self._device, non_blocking=True), batch, "to"))
            if len(ready) > self._size:
                yield ready.popleft()
        while ready:
            yield ready.popleft()

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]
