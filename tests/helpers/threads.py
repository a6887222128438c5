"""Calls from several threads that begin together."""

from __future__ import annotations

import threading
from typing import Any


def in_threads(n: int, fn: Any) -> list[Any]:
    """Return the results of `fn(0)` ... `fn(n - 1)`, each called in a thread of its own; the first
    of their errors is raised."""
    results: list[Any] = [None] * n
    errors: list[BaseException] = []
    start = threading.Barrier(n)

    def work(k: int) -> None:
        start.wait()
        try:
            results[k] = fn(k)
        except BaseException as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(n)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
    return results
