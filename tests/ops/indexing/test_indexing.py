"""`x[...]` and `x[...] = y` against torch: what an index may be, what it reads, how it fails.

The cases follow PyTorch's own tests of indexing.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import leafax

S, E = slice(None), Ellipsis
MASK = ((True, False), (False, False))


def numbers(lib: Any, *shape: int, dtype: str = "float64") -> Any:
    return lib.arange(int(np.prod(shape)), dtype=getattr(lib, dtype)).reshape(shape)


def plain(x: Any) -> Any:
    if isinstance(x, (torch.Tensor, leafax.Tensor)):
        return str(x.dtype), tuple(x.shape), x.tolist()
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    return x


def outcome(call: Callable[[Any], Any], lib: Any) -> Any:
    """Return the result or the error of a call, and its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = plain(call(lib))
        except Exception as e:
            found = type(e).__name__, str(e)
    texts = [re.sub(r" \(Triggered internally.*", "", str(w.message)) for w in caught]
    return found, texts


def agree(call: Callable[[Any], Any]) -> None:
    assert outcome(call, leafax) == outcome(call, torch)


def assigned(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


INDICES: list[Any] = [
    (S, S, (0, 3, 4)), (S, (2, 4, 5, 7), S), ((2, 3), S, S), (S, (0, 2, 3), (1, 3, 4)),
    (S, (0,), (1, 2, 4)), (S, ((0, 1), (1, 0)), ((2, 3),)), (S, ((5, 6),), ((0, 3), (4, 4))),
    ((0, 2, 3), (1, 3, 4), S), (((2, 1),), ((0, 3), (4, 4)), S), ((0, 2, 3), S, (1, 3, 4)),
    ((0, 2),), ((0, 2), E), ((0, 2), S, E), ((0, 2), (1, 3), E), (E, (2, 3, 4)), (S, E, (2, 3, 4)),
    (S, S, (0, 3, 4), E), (None, (0, 2), 1), (1, None, (0, 2)), ((0, 2), None, S, 1),
    ((0, 1), 0, (1, 2)), (S, 0, (1, 2)), (2, S, (0, 1)), (True, (0, 2)), (False, (0, 2)), (True,),
    (S, True), (None, True, None), (0,), (-1,), (E,), (None,), (slice(0),), (2, slice(0)),
    (slice(1, 3), None, slice(0, 8, 3)), (slice(3, 1),), (1, slice(-3, None), slice(None, None, 4)),
    (E, E), (E, E, 0), (0, E, E), (E, 0, E), (E, S, E), (E, None, E), (0, E, E, 1),
    [0.5], [[1.9]], ([0.5, 2.0],), [True, 0.5, False, 0], [], ([],), (), range(2), (range(2),),
    9, (0, 9), (S, -9), (0, 0, 0, 0), 0.0, (0, 0.5), (slice(0.5, 1),), (slice("0", "1"),), "a",
    ("a", 0), b"a", 1j, 1 << 64, -(1 << 63), slice(None, 1 << 64), slice(None, None, 0),
    slice(None, None, -1), ([0, 1], [0, 1, 2]), {}, [[0], [1, 2]], np.int32(1), np.array([0, 1]),
    np.array(1), np.array([True, False, True, False]), np.float32(1), np.bool_(True),
]  # fmt: skip


@pytest.mark.quick(26)
@pytest.mark.parametrize("index", INDICES, ids=lambda index: re.sub(r"\s+", "", str(index))[:40])
def test_read_and_assign(index: Any) -> None:
    agree(lambda lib: numbers(lib, 4, 8, 5)[index])
    agree(lambda lib: assigned(numbers(lib, 4, 8, 5), index, -1))
    shape = outcome(lambda lib: numbers(lib, 4, 8, 5)[index].shape, torch)[0]
    if isinstance(shape, torch.Size):
        agree(lambda lib: assigned(numbers(lib, 4, 8, 5), index, -numbers(lib, *shape)))


TENSORS: dict[str, Callable[[Any], Any]] = {
    "mask": lambda t: numbers(t, 2, 2, 3)[t.tensor(MASK)],
    "mask and slice": lambda t: numbers(t, 2, 2, 3)[t.tensor(MASK), ::2],
    "mask and number": lambda t: numbers(t, 2, 2, 3)[t.tensor(MASK), t.tensor(0)],
    "mask and bools": lambda t: numbers(t, 2, 2, 3)[t.tensor(MASK), True, True, False, True],
    "mask and tensor of bool": lambda t: numbers(t, 2, 2, 3)[t.tensor(MASK), t.tensor(True)],
    "mask in the middle": lambda t: numbers(t, 3, 2, 2, 5)[None, ..., t.tensor(MASK), ::2],
    "two masks": lambda t: numbers(t, 5, 7, 3)[
        t.tensor([True, False, True, True, False]), :, t.tensor([True, True, True])
    ],
    "assign by mask": lambda t: assigned(numbers(t, 1, 2, 2, 1), (S, t.tensor(MASK), S), 9),
    "bytes": lambda t: numbers(t, 3, 2)[t.ByteTensor([1, 0, 1])],
    "two bytes": lambda t: numbers(t, 3, 2, 2)[t.ByteTensor([1, 0, 1]), :, t.ByteTensor([1, 1])],
    "too many bytes": lambda t: numbers(t, 5)[t.empty(0, 2, dtype=t.uint8)],
    "bytes of another shape": lambda t: numbers(t, 5, 4)[t.ByteTensor(4, 4).zero_()],
    "assign by bytes": lambda t: assigned(numbers(t, 2, 3), t.ByteTensor([1, 0]), numbers(t, 3)),
    "assign a number by bytes": lambda t: assigned(numbers(t, 2, 3), t.ByteTensor([1, 0]), 1.0),
    "index_put by bytes": lambda t: t.ones(3, 2).index_put_(
        (t.ByteTensor([1, 0, 1]),), t.ones(2, 2), accumulate=True
    ),
    "one uint8": lambda t: numbers(t, 2, 3)[t.tensor(1, dtype=t.uint8)],
    "mask of another shape": lambda t: t.ones(5, 4)[t.tensor([False] * 6)],
    "values of another number": lambda t: assigned(
        t.arange(4), t.arange(4) > -1, t.tensor([1, 2, 3])
    ),
    "int32": lambda t: numbers(t, 4, 4)[t.tensor([1, 3], dtype=t.int32), :],
    "int16": lambda t: numbers(t, 4, 4)[t.tensor([1, 3], dtype=t.int16)],
    "floats": lambda t: numbers(t, 4, 4)[t.tensor([1.0])],
    "0-dim tensors": lambda t: numbers(t, 4, 4)[t.tensor(1), t.tensor(2).short()],
    "bounds": lambda t: numbers(t, 4, 4)[t.tensor(1) : t.tensor(3) : t.tensor(2)],
    "float bound": lambda t: numbers(t, 4, 4)[t.tensor(1.0) :],
    "many bounds": lambda t: numbers(t, 4, 4)[t.tensor([1, 2]) :],
    "0-dim": lambda t: t.tensor(1.5)[0],
    "0-dim slice": lambda t: t.tensor(1.5)[:],
    "0-dim assign": lambda t: assigned(t.tensor(1.5), E, 2.0),
    "deleted": lambda t: t.ones(2).__delitem__(0),
    "prefix of ones": lambda t: assigned(numbers(t, 2, 3), True, -t.ones(1, 1, 2, 3).double()),
    "prefix of others": lambda t: assigned(numbers(t, 2, 3), True, t.ones(5, 1, 2, 3).double()),
    "a list": lambda t: assigned(t.zeros(3), 0, [1.0]),
    "empty": lambda t: t.empty(10, 0)[:, [0, 1]],
    "strides of nothing": lambda t: (
        numbers(t, 2, 3, 4, 5)[:, :, :, 1][:, 1:1, :].stride(),
        numbers(t, 2, 3, 4, 5)[:, :, :, 1][:, 1:1, :].is_contiguous(),
    ),
    "complex fill": lambda t: t.ones(2).index_fill_(0, t.tensor([0]), 1 + 1j),
    "unravel": lambda t: t.unravel_index(t.tensor(0), (2, -3)),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_as_indices(case: str) -> None:
    agree(TENSORS[case])


@pytest.mark.exhaustive
def test_gradients_reach_through_every_index() -> None:
    readable = [
        i
        for i in INDICES[:36]
        if outcome(lambda lib, i=i: bool(len(numbers(lib, 4, 8, 5)[i])), torch)[0] in (True, False)
    ]
    for index in readable:
        found = []
        for lib in (torch, leafax):
            x = numbers(lib, 4, 8, 5).requires_grad_()
            w = lib.tensor(2.0, dtype=lib.float64, requires_grad=True)
            y = x[index]
            z = x * 2
            z[index] = w
            (y * y).sum().backward(retain_graph=True)
            (z * z).sum().backward()
            found.append((y.grad_fn.name(), z.grad_fn.name(), x.grad.tolist(), w.grad.item()))
        assert found[1] == found[0], index


ARRAYS: dict[str, Any] = {
    "int16": np.array([0, 1], np.int16), "floats": np.array([0.0, 1.9]), "no dims": np.array(1),
    "a float without dims": np.array(1.5), "True": np.array(True), "False": np.array(False),
    "no bytes": np.array([], np.uint8), "no bools": np.zeros((0, 3), bool),
    "a byte": np.array(1, np.uint8), "behind": (np.array([True, False]), 2, np.array([0], np.int8)),
    "two dims": (np.array([[True, False, True], [False, True, False]]), E),
    "counted as one": (E, np.array([[True, False, True], [False, True, False]])),
    "too far": (np.ones((2, 3), bool), 0, 0), "does not fit": (np.ones(5, bool), 0),
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("case", ARRAYS)
def test_arrays_as_indices(case: str) -> None:
    agree(lambda t: numbers(t, 2, 3, 4)[ARRAYS[case]])
    agree(lambda t: numbers(t, 2, 3, 4)[ARRAYS[case]]._is_view())
    agree(lambda t: assigned(numbers(t, 2, 3, 4), ARRAYS[case], 7))


@pytest.mark.parametrize("index", [(None, 5), (E, 5), (S, None, 9), (True, 9), (0, E, 8)])
def test_errors_tell_the_place_in_the_index(index: Any) -> None:
    agree(lambda t: numbers(t, 2, 3, 4)[index])


@pytest.mark.parametrize("value", [np.int64(3), np.uint8(3), np.float32(3), 10**20, None])
@pytest.mark.parametrize("dtype", ["float32", "bool", "complex64", "bfloat16"])
def test_what_may_be_assigned(value: Any, dtype: str) -> None:
    agree(lambda t: assigned(t.zeros(2, dtype=getattr(t, dtype)), 0, value))


def test_a_complex_number_in_bools() -> None:
    agree(lambda t: assigned(t.zeros(2, dtype=t.bool), 0, 2j))
    agree(lambda t: t.zeros(2, dtype=t.bool).fill_(1j))
    agree(lambda t: t.zeros(2, dtype=t.bool).masked_fill_(t.tensor([True, False]), 1j))


def test_masks_are_those_of_what_is_left() -> None:
    agree(lambda t: numbers(t, 3, 4)[t.zeros(5, dtype=t.bool), 0])
    agree(lambda t: numbers(t, 3, 4)[t.zeros(3, 4, dtype=t.uint8), 0])
    agree(lambda t: numbers(t, 3, 4)[t.tensor(1.0) :: -1])


MASKED = [
    "x[m]", "x[m, 0]", "x[n]", "x[..., t.tensor([True, False])]", "x[m, t.tensor([0, 1, 0])]",
    "assigned(x * 1, m, v[:2])", "assigned(x * 1, (m, 0), v[:3])", "assigned(x * 1, m, v[:1])",
    "x.index_put((m,), v[0], True)", "x.index_put((n,), v)",
]  # fmt: skip


@pytest.mark.parametrize("write", ["m[0] = n[0] = False", "m.data.zero_(), n.data.zero_()", "0"])
@pytest.mark.parametrize("case", MASKED)
def test_backward_saves_the_masks_themselves(case: str, write: str) -> None:
    def program(t: Any) -> Any:
        m = t.tensor([True, False, True, True])
        n = t.tensor([[True, False], [False, True], [True, True], [False, False]])
        x, v = (numbers(t, *s).requires_grad_() for s in ((4, 2), (4,)))
        y = eval(case, {"t": t, "x": x, "v": v, "m": m, "n": n, "assigned": assigned})
        node = y.grad_fn
        saved = getattr(node, "_saved_indices", None)
        exec(write, {"m": m, "n": n})
        if "data" in write and case == "assigned(x * 1, (m, 0), v[:3])":
            return None  # a write through a view is one node, which keeps its places
        y.backward(y.detach(), retain_graph=True)
        (first,) = t.autograd.grad((y**2).sum(), x, create_graph=True)
        return plain(saved), plain(x.grad), plain(v.grad), plain(first)

    agree(program)


@pytest.mark.parametrize("case", ["x[m]", "x[:, n]", "assigned(x * 1, m, v[:0])"])
def test_masks_of_nothing_in_a_graph_of_a_program_that_ran(case: str) -> None:
    def program(t: Any) -> Any:
        m, n = t.tensor([False] * 4), t.tensor([False] * 2)
        x, v = (numbers(t, *s).requires_grad_() for s in ((4, 2), (4,)))
        y = eval(case, {"x": x, "v": v, "m": m, "n": n, "assigned": assigned})
        loss = (y**2).sum()
        loss.item()
        (first,) = t.autograd.grad(loss, x, create_graph=True)
        return plain(first), first.requires_grad

    agree(program)


@pytest.mark.parametrize(
    "write",
    [
        "x[u, None, one] = 5.0", "x[u, True] = t.tensor(2.0)", "x[m, one] = t.tensor(2)",
        "x[u] = 5.0", "x[None, u] = 5.0", "x[:, u] = 5.0", "a[u] = 5.0", "a[None, u] = 5.0",
        "x.index_put((m, m, m), t.tensor(1.0))", "x.index_put_((m, m, u), t.tensor(1.0), True)",
        "x.sum().index_put((one,), t.tensor(1.0))",
    ],
)  # fmt: skip
def test_one_value_at_masks_of_bytes_and_at_too_many(write: str) -> None:
    def program(t: Any) -> Any:
        x = numbers(t, 3, 2, dtype="float32")
        a = x.clone().requires_grad_()
        u, m = t.tensor([1, 0, 1], dtype=t.uint8), t.tensor([True, False, True])
        exec(write, {"t": t, "x": x, "a": a, "u": u, "m": m, "one": t.tensor(True)})
        return plain(x), x._version

    agree(program)
