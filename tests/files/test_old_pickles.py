"""Pickles and files of earlier releases load as the objects that were saved."""

from __future__ import annotations

import functools
import importlib
import io
import math
import pickle
import re
import zipfile
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import flax
import jax
import make_pickles
import numpy as np
import pytest

import leafax

_PLAIN = (str, bytes, int, complex, bool, type(None), type, FunctionType, ModuleType, slice, range)


@functools.cache
def _archive() -> dict[str, bytes]:
    with zipfile.ZipFile(make_pickles.PATH) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _entries(kind: str) -> list[str]:
    return [name.removeprefix(kind) for name in _archive() if name.startswith(kind)]


def _strides(t: Any) -> list[int]:
    """The strides between elements that there are."""
    return [s for n, s in zip(t.shape, t.stride(), strict=True) if n > 1]


class _Comparison:
    """Compares two objects part by part: an old one, and what its builder makes today."""

    def __init__(self) -> None:
        self._met: set[tuple[int, int]] = set()
        self._held: list[Any] = []  # so that a number that stands for an object stays its own

    def same(self, old: Any, new: Any, at: str) -> None:
        """Fail, and say at which part, unless the objects are alike.

        Args:
          at: the way to these parts.
        """
        assert type(old) is type(new), at
        if old is new or (id(old), id(new)) in self._met:
            return
        self._met.add((id(old), id(new)))
        self._held += [old, new]
        if isinstance(old, leafax.Tensor):
            self._tensors(old, new, at)
        elif isinstance(old, (np.ndarray, jax.Array)):
            assert (old.shape, old.dtype) == (new.shape, new.dtype), at
            if jax.dtypes.issubdtype(old.dtype, jax.dtypes.prng_key):
                old, new = jax.random.key_data(old), jax.random.key_data(new)
            np.testing.assert_allclose(old, new, rtol=1e-5, atol=1e-7, err_msg=at)
        elif isinstance(old, float):
            assert math.isclose(old, new, rel_tol=1e-6) or old != old != new != new, at
        elif isinstance(old, _PLAIN):
            assert old == new, at
        elif isinstance(old, leafax.utils.hooks.RemovableHandle):
            assert isinstance(old.id, int), at  # the number of a hook in its process
        elif isinstance(old, dict):
            if "hooks" not in at.rpartition("[")[2]:  # keys of hooks count those of a process
                self.same([*old], [*new], f"{at}.keys()")
            assert len(old) == len(new), at
            for key, a, b in zip(old, old.values(), new.values(), strict=True):
                self.same(a, b, f"{at}[{key!r:.40}]")
            if hasattr(new, "__dict__"):
                self.same(vars(old), vars(new), at)
        elif isinstance(old, (list, tuple)):
            assert len(old) == len(new), at
            for i, (a, b) in enumerate(zip(old, new, strict=True)):
                self.same(a, b, f"{at}[{i}]")
        elif isinstance(old, leafax.optim.Optimizer):  # one more default is added to old ones
            assert old.defaults.items() >= new.defaults.items(), at
            self.same(old.param_groups, new.param_groups, f"{at}.param_groups")
            self.same(old.state, new.state, f"{at}.state")
        elif isinstance(old, (set, frozenset, flax.linen.Module)):
            assert old == new, at
        else:
            self._reductions(old, new, at)

    def _tensors(self, old: Any, new: Any, at: str) -> None:
        if not leafax.nn.parameter.is_lazy(old):
            assert old.is_leaf or type(old.grad_fn) is type(new.grad_fn), at
            assert old.requires_grad == new.requires_grad, at
            assert old.dtype is new.dtype and old.shape == new.shape, at
            span = 1 + sum((n - 1) * s for n, s in zip(new.shape, new.stride(), strict=True))
            dense = span == new.numel()  # a pickle holds no more memory than there are elements
            lies_alike = _strides(old) == _strides(new)
            assert lies_alike or (not dense and old.is_contiguous()), at
            a, b = (t.detach().to(leafax.complex128).resolve_conj().numpy() for t in (old, new))
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7, err_msg=at)
        self.same(old.__reduce_ex__(4)[2:], new.__reduce_ex__(4)[2:], f"{at}, users' attributes")

    def _reductions(self, old: Any, new: Any, at: str) -> None:
        """Compare what pickles would say: a class or function, its arguments and a state."""
        parts = [
            list(part) if hasattr(part, "__next__") else part
            for x in (old, new)
            for part in self._reduced(x)
        ]
        half = len(parts) // 2
        kind = type(old).__name__
        self.same(parts[:half], parts[half:], f"{at}: {kind}")

    @staticmethod
    def _reduced(x: Any) -> tuple[Any, ...]:
        reduced = x.__reduce_ex__(4)
        return (reduced,) if isinstance(reduced, str) else reduced


def _check(old: Any, name: str) -> None:
    """Compare an object with today's, by itself, after another pickle, and in use."""
    built = make_pickles.BUILDERS[name]
    new = built.make()
    again = pickle.loads(pickle.dumps(old))
    _Comparison().same(old, new, name)
    _Comparison().same(again, new, f"{name} again")
    if built.use is not None:
        wanted = built.use(new)
        _Comparison().same(built.use(old), wanted, f"{name} used")
        _Comparison().same(built.use(again), wanted, f"{name} again used")


def _loaded(load: Callable[[bytes], Any], entry: str) -> Any:
    """Load an entry; skip the test if it is a model that names what Flax or JAX has moved."""
    try:
        return load(_archive()[entry])
    except (AttributeError, ImportError) as error:
        is_flax = "/linen/" in entry or "/nnx/" in entry
        if is_flax and re.search("(on <module|No module named) '(flax|jax)", str(error)):
            pytest.skip(f"another library has changed: {error}")
        raise


@pytest.mark.parametrize("name", _entries("pickled/"))
def test_old_pickles_are_loaded(name: str) -> None:
    _check(_loaded(pickle.loads, f"pickled/{name}"), name)


@pytest.mark.parametrize("name", _entries("saved/"))
def test_old_files_are_loaded(name: str) -> None:
    def load(content: bytes) -> Any:
        return leafax.load(io.BytesIO(content), weights_only=False)

    _check(_loaded(load, f"saved/{name}"), name)


#: One function when these were pickled, as all GPUs had one generator; under the second's name.
_SPLIT = {"manual_seed_all": "manual_seed", "seed_all": "seed"}


@pytest.mark.parametrize("name", _entries("names/"))
def test_old_pickles_find_public_names(name: str) -> None:
    module = importlib.import_module(name)
    for entry, pickled in pickle.loads(_archive()[f"names/{name}"]):
        found = getattr(module, entry), getattr(module, _SPLIT.get(entry, entry))
        assert pickle.loads(pickled) in found, entry


def test_all_builders_have_a_pickle() -> None:
    assert _entries("pickled/") == list(make_pickles.BUILDERS)
    assert _entries("saved/") == list(make_pickles.SAVED)
