"""PyTorch's devices, and those of JAX that they stand for."""

from __future__ import annotations

import builtins
import functools
import threading
from contextlib import nullcontext
from typing import Any

import jax
import numpy as np

from leafax.functional.program.meta import META
from leafax.functional.program.number_fits import need_int64

_BACKENDS = {"cuda": ("gpu", "cuda", "rocm"), "cpu": ("cpu",), "tpu": ("tpu",)}
_PLATFORMS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "cuda", "tpu": "tpu"}


class _Chosen(threading.local):
    """Devices that a thread has chosen.

    Attributes:
      where: on which it makes tensors that are asked for nowhere; None is JAX's.
      gpu: number of the one that "cuda" stands for.
    """

    where: Any = None
    gpu = 0


chosen = _Chosen()


def jax_device(where: Any) -> Any:
    """Return the JAX device behind a PyTorch device.

    Args:
      where: a `torch.device`; without a number, the first of its type.

    Returns:
      A device of JAX, or `META`.

    Raises:
      RuntimeError: JAX has no such device in this process.
    """
    if where.type == "meta":
        places.matter = places.meta = True
        return META
    index = where.index
    if index is None:
        index = chosen.gpu if where.type == "cuda" else 0
    for backend in _BACKENDS.get(where.type, (where.type,)):
        try:
            found = jax.local_devices(backend=backend)
        except RuntimeError:
            continue
        if index < len(found):
            return found[index]
        for gpu in found if where.type == "cuda" else ():
            if gpu.local_hardware_id == index:  # the only one of a process that was started for it
                return gpu
    raise RuntimeError(f"no device of type {where} is available to JAX on this machine")


def forget_devices() -> None:
    """Forget the devices of JAX, which are to be made anew, and which of them was chosen."""
    has_several.cache_clear()
    _name.cache_clear()
    chosen.gpu, places.asked = 0, None
    if not isinstance(jax.config.jax_default_device, (str, type(None))):  # type: ignore[attr-defined]
        jax.config.update("jax_default_device", None)


def list_gpus() -> list[Any]:
    """List the GPUs that JAX has in this process."""
    for backend in ("cuda", "rocm"):
        try:
            return list(jax.local_devices(backend=backend))
        except RuntimeError:
            continue
    return []


class _Places:
    """Facts that spare the recorder to ask where arrays are.

    Attributes:
      matter: arrays may be committed to a device, as far as one knows.
      meta: there are tensors on the device `meta`.
      asked: the device of JAX that `set_default_device` named; None is JAX's own choice.
    """

    matter = True
    meta = False
    asked: Any = None


places = _Places()


@functools.cache
def has_several() -> bool:
    """Return True if JAX has more than one device, so that it matters where an array is."""
    return jax.device_count() > 1 or jax.local_devices()[0].platform != "cpu"


def committed_to(array: Any) -> Any:
    """Return the device that an array was put on, which it may not leave by itself.

    Args:
      array: of JAX, of NumPy or without data.

    Returns:
      A device of JAX or `META`; a tuple of devices for an array that is spread over them; None for
      an array that goes where others are.
    """
    if type(array) is np.ndarray:
        return None
    places.matter = has_several() or places.meta
    if not getattr(array, "committed", False):
        return None
    devices = array.devices()
    if len(devices) == 1:
        (found,) = devices
        return found if found is META or has_several() else None
    return tuple(sorted(devices, key=lambda d: d.id))


def name_of(found: Any) -> tuple[str, int | None]:
    """Return PyTorch's type and number of a device of JAX (the first of several).

    Devices of type `cpu` have a number from the second on, which only a process with simulated
    devices has.
    """
    while isinstance(found, tuple):
        found = found[0]
    return _name(found)


@functools.cache
def _name(found: Any) -> tuple[str, int | None]:
    kind = _PLATFORMS.get(found.platform, found.platform)
    if found is META:
        return kind, None
    local = jax.local_devices(backend=found.platform)
    number = local.index(found) if found in local else found.id
    return kind, None if kind == "cpu" and number == 0 else number


# What PyTorch has names for; that JAX has such a device is asked when a tensor is to move there.
_DEVICES = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


def _check_index(index: Any) -> None:
    if not isinstance(index, builtins.int) or isinstance(index, builtins.bool):
        raise TypeError(
            f"device(): argument 'index' (position 2) must be int, not {type(index).__name__}"
        )
    need_int64(index)
    if index < 0:
        raise RuntimeError("Device index must not be negative")


def _accelerator(index: Any) -> str:
    """Return the type of a device that is given by its number alone."""
    _check_index(index)
    found = jax.default_backend()
    if found == "cpu":
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return "cuda" if found == "gpu" else found


class device:
    """Where a tensor lives: `device("cpu")`, `device("cuda", 0)`.

    The types are JAX's platforms under PyTorch's names: `cuda` is any GPU backend of JAX.
    """

    __slots__ = ("type", "index")
    type: Any
    index: Any

    def __init__(self, type: Any = "cpu", index: Any = None) -> None:
        given = type
        if isinstance(type, device):
            type, index = type.type, type.index
        if isinstance(type, (builtins.float, builtins.bool)) and index is None:
            raise TypeError(
                "device() received an invalid combination of arguments - got "
                f"({type.__class__.__name__}), but expected one of:\n * (torch.device device)\n"
                "      didn't match because some of the arguments have invalid types: "
                f"(!{type.__class__.__name__}!)\n * (str type, int index = -1)\n"
            )
        if isinstance(type, builtins.int) and index is None:
            type, index = _accelerator(type), type
        if index is not None:
            _check_index(index)
        if not isinstance(type, str):
            raise TypeError(
                f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}"
            )
        if not type:
            raise RuntimeError("Device string must not be empty")
        if ":" in type:
            type, _, number = type.partition(":")
            if index is not None:
                raise RuntimeError(
                    "type (string) must not include an index because index was passed explicitly: "
                    f"{given}"
                )
            if not number.isdecimal() or number != str(builtins.int(number)):
                raise RuntimeError(f"Invalid device string: '{given}'")
            index = builtins.int(number)
        if type not in _DEVICES.split(", ") and type != "tpu":
            raise RuntimeError(
                f"Expected one of {_DEVICES} device type at start of device string: {type}"
            )
        self.type, self.index = type, index

    def __repr__(self) -> str:
        at = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{at})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, device):
            return NotImplemented
        return self.type == other.type and self.index == other.index

    def __hash__(self) -> Any:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return (device, (self.type, self.index))

    def __enter__(self) -> device:
        """Make new tensors on this device until the block's end."""
        found = jax_device(self)
        block = nullcontext() if found is META else jax.default_device(found)
        block.__enter__()
        _blocks.entered.append((block, chosen.where))
        chosen.where = self
        return self

    def __exit__(self, *exc: Any) -> None:
        block, chosen.where = _blocks.entered.pop()
        block.__exit__(*exc)


class _Blocks(threading.local):
    """The thread's open `with device:` blocks, with JAX's contexts and the devices before them."""

    def __init__(self) -> None:
        self.entered: list[Any] = []


_blocks = _Blocks()
