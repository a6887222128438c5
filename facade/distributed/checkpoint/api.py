"""PyTorch's `torch.distributed.checkpoint.api`: the error of failed loads and saves."""

from __future__ import annotations

import traceback
from typing import Any


class CheckpointException(BaseException):
    """A checkpoint could not be saved or loaded.

    Attributes:
      failures: by rank, the exception and where it was raised.
    """

    def __init__(self, msg: str, failures: dict[int, tuple[BaseException, Any]]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict[int, tuple[BaseException, Any]]:
        """By rank, the exception and where it was raised."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(trace)) if trace is not None else ""
            text += "".join(traceback.format_exception_only(type(error), value=error))
        return text
