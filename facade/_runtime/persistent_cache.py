"""JAX's persistent cache of compiled programs, for processes that come after this one."""

from __future__ import annotations

import os
import threading
from importlib import import_module

import jax
from jax import monitoring

_HIT = "/jax/compilation_cache/cache_hits"
_read: set[int] = set()  # threads whose last compilation was read from the cache


def cache(
    folder: str | os.PathLike[str] | None, *, max_bytes: int | None = None,
    min_seconds: float = 0.0,
) -> None:  # fmt: skip
    """Keep compiled programs in a folder: a later process reads them and compiles nothing.

    Programs are found again by what XLA is given, so a changed model, shape or version of JAX
    compiles anew and takes its own entries. `leafax.explain()` says how many programs were read.

    Args:
      folder: the folder, also of Google Cloud Storage (`gs://...`); it is made where it is
        missing. None keeps nothing any more.
      max_bytes: the most that the folder may take: what was not used for long is removed. None
        for any size.
      min_seconds: keep only what took XLA as long.

    Raises:
      ValueError: `max_bytes` or `min_seconds` is negative.

    >>> import jax, leafax, tempfile
    >>> before = jax.config.jax_compilation_cache_dir
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     leafax.cache(folder)
    ...     leafax.cache(before)
    """
    if max_bytes is not None and max_bytes < 0:
        raise ValueError(f"`max_bytes` must not be negative, got {max_bytes}")
    if min_seconds < 0:
        raise ValueError(f"`min_seconds` must not be negative, got {min_seconds}")
    place = None if folder is None else os.fspath(folder)
    if place is not None and "://" not in place:
        place = os.path.abspath(os.path.expanduser(place))
        os.makedirs(place, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", place)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", min_seconds)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    jax.config.update("jax_compilation_cache_max_size", -1 if max_bytes is None else max_bytes)
    # To import it takes longer than most of leafax.
    found = import_module("jax.experimental.compilation_cache.compilation_cache")
    found.reset_cache()  # JAX looks for the folder once, at the first compilation


def was_read() -> bool:
    """Return whether this thread's last compilation was read from the cache, once."""
    thread = threading.get_ident()
    if thread in _read:
        _read.discard(thread)
        return True
    return False


def _note(event: str, **facts: object) -> None:
    if event == _HIT:
        _read.add(threading.get_ident())


monitoring.register_event_listener(_note)
