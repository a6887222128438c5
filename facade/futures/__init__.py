"""PyTorch's `torch.futures`: results that come later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result, or an error, that is set once and may be waited for.

    Args:
      devices: accepted for PyTorch's sake: JAX orders what runs.
    """

    def __init__(self, *, devices: list[Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._done = False
        self._result: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Tell whether the result or an error is there."""
        return self._done

    def wait(self) -> T:
        """Wait for the result and return it, or raise the error."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        return self.value()

    def value(self) -> T:
        """Return the result, which must be there, or raise the error."""
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[no-any-return]

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Call a function with this future once it is done; its result is another future's."""
        made = Future[S]()

        def follow(future: Future[T]) -> None:
            try:
                made.set_result(callback(future))
            except Exception as error:
                made.set_exception(error)

        self.add_done_callback(follow)
        return made

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Call a function with this future once it is done, now if it is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: T) -> None:
        """Set the result and call those who wait for it."""
        self._complete(result, None)

    def set_exception(self, result: Any) -> None:
        """Set an error, which `wait` and `value` raise."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._result, self._error, self._done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Return a future of the list of futures, done when all of them are."""
    made = Future[list[Future[Any]]]()
    lock, left = threading.Lock(), [len(futures)]

    def count(_: Future[Any]) -> None:
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            made.set_result(futures)

    if not futures:
        made.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return made


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Wait for all futures and return their results; the first error is raised."""
    return [future.wait() for future in collect_all(futures).wait()]
