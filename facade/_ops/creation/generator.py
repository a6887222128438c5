"""The default generators, one for each device, and what PyTorch does with them.

What is committed to a device draws from that device's, on a mesh from that of its first. Data that
were made on no device draw from the CPU's, wherever JAX puts them, as a PyTorch program's do that
names no device; after `set_default_device` from that device's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

from ..._core.dtypes import device as device_class
from ..._core.jax_devices import chosen, has_several, jax_device, name_of, places
from .generator_class import DEFAULT_SEED as DEFAULT_SEED
from .generator_class import Generator as Generator
from .generator_class import _restored as _restored  # as older pickles name it
from .to import as_device

default_generator = Generator()
default_generator.is_default = True


class _Defaults:
    """The default generators that were asked for.

    Attributes:
      by_name: of devices, as `name_of` returns them.
      seed: with which those begin that are asked for later.
    """

    def __init__(self) -> None:
        self.by_name: dict[tuple[str, int | None], Generator] = {("cpu", None): default_generator}
        self.seed = DEFAULT_SEED


_defaults = _Defaults()


def default_of(where: Any) -> Generator:
    """Return the default generator that a tensor draws from.

    Args:
      where: the device of JAX that it is committed to, `META`, a tuple for a mesh, or None.
    """
    if where is None:
        where = places.asked
        if where is None:
            return default_generator
    name = name_of(where)
    found = _defaults.by_name.get(name)
    if found is None:
        made = Generator()
        made.device, made.is_default = device_class(*name), True
        made.manual_seed(_defaults.seed)
        found = _defaults.by_name.setdefault(name, made)
    return found


def list_defaults() -> list[Generator]:
    """List the default generators that anything may draw from, the CPU's first."""
    for where in jax.local_devices() if has_several() else ():
        default_of(where)
    return [*_defaults.by_name.values()]


def key(generator: Generator | None = None, where: Any = None) -> Any:
    """Record the key of a random op.

    Args:
      generator: that the user gave.
      where: the device of JAX, or mesh, that the op's operands are committed to.
    """
    return (default_of(where) if generator is None else generator).key()


def generator_of_new(device: Any) -> Generator:
    """Return the default generator of a new tensor that is asked for on a device, or on none."""
    if device is None:
        device = chosen.where
    return default_of(None if device is None else jax_device(as_device(device)))


def key_of_new(generator: Generator | None, device: Any) -> Any:
    """Record the key of a new tensor that is asked for on a PyTorch device, or on none."""
    return (generator_of_new(device) if generator is None else generator).key()


# ------------------------------------------------------------ places in the sequences


def all_places() -> Any:
    """Return where the default generators are, for `all_go_back`; no value is read."""
    return _defaults.seed, [(g, g.place()) for g in _defaults.by_name.values()]


def all_go_back(places_then: Any) -> None:
    """Make the default generators go on from where they were."""
    seed, found = places_then
    known = {id(g) for g, _ in found}
    for later in _defaults.by_name.values():
        if id(later) not in known:  # it had given nothing
            later.manual_seed(seed)
    for generator, place in found:
        generator.go_back(place)
    _defaults.seed = seed


# ------------------------------------------------------------ PyTorch's functions


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices and return the CPU's."""
    default_generator.manual_seed(int(seed))
    _defaults.seed = int(seed)
    for generator in [*_defaults.by_name.values()]:
        generator.manual_seed(int(seed))
    return default_generator


def seed() -> int:
    """Give the default generators of all devices a seed that nobody has seen."""
    found = default_generator.seed()
    manual_seed(found)
    return found


def initial_seed() -> int:
    """Return the seed of the CPU's default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the state of the CPU's default generator."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Make the CPU's default generator go on from `state`."""
    default_generator.set_state(state)


@contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, _caller: str = "fork_rng",
    _devices_kw: str = "devices", device_type: str | None = None,
) -> Iterator[None]:  # fmt: skip
    """Leave the default generators as they were before the block.

    Args:
      devices: those whose generators are left beside the CPU's, by number or name; all by default.
      enabled: False does nothing.
      device_type: of devices that are given by their numbers; by default JAX's accelerator, else
        "cuda". With "meta" the block does nothing.
    """
    if not enabled or device_type == "meta":
        yield
        return
    before: Any
    if devices is None:
        before = all_places()
    else:
        kind = device_type or ("tpu" if jax.default_backend() == "tpu" else "cuda")
        wanted = [device_class(kind, d) if isinstance(d, int) else as_device(d) for d in devices]
        forked = {default_generator, *[default_of(jax_device(d)) for d in wanted]}
        before = [(g, g.place()) for g in forked]
    try:
        yield
    finally:
        if devices is None:
            all_go_back(before)
        else:
            for generator, place in before:
                generator.go_back(place)
