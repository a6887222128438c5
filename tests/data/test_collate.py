"""Batches made of samples, against PyTorch's."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import torch

import leafax

LIBRARIES = (leafax, torch)
Point = collections.namedtuple("Point", ["x", "y"])


class Sticky(dict):
    """A dict with more in it than its items."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tag = "kept"

    def __copy__(self) -> Any:
        return Sticky(self)


class Frozen(collections.abc.Mapping):
    """A mapping that cannot be made of a dict."""

    def __init__(self, a: int, b: int) -> None:
        self._items = {"a": a, "b": b}

    def __getitem__(self, key: str) -> int:
        return self._items[key]

    def __iter__(self) -> Any:
        return iter(self._items)

    def __len__(self) -> int:
        return 2


def shown(x: Any) -> Any:
    """A batch as plain values that can be compared."""
    if hasattr(x, "tolist") and hasattr(x, "dtype"):
        return str(x.dtype).removeprefix("torch."), tuple(x.shape), x.tolist()
    if isinstance(x, collections.abc.Mapping):
        return type(x).__name__, getattr(x, "tag", None), {k: shown(v) for k, v in x.items()}
    if isinstance(x, (list, tuple, collections.UserList, collections.deque)):
        return type(x).__name__, [shown(y) for y in x]
    return x


def said(fn: Any, *args: Any) -> Any:
    try:
        return shown(fn(*args))
    except Exception as error:
        return type(error), str(error)


SAMPLES: list[Any] = [
    lambda lib: [1, 2, 3],
    lambda lib: [1.5, 2.5],
    lambda lib: [True, False],
    lambda lib: ["a", "b"],
    lambda lib: [b"a", b"b"],
    lambda lib: [np.float32(1), np.float32(2)],
    lambda lib: [np.int16(1), np.int16(2)],
    lambda lib: [np.bool_(True), np.bool_(False)],
    lambda lib: [np.arange(3), np.arange(3)],
    lambda lib: [np.arange(6, dtype="f").reshape(2, 3).T, np.ones((3, 2), "f")],
    lambda lib: [np.arange(3), np.arange(3.0)],
    lambda lib: [np.array(1.0), np.array(2.0)],
    lambda lib: [np.arange(4)[::-1], np.arange(4)],
    lambda lib: [np.arange(3), np.arange(4)],
    lambda lib: [np.array(["a"]), np.array(["b"])],
    lambda lib: [np.array([None]), np.array([None])],
    lambda lib: [lib.ones(2), lib.zeros(2)],
    lambda lib: [lib.ones(2), lib.zeros(3)],
    lambda lib: [(1, np.ones(2)), (2, np.zeros(2))],
    lambda lib: [[1, "a"], [2, "b"]],
    lambda lib: [[1], [2, 3]],
    lambda lib: [(1, 2), (2,)],
    lambda lib: [{"a": 1, "b": [2, 3.0]}, {"a": 4, "b": [5, 6.0]}],
    lambda lib: [collections.OrderedDict(a=1), collections.OrderedDict(a=2)],
    lambda lib: [Sticky({"a": 1}), Sticky({"a": 2})],
    lambda lib: [Frozen(1, 2), Frozen(3, 4)],
    lambda lib: [Point(1, 2.0), Point(3, 4.0)],
    lambda lib: [range(2), range(2)],
    lambda lib: [collections.UserList([1, 2]), collections.UserList([3, 4])],
    lambda lib: [collections.deque([1, 2]), collections.deque([3, 4])],
    lambda lib: [None, None],
    lambda lib: [{1}, {2}],
    lambda lib: [object, object],
    lambda lib: [np.datetime64("2020-01-01")],
]


@pytest.mark.parametrize("samples", SAMPLES)
def test_collate_as_in_torch(samples: Any) -> None:
    ours, theirs = (said(lib.utils.data.default_collate, samples(lib)) for lib in LIBRARIES)
    assert ours == theirs


@pytest.mark.parametrize("samples", SAMPLES)
def test_convert_as_in_torch(samples: Any) -> None:
    ours, theirs = (said(lib.utils.data.default_convert, samples(lib)) for lib in LIBRARIES)
    assert ours == theirs


def test_a_map_of_functions() -> None:
    for lib in LIBRARIES:
        collate = lib.utils.data._utils.collate
        functions = {**collate.default_collate_fn_map, str: lambda batch, **_: "".join(batch)}
        assert collate.collate([("a", 1), ("b", 2)], collate_fn_map=functions)[0] == "ab"
        functions[lib.Tensor] = lambda batch, **_: list(batch)
        found = collate.collate([np.ones(2), np.zeros(3)], collate_fn_map=functions)
        assert [tuple(t.shape) for t in found] == [(2,), (3,)]
        with pytest.raises(TypeError, match="default_collate: batch must contain tensors, numpy"):
            collate.collate([None, None], collate_fn_map={})


def test_arrays_are_stacked_without_a_program() -> None:
    leafax.explain(clear=True)
    found = leafax.utils.data.default_collate([np.full((40, 40), k) for k in range(8)])
    assert type(found._array) is np.ndarray
    assert found._array.ctypes.data % 64 == 0
    assert found[:, 0, 0].tolist() == list(range(8))
    assert not list(leafax.explain())


def test_pin_memory_of_what_a_batch_holds() -> None:
    class Batch:
        def pin_memory(self) -> str:
            return "pinned"

    for lib in LIBRARIES:
        pin = lib.utils.data._utils.pin_memory.pin_memory
        given = {"a": Batch(), "b": [Batch(), "text", 3], "c": Point(Batch(), b"x"), "d": (1,)}
        found = {"a": "pinned", "b": ["pinned", "text", 3], "c": Point("pinned", b"x"), "d": (1,)}
        assert pin(given) == found
