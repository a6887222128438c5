"""The start of processes that compute together: `jax.distributed`, by the address of a script."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import jax
import jax.extend.backend
from jax._src import distributed, xla_bridge  # JAX has no public way to ask either

from ..jax_devices import forget_devices
from .errors import DistNetworkError, DistStoreError
from .group import ProcessGroup, default_group, is_initialized, world

_BEAT = 100  # seconds: JAX's own time after which a process that says nothing is dead
_LEAST_BEAT = 10
_LATE = (
    "init_process_group comes too late: JAX runs as a single process, and {} arrays lie on its "
    "devices. Call it before the first tensor is made, or the first model"
)


def make_default_group(
    backend: Any, init_method: str | None, world_size: int, rank: int, seconds: float
) -> None:
    """Make the default process group, and have JAX find the other processes.

    Args:
      backend: its name, None for any.
      init_method: `env://` (None too) for the environment's MASTER_ADDR and MASTER_PORT, or
        `tcp://host:port`. Where `jax.distributed.initialize` was called it is not needed.
      world_size: how many processes there are; below 0 as the environment says.
      rank: the number of this one; below 0 as the environment says.
      seconds: how long to wait for others.

    Raises:
      ValueError: it is there, or the environment says no size or number.
      RuntimeError: there are several processes, and JAX computes already.
      DistNetworkError: the other processes do not come.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    host, port = None, None
    if init_method is not None and init_method.startswith("tcp://"):
        url = urlsplit(init_method)
        host, port = url.hostname, url.port
        said = parse_qs(url.query)
        world_size = int(said["world_size"][0]) if "world_size" in said else world_size
        rank = int(said["rank"][0]) if "rank" in said else rank
        for name, value in (("rank", rank), ("world size", world_size)):
            if value < 0:
                raise ValueError(
                    "Error initializing torch.distributed using tcp:// rendezvous: "
                    f"{name} parameter missing"
                )
    found = jax.distributed.is_initialized()  # by the user, as on a slice of TPUs
    number = _given(rank, "RANK", jax.process_index if found else None)
    size = _given(world_size, "WORLD_SIZE", jax.process_count if found else None)
    if found:
        _check_numbers(size, number)
    elif size > 1:
        if init_method is not None and not init_method.startswith(("tcp://", "env://")):
            raise RuntimeError(f"No rendezvous handler for {init_method.partition(':')[0]}://")
        host = host or _text("MASTER_ADDR")
        port = port or int(_text("MASTER_PORT"))
        _join(f"{host}:{port}", size, number, seconds)
    world.default = ProcessGroup(
        _short(backend), tuple(range(size)), number if size > 1 else 0, seconds=seconds
    )


def _short(backend: Any) -> str:
    """Return a backend's name: `cpu:gloo,cuda:nccl` has the one of the last."""
    return str(backend or "gloo").lower().rpartition(":")[2]


def _join(address: str, size: int, number: int, seconds: float) -> None:
    """Tell JAX of the other processes; it must not hold arrays yet."""
    if xla_bridge.backends_are_initialized():  # by `cuda.is_available()`, as a rule
        if held := len(jax.live_arrays()):
            raise RuntimeError(_LATE.format(held))
        jax.extend.backend.clear_backends()
        forget_devices()
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    whole = max(1, int(min(seconds, 300)))
    try:
        jax.distributed.initialize(
            address,
            size,
            number,
            local_device_ids=own_device(),
            cluster_detection_method="deactivate",
            initialization_timeout=whole,
            heartbeat_timeout_seconds=max(_LEAST_BEAT, int(min(seconds, _BEAT))),
            shutdown_timeout_seconds=whole,
        )
    except jax.errors.JaxRuntimeError as error:
        raise DistNetworkError(
            f"the {size} processes did not meet at {address} within {whole} s: {error}"
        ) from error
    world.joined = True


def _check_numbers(size: int, number: int) -> None:
    """Raise if JAX knows the processes by other numbers."""
    if (jax.process_count(), jax.process_index()) != (size, number):
        raise RuntimeError(
            f"JAX runs as process {jax.process_index()} of {jax.process_count()}, and cannot "
            f"become process {number} of {size}"
        )


def own_device() -> list[int] | None:
    """Return the only GPU of a process that was started for one; None for all."""
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) > 1 and "LOCAL_RANK" in os.environ:
        return [int(os.environ["LOCAL_RANK"])]
    return None


def remove_default_group() -> None:
    """Leave the default process group, which must be there."""
    default_group()
    world.default = None
    world.made = 0
    if world.joined:
        world.joined = False
        jax.distributed.shutdown()


def store() -> Any:
    """Return what JAX's processes tell each other names and values by.

    Raises:
      DistStoreError: there is one process.
    """
    client = distributed.global_state.client
    if client is None:
        raise DistStoreError("there is no other process")
    return client


def _given(value: int, name: str, otherwise: Callable[[], int] | None) -> int:
    """Return a number that was given, or that the environment has, or that a function tells."""
    if value >= 0:
        return value
    if name not in os.environ and otherwise is not None:
        return otherwise()
    return int(_text(name))


def _text(name: str) -> str:
    if name not in os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment variable "
            f"{name} expected, but not set"
        )
    return os.environ[name]
