"""The interface between a running `vmap` and the layers below it, which cannot import `func`.

`func.vmap` records its function on the first example of each batch. While it does, `local.vmap`
is an object of this kind; outside of all `vmap`s it is None, so asking costs a look at a field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class VmapStack(Protocol):
    """Answer for all `vmap`s that run in a thread, the innermost last."""

    def observe(self, t: Any, reason: str) -> Any:
        """Return a tensor's array without cutting the program.

        Raises:
          RuntimeError: if the tensor differs from example to example.
        """

    def differs(self, *given: Any) -> bool:
        """Tell if a tensor among these differs from example to example."""

    def hides_grad(self, t: Any) -> bool:
        """Tell if PyTorch says of an example that it requires no grad, since its batch does."""

    def refuse(self, op: str, tensors: Sequence[Any]) -> None:
        """Raise PyTorch's error for an op if one of the tensors differs between examples."""

    def refuse_statistics(self, input: Any, buffers: Sequence[Any]) -> None:
        """Raise if running statistics are the same for all examples and `input` is not."""

    def refuse_random(self) -> None:
        """Raise for a random op if a running `vmap` allows none."""

    def refuse_random_out(self) -> None:
        """Raise for a random op that writes into `out=`."""

    def refuse_out(self, op: str, tensors: Sequence[Any]) -> None:
        """Raise for an op that writes into `out=` if one of the tensors differs."""

    def refuse_mask(self, mask: Any, target: Any) -> None:
        """Raise for an indexing mask that differs between examples.

        Args:
          target: the tensor that is written to, or None.
        """

    def refuse_write(self, op: Any, t: Any, others: Sequence[Any]) -> None:
        """Raise for a write of something that differs between examples into what does not.

        Args:
          others: the op's further arguments; indices come as one tuple.
        """

    def refuse_argument_write(self, t: Any) -> None:
        """Raise for a recorded write to an example of a leaf, or to a view of one."""

    def reword_error(
        self, op: Any, operands: Sequence[Any], call: Any, error: Exception
    ) -> Exception:
        """Return an error about one example's shapes in PyTorch's words for batches."""

    def print_batch(self, t: Any, plain: Callable[[Any], str]) -> str | None:
        """Return the text of the batch that `t` stands for; None if all examples share `t`."""

    def adopt(self, like: Any, made: Any) -> None:
        """Count a new tensor as one that differs between examples where `like` does."""

    def as_strided(self, t: Any, size: Any, stride: Any, storage_offset: int | None) -> Any:
        """Return `t.as_strided` as it is in the memory of the batch; None if `t` is no example."""

    def storage_offset(self, t: Any) -> int | None:
        """Return where an example begins in its batch; None if `t` is no view of one."""

    def new_empty_strided(self, t: Any, size: Any, stride: Any, named: dict[str, Any]) -> Any:
        """Return an example of a new batch with these strides; None if `t` is no example."""

    def loop(self, fn: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `fn` on one example after the other and stack its results."""
