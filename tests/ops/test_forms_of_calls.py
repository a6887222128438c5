"""Forms of calls, dtypes and layouts of functions of shapes and of factories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

Call = Any


def _tell(see: Any, call: Call) -> None:
    try:
        see(call())
    except Exception as error:
        see(error)


SPLITS: dict[str, Call] = {
    "size by name": lambda lib, t: t.split(split_size=3),
    "sizes by name": lambda lib, t: t.split(split_size=[1, 3], dim=-1),
    "a tensor by name": lambda lib, t: t.split(split_size=lib.tensor(2)),
    "the function's name of it": lambda lib, t: t.split(split_size_or_sections=2),
    "no size": lambda lib, t: t.split(),
    "a string": lambda lib, t: t.split(split_size="a"),
    "axis": lambda lib, t: t.split(2, axis=0),
    "too many": lambda lib, t: t.split(2, 0, 1),
    "unbound": lambda lib, t: lib.Tensor.split(t, split_size=2),
    "function": lambda lib, t: lib.split(tensor=t, split_size_or_sections=2),
    "function, input": lambda lib, t: lib.split(input=t, split_size_or_sections=2),
    "function, axis": lambda lib, t: lib.split(t, 2, axis=0),
    "function, no size": lambda lib, t: lib.split(t),
    "function of a list": lambda lib, t: lib.split([1, 2], 1),
    "tensor_split": lambda lib, t: t.tensor_split(tensor_indices_or_sections=lib.tensor(3)),
    "tensor_split at": lambda lib, t: t.tensor_split(tensor_indices_or_sections=lib.tensor([1])),
}


@pytest.mark.parametrize("form", SPLITS)
def test_split_takes_the_names_of_its_parameters(form: str) -> None:
    same(lambda lib, see: _tell(see, lambda: SPLITS[form](lib, lib.arange(4.0))))


def test_split_by_name_is_differentiated() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(4.0).requires_grad_()
        piece = x.split(split_size=3)[1]
        see(piece)
        (piece * 2).sum().backward()
        see.gradients(x.grad)

    same(program)


COPIES: dict[str, Call] = {
    "ints": lambda lib, t: lib.view_copy(t, lib.int32),
    "wider": lambda lib, t: lib.view_copy(t, lib.float64),
    "by name": lambda lib, t: lib.view_copy(t, dtype=lib.int16),
    "out": lambda lib, t: lib.view_copy(t, lib.int32, out=lib.empty(0, dtype=lib.int32)),
    "out of another dtype": lambda lib, t: lib.view_copy(t, lib.int32, out=lib.empty(0)),
    "no whole number": lambda lib, t: lib.view_copy(t[:3], lib.float64),
    "of what requires grad": lambda lib, t: lib.view_copy(t.requires_grad_(), lib.complex64),
}


@pytest.mark.parametrize("form", COPIES)
def test_view_copy_takes_a_dtype(form: str) -> None:
    same(lambda lib, see: _tell(see, lambda: COPIES[form](lib, lib.arange(4.0))))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("ends", [(0, 1), (2, 0), (0.3, 4.7), (-0.03, 0.03)])
@pytest.mark.parametrize("steps", [1, 2, 11, 50])
def test_exponents_of_logspace_are_not_halves(dtype: str, ends: Any, steps: int) -> None:
    for base in (2.0, 10.0):
        made = leafax.logspace(*ends, steps, base=base, dtype=getattr(leafax, dtype))
        want = torch.logspace(*ends, steps, base=base, dtype=getattr(torch, dtype))
        tolerance = 1e-6 if dtype == "float32" else 0
        np.testing.assert_allclose(
            made.to(leafax.float64).numpy(), want.double().numpy(), rtol=tolerance
        )


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float16", "float64"])
@pytest.mark.parametrize("bound", [1.0, 0.1])
def test_a_bound_of_clamp_is_a_number_beside_a_number(dtype: str, bound: float) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(4).to(getattr(lib, dtype))
        held = lib.tensor(bound, dtype=lib.float64)
        see(x.clamp(held, 2), x.clamp(-1, held), x.clamp(held, 2.5), x.clamp(held, held))

    same(program)


@pytest.mark.parametrize("name", ["cat", "concat"])
def test_an_empty_out_of_cat_lies_as_the_images_do(name: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(120.0).reshape(2, 3, 4, 5)
        images = x.contiguous(memory_format=lib.channels_last)
        for parts in ((images, images), (images, x)):
            out = lib.empty(0)
            getattr(lib, name)(parts, out=out)
            see(out, out.is_contiguous(memory_format=lib.channels_last))

    same(program)


EXPANDED = {
    "rows": ((1, 3), (3, 3)),
    "batch": ((1, 3, 3), (2, 3, 3)),
    "first of two": ((1, 2, 3, 3), (2, 2, 3, 3)),
    "second of two": ((2, 1, 3, 3), (2, 2, 3, 3)),
    "both": ((1, 1, 3, 3), (2, 2, 3, 3)),
    "columns of four": ((2, 2, 3, 1), (2, 2, 3, 3)),
    "empty": ((0, 1, 3, 3), (0, 2, 3, 3)),
}


@pytest.mark.parametrize("name", ["tril_", "triu_"])
@pytest.mark.parametrize("kind", EXPANDED)
def test_triangles_of_expanded_batches(name: str, kind: str) -> None:
    def program(lib: Any, see: Any) -> None:
        small, large = EXPANDED[kind]
        x = lib.arange(float(np.prod(small))).reshape(small).expand(large)
        _tell(see, lambda: getattr(x, name)())

    same(program)


@pytest.mark.parametrize("name", ["zeros", "ones", "full", "arange"])
def test_factories_write_to_repeated_memory(name: str) -> None:
    def program(lib: Any, see: Any) -> None:
        out, size = lib.arange(1.0, 2.0).expand(3), {"arange": 3}.get(name, (3,))
        args = (size, 2.5) if name == "full" else (size,)
        _tell(see, lambda: getattr(lib, name)(*args, out=out))

    same(program)


REFUSED: dict[str, Call] = {
    "repeat_interleave": lambda lib: lib.tensor(3).repeat_interleave(lib.tensor([2]), 0),
    "frombuffer": lambda lib: lib.frombuffer(np.ones((4, 2))[:, 0], dtype=lib.float64),
    "arange": lambda lib: lib.arange(0, 5, float("nan")),
    "setitem": lambda lib: lib.zeros(3).__setitem__(0, lib.Size([1])),
}


@pytest.mark.parametrize("call", REFUSED)
def test_refusals_in_the_words_of_pytorch(call: str) -> None:
    same(lambda lib, see: _tell(see, lambda: REFUSED[call](lib)))


@pytest.mark.parametrize("size, r", [(4, 2), (3, 3), (1, 2), (0, 1), (3, 0), (3, 1)])
@pytest.mark.parametrize("again", [False, True])
def test_combinations(size: int, r: int, again: bool) -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.arange(1.0, size + 1, requires_grad=True)
        chosen = t.combinations(x, r, again)
        log(chosen, chosen.stride())
        if r:
            (chosen * chosen).sum().backward()
            log.gradients(x.grad)


INDICES = [0.5, "a", 1j, object, [0.5], (0.5,), (0, 0.5), (None, 0.5), (..., 0.5), 0, (0,)]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_too_many_indices_of_what_is_no_index(index: Any) -> None:
    """PyTorch counts them before it looks at what they are."""

    @same
    def program(t: Any, log: Log) -> None:
        for x in (t.tensor(1.0), t.ones(2), t.ones(2, 2)):
            log.attempt(lambda: x[index])  # noqa: B023
            log.attempt(x.__setitem__, index, 0)
