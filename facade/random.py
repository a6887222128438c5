"""`torch.random`: the default generators."""

from typing import Any

from ._core.handle import Handle
from ._ops.creation.generator import Generator, default_of, list_defaults
from ._ops.creation.generator import default_generator as default_generator
from ._ops.creation.generator import fork_rng as fork_rng
from ._ops.creation.generator import get_rng_state as get_rng_state
from ._ops.creation.generator import initial_seed as initial_seed
from ._ops.creation.generator import manual_seed as manual_seed
from ._ops.creation.generator import seed as seed
from ._ops.creation.generator import set_rng_state as set_rng_state


def thread_safe_generator() -> Generator | None:
    """Return the generator of a data loader's thread; None, for the default one, elsewhere."""
    return None


def generator_of(t: Any) -> Generator:
    """Return the default generator that random ops on a tensor draw from.

    Args:
      t: a tensor of any shape and dtype, or None for data that are on no device in particular.

    Returns:
      The generator of the device that `t` is committed to, of a mesh that of its first device. For
      what is committed to none, `default_generator`, or that of the device that
      `set_default_device` named.

    Raises:
      TypeError: `t` is no tensor.

    >>> import leafax
    >>> leafax.random.generator_of(leafax.zeros(2)) is leafax.default_generator
    True
    """
    if t is not None and not isinstance(t, Handle):
        raise TypeError(f"generator_of takes a tensor or None, and not {type(t).__name__}")
    return default_of(None if t is None else t._v.device)


def generators_by_device() -> dict[str, Generator]:
    """Return the default generators of all devices of this process.

    Returns:
      By the name of the device, the CPU's first: what a checkpoint has to keep.

    Raises:
      RuntimeError: JAX cannot start.

    >>> import leafax
    >>> leafax.random.generators_by_device()["cpu"] is leafax.default_generator
    True
    """
    return {str(g.device): g for g in list_defaults() if g.device.type != "meta"}
