"""Reductions over processes, which are the first dimension of a global array."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from .errors import DistBackendError

#: By PyTorch's names.
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "SUM": lambda x: jnp.sum(x, 0, dtype=x.dtype),
    "AVG": lambda x: jnp.mean(x, 0).astype(x.dtype),
    "PRODUCT": lambda x: jnp.prod(x, 0, dtype=x.dtype),
    "MIN": lambda x: jnp.min(x, 0),
    "MAX": lambda x: jnp.max(x, 0),
    "BAND": lambda x: jnp.bitwise_and.reduce(x, axis=0),
    "BOR": lambda x: jnp.bitwise_or.reduce(x, axis=0),
    "BXOR": lambda x: jnp.bitwise_xor.reduce(x, axis=0),
}
_NETWORK = re.compile("Gloo|NCCL|UNAVAILABLE")  # JAX raises errors of two kinds for these


def check_reduction(op: str, what: str) -> None:
    """Raise if there is no such reduction.

    Args:
      what: the collective's name, for errors.

    Raises:
      ValueError: there is none.
    """
    if op not in REDUCTIONS:
        raise ValueError(f"{what}: leafax has no ReduceOp.{op} over processes")


def finished(results: Any) -> Any:
    """Return what a collective gave, on a CPU when it is there.

    A process that is gone is told of there, and Gloo confuses collectives that run at once.
    """
    if jax.tree.leaves(results)[0].sharding.mesh.devices.flat[0].platform == "cpu":
        jax.block_until_ready(results)
    return results


@contextlib.contextmanager
def network_errors(what: str, processes: int) -> Iterator[None]:
    """Raise PyTorch's error, within a block, for a process that is gone."""
    try:
        yield
    except (jax.errors.JaxRuntimeError, ValueError) as error:
        if isinstance(error, ValueError) and not _NETWORK.search(str(error)):
            raise
        raise DistBackendError(
            f"{what} over {processes} processes failed, as it does when one of them is gone: "
            f"{error}"
        ) from error
