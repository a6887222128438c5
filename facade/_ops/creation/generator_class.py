"""Random numbers: one stateful generator, whose state is a tensor of the running program.

A generator's state is `(seed, offset)`. Every random op takes a key made of it and moves the
offset on; both are recorded, so the state is an input and an output of the programs: a loop
neither compiles anew nor repeats its numbers, and where programs are cut changes no number.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from leafax.functional.execution.confined import is_confined
from leafax.functional.execution.several_devices import alone
from leafax.functional.program.transformation import outside, transformation

from ..._core.dtypes import device as device_class
from ..._core.dtypes import int64, uint8
from ..._core.handle import Handle
from ..._core.host_transfer import failures, wait
from ..._core.jax_devices import has_several, jax_device, name_of
from ..._core.vmap_checks import refuse_random
from ..._dispatch.record import record
from ..._tracing.draws import NEXT_KEY
from ..._tracing.inputs import from_array, make
from ..._tracing.jax_transforms import refuse_draw
from ..._tracing.undo import Draw

DEFAULT_SEED = 67280421310721  # PyTorch's c10::detail::default_rng_seed_val
_STATE_BYTES = 16
_HALF_WAY = 1 << 31  # of the offsets, which a key has 32 bits of


class _Given(threading.local):
    """Hold where a generator takes its keys from in this thread, if not from its state."""

    source: tuple[Any, Callable[[], Any]] | None = None


_given = _Given()


def _lost(state: Any) -> bool:
    """Tell whether the program that would have computed the state was given up."""
    if state is None or state._array is not None or state._trace is None:
        return False
    return bool(state._trace.outcome.done)


class Generator:
    """A source of random numbers.

    Args:
      device: for whose tensors it is; numbers are drawn where a program computes.

    Raises:
      RuntimeError: JAX has no such device.

    >>> import leafax
    >>> g = leafax.Generator().manual_seed(0)
    >>> leafax.rand(2, generator=g).shape
    torch.Size([2])
    """

    def __init__(self, device: Any = "cpu") -> None:
        self.device = device_class(device)
        if self.device.type == "meta":
            raise RuntimeError("META device type not an accelerator.")
        if self.device.type != "cpu":
            self.device = device_class(*name_of(jax_device(self.device)))  # or raise
        self.is_default = False  # of its device
        self._lock = threading.Lock()
        self._set(DEFAULT_SEED)

    def __repr__(self) -> str:
        return f"Generator(device={str(self.device)!r}, initial_seed={self._seed})"

    def _set(self, seed: int) -> None:
        self._seed = seed
        self._failures = failures[0]
        # How many keys: the offset, but after a state was put back. A seed means other numbers on
        # the CPU than elsewhere, as in PyTorch: noise on a GPU must not repeat data of the CPU.
        self._drawn = 0 if self.device.type == "cpu" and not self.device.index else _HALF_WAY
        self._held: Any = None

    @property
    def _state(self) -> Any:
        """Return the state's tensor; made at the first use, so that importing starts no backend."""
        if self._held is None:
            signed = np.array([self._seed], np.uint64).astype(np.int64)[0]
            if is_confined():
                self._held = from_array(np.array([signed, self._drawn], np.int64))
                return self._held
            with jax.enable_x64(True):
                self._held = from_array(jnp.array([signed, self._drawn], "int64"))
        return self._held

    @_state.setter
    def _state(self, state: Any) -> None:
        self._held = state

    def free_state(self) -> Any:
        """Return the state's tensor, committed to no device.

        Else all that is drawn would lie where the program before ran.
        """
        held = self._state
        if has_several() and getattr(held._array, "committed", False):
            held = self._state = from_array(alone(held._array))
        return held

    def manual_seed(self, seed: int) -> Generator:
        """Begin the sequence of `seed`."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._set(int(seed) % (1 << 64))
        return self

    def seed(self) -> int:
        """Begin a sequence that nobody has seen; returns its seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed that the sequence began with."""
        return self._seed

    def get_state(self) -> Any:
        """Return the state, to be given to `set_state`: a tensor of bytes, as in PyTorch."""
        return self.free_state().clone().view(uint8)

    def set_state(self, state: Any) -> Generator:
        """Go on from a state that `get_state` returned.

        Raises:
          TypeError: it is no tensor of bytes.
          RuntimeError: it has another size.
        """
        if not isinstance(state, Handle):
            raise TypeError(f"expected a torch.ByteTensor, but got {type(state).__name__}")
        if state._v.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if state.numel() != _STATE_BYTES:  # type: ignore[attr-defined]
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE_BYTES} but found the input RNG "
                f"state size to be {state.numel()}"  # type: ignore[attr-defined]
            )
        seed, drawn = state.view(int64).tolist()  # type: ignore[attr-defined]
        self._set(seed % (1 << 64))
        self._drawn = drawn
        return self

    def place(self) -> tuple[Any, int, int]:
        """Return the place in the sequence, for `go_back`; no value is read."""
        return self._state, self._seed, self._drawn

    def go_back(self, place: tuple[Any, int, int]) -> None:
        """Go on from where the sequence was."""
        self._state, self._seed, self._drawn = place

    def return_to(self, state: Any, drawn: int) -> None:
        """Go on from an array of the state, and from how many keys were drawn by then."""
        self._held, self._drawn = from_array(state), drawn

    def clone_state(self) -> Generator:
        """Make another generator that goes on from where this one is."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> Any:
        return _restored, (str(self.device), self._state.tolist())

    def _recover(self) -> None:
        """Make the state anew if the program that would have computed it failed."""
        self._failures = failures[0]
        held = self._held
        try:
            if not _lost(held) and held is not None and held._array is not None:
                wait(held._array)
        except RuntimeError:
            self._failures, self._held = failures[0], None
        if _lost(held):
            self._held = None

    def key(self) -> Any:
        """Record the key of the next random op.

        Raises:
          RuntimeError: inside a `vmap` that refuses them.
        """
        refuse_random()
        given = _given.source
        if given is not None and (given[0] is self or self.is_default and given[0].is_default):
            return from_array(given[1]())
        if transformation() is not None:
            refuse_draw()
            with outside():
                return self.key()
        with self._lock:
            if _lost(self._held) or self._failures != failures[0]:
                self._recover()
            before = self.free_state()
            state, trace = record(NEXT_KEY, (before,), {})
            if before._array is not None:
                trace.memory.undo.append(Draw(self, before._v, self._drawn))
            self._drawn += 1
            key, after = state.values
            self._state = make(after, trace)
            return make(key, trace)

    @contextmanager
    def keys_from(self, source: Callable[[], Any]) -> Iterator[None]:
        """Take keys from a function in the block, also while JAX is tracing; no state moves on.

        Of a default generator those of all devices do.

        Args:
          source: returns an array, the data of a key for each random op: `(2,)` of uint32.
        """
        before, _given.source = _given.source, (self, source)
        try:
            yield
        finally:
            _given.source = before

    def _for_numpy(self) -> np.random.Generator:
        """Take the next key for a draw of NumPy's: an order of samples is no part of a program.

        Raises:
          RuntimeError: inside a `vmap` that refuses them.
        """
        refuse_random()
        with self._lock:
            if self._failures != failures[0]:
                self._recover()
            found = np.random.default_rng([self._seed, self._drawn])
            self._drawn += 1
            self._held = None  # which is read anew from the two numbers
            return found


def _restored(device: str, state: list[int]) -> Generator:
    generator = Generator()
    generator.device = device_class(device)  # though there may be none in this process
    generator._seed, generator._drawn = state[0] % (1 << 64), state[1]
    return generator
