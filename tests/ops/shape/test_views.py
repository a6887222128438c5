"""View ops against live PyTorch: values, gradients, write-backs, strides and errors."""

from __future__ import annotations

import random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from helpers.ops_agree import agree, firing

import leafax
from leafax.functional.ops.shape import slices, views
from leafax.functional.ops.shape.strides import (
    NOT_VIEWABLE,
    Layout,
    contiguous,
    contiguous_strides,
    is_contiguous,
)
from leafax.functional.ops.shape.view_rules import VIEW_RULES
from leafax.functional.program.op import TABLE

assert slices and views  # imported to enter their ops into the table


def t(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def apply(name: str, x: torch.Tensor, *args: Any) -> Any:
    """The view in PyTorch."""
    if name == "slice":
        dim, start, end, step = (*args, *(0, None, None, 1)[len(args) :])
        return x[(slice(None),) * (dim % x.ndim) + (slice(start, end, step),)]
    if name in ("T", "mT", "mH", "H"):
        return getattr(x, name)
    return x[...] if name == "alias" else getattr(x, name)(*args)


B, X, V, S = t(2, 3, 4), t(2, 3), t(6), t()

CALLS: list[tuple[Any, ...]] = [
    ("view", B, (6, 4)), ("view", B, (2, -1)), ("view", V, (4, 2)), ("view", V, (-1, -1)),
    ("view", V, (-1, 4)), ("view", V, (-2, 3)), ("view", V, (2, -3)), ("view", t(0), (-1, 0)),
    ("view", t(0), (0, 3)), ("view", t(0, 3), (-1, 3)), ("reshape", B, (4, -1)),
    ("reshape", V, (2, 4)), ("flatten", B), ("flatten", B, 1), ("flatten", B, 1, 0),
    ("flatten", S), ("flatten", X, 0, 5), ("ravel", B), ("unflatten", B, 2, (2, 2)),
    ("unflatten", B, -2, (-1, 3)), ("unflatten", X, 1, (2, 2)), ("unflatten", X, 1, ()),
    ("unsqueeze", X, 1), ("unsqueeze", X, -1), ("unsqueeze", X, 4), ("squeeze", t(1, 2, 1)),
    ("squeeze", t(1, 2, 1), 0), ("squeeze", t(1, 2, 1), (0, 1, -1)), ("squeeze", X, (0, 0)),
    ("squeeze", X, 3), ("squeeze", S, 0), ("squeeze", S, 1), ("alias", X),
    ("permute", B, (2, 0, 1)), ("permute", X, (1, 1)), ("permute", X, (1,)), ("permute", X, (1, 5)),
    ("transpose", B, 0, -1), ("transpose", X, 0, 2), ("transpose", S, 0, -1), ("swapaxes", B, 0, 2),
    ("t", X), ("t", V), ("t", B), ("T", X), ("mT", B), ("mT", V), ("adjoint", B),
    ("adjoint", V), ("mH", B), ("H", X), ("H", V), ("H", B), ("movedim", B, 0, 2),
    ("movedim", B, (0, 1), (1, 2)), ("movedim", X, (0, 0), (1, 0)), ("movedim", X, (0, 1), (1, 1)),
    ("movedim", X, (0,), (1, 0)), ("select", B, 1, 2), ("select", B, -1, -1), ("select", X, 0, 2),
    ("select", X, 0, -3), ("select", X, 2, 0), ("select", S, 0, 0), ("narrow", B, 2, 1, 2),
    ("narrow", B, -1, -2, 2), ("narrow", X, 0, 1, 2), ("narrow", X, 0, 5, 1),
    ("narrow", X, 0, -3, 1), ("narrow", X, 0, 0, -1), ("narrow", X, 2, 0, 1),
    ("narrow", S, 0, 0, 1), ("slice", B, 0, 0, 9), ("slice", B, 2, 1, None, 2),
    ("slice", B, 1, -1), ("slice", B, 2, 3, 1), ("slice", B, 2, None, None, 3),
    ("diagonal", B), ("diagonal", B, 1, 0, 2), ("diagonal", B, -1, 2, 0), ("diagonal", B, 7),
    ("diagonal", B, 1, 1, 2), ("diagonal", B, 0, 2, 1), ("diagonal", X, 0, 0, 0),
    ("diagonal", X, 0, 0, 2), ("diagonal", V), ("unbind", B, 1), ("unbind", X, 2), ("unbind", S),
    ("split", B, 2, 2), ("split", B, [1, 3], -1), ("split", X, [1, 2]), ("split", X, [1, -1]),
    ("split", X, -1), ("split", X, 0), ("split", t(0, 3), 0), ("split", t(0, 3), 2),
    ("split", X, 1, 2), ("split", S, 1), ("split_with_sizes", X, [1, 1]), ("chunk", B, 3, 2),
    ("chunk", B, 5, 1), ("chunk", X, 0), ("chunk", t(0, 3), 3), ("tensor_split", B, 3, 2),
    ("tensor_split", B, (1, 2), -1), ("expand", X, (4, 2, 3)), ("expand", X, (4, -1, -1)),
    ("expand", t(3, 1), (3, 2)), ("expand", X, (2, 4)), ("expand", X, (3,)),
    ("expand", X.float(), (-1, 2, 3)), ("expand", X, (2, -2)), ("expand", S, (2, 2)),
    ("broadcast_to", t(3), (2, 3)), ("unfold", B, 2, 2, 2), ("unfold", B, 2, 2, 1),
    ("unfold", B, 0, 2, 1), ("unfold", B, 2, 3, 3), ("unfold", B, 1, 0, 1), ("unfold", S, 0, 1, 1),
    ("unfold", X, 1, 4, 1), ("unfold", X, 1, 2, 0), ("unfold", X, 1, -2, 1), ("unfold", X, 3, 2, 1),
    ("as_strided", B, (3, 2), (2, 5), 1), ("as_strided", B, (3, 2), (1, 1)),
    ("as_strided", B, (2, 2), (0, 1)), ("as_strided", X, (7,), (1,)),
    ("as_strided", X, (2,), (1, 3)),
    ("as_strided", X, (2,), (-1,)), ("as_strided", X, (2,), (1,), -1),
]  # fmt: skip


@pytest.mark.quick(44)
@pytest.mark.quick(44)
@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_values_gradients_and_errors(call: tuple[Any, ...]) -> None:
    name, *args = call
    agree(name, *args, theirs=lambda *given: apply(name, *given))


def written(name: str, x: torch.Tensor, new: np.ndarray, *args: Any) -> np.ndarray | str:
    base = x.clone()
    try:
        apply(name, base, *args).copy_(torch.tensor(new))
    except RuntimeError as error:
        return str(error)
    return base.numpy()


@pytest.mark.parametrize("call", CALLS, ids=lambda c: c[0])
def test_write(call: tuple[Any, ...]) -> None:
    """Writing to the view in place in PyTorch, and writing it back into its base here."""
    name, x, *args = call
    entry = TABLE[name]
    try:
        view = apply(name, x, *args)
    except (RuntimeError, IndexError):
        return
    if isinstance(view, tuple) or entry.write is None:
        return
    new = np.linspace(1, 2, view.numel()).reshape(view.shape).astype(x.numpy().dtype)
    if name in ("unfold", "as_strided") and len(set(view.reshape(-1).tolist())) < view.numel() > 2:
        new = np.ones_like(new)  # windows overlap: the order of writes is not ours to promise
    expected = written(name, x, new, *args)
    if isinstance(expected, str):  # refused before anything is written
        spread = getattr(leafax, name, None) or getattr(leafax.Tensor, name)
        with pytest.raises(RuntimeError) as got:
            spread(leafax.from_numpy(x.numpy()), *args).copy_(leafax.from_numpy(new))
        assert str(got.value) == expected
        return
    with jax.enable_x64(True):
        back = jax.jit(lambda b, n: entry.write(b, n, *args))(x.numpy(), new)
    np.testing.assert_array_equal(back, expected)


@pytest.mark.parametrize("name, args, at", [("select", (1, -1), 1), ("narrow", (2, -3, 2), 1)])
def test_index_as_runtime_input(name: str, args: tuple[int, ...], at: int) -> None:
    entry, x = TABLE[name], B.numpy()

    def run(fn: Any, *arrays: Any) -> Any:
        def body(start: Any, *given: Any) -> Any:
            return fn(*given, *args[:at], start, *args[at + 1 :])

        return jax.jit(body)(args[at], *arrays)

    with jax.enable_x64(True):
        view = apply(name, B, *args)
        np.testing.assert_array_equal(run(entry.fn, x), view.numpy())
        new = np.ones(view.shape)
        np.testing.assert_array_equal(run(entry.write, x, new), written(name, B, new, *args))
        weak = jnp.asarray(17)
        shifted = [*args[:at], weak, *args[at + 1 :]]
        assert isinstance(firing(entry, [x, *shifted], {}), IndexError)
        shifted[at] = jnp.asarray(args[at])
        assert firing(entry, [x, *shifted], {}) is None


# Strides -----------------------------------------------------------------------------------------


def random_view(x: torch.Tensor, pick: random.Random) -> tuple[str, tuple[Any, ...]]:
    ndim = x.ndim
    some: list[tuple[str, tuple[Any, ...]]] = [
        ("unsqueeze", (pick.randint(-ndim - 1, ndim),)), ("squeeze", ()), ("reshape", ((-1,),)),
        ("ravel", ()), ("expand", ((*[pick.randint(1, 3) for _ in range(pick.randint(0, 2))],
                                    *[n if n != 1 else pick.choice([1, 3]) for n in x.shape]),)),
    ]  # fmt: skip
    if ndim:
        k, other = pick.randrange(ndim), pick.randrange(ndim)
        n = x.shape[k]
        some += [
            ("squeeze", (k,)), ("transpose", (k, other)), ("movedim", (k, other)),
            ("permute", (tuple(pick.sample(range(ndim), ndim)),)), ("unbind", (k,)),
            ("flatten", (min(k, other), max(k, other))), ("split", (pick.randint(1, 3), k)),
            ("slice", (k, pick.randint(-3, 3), pick.randint(-3, 5), pick.randint(1, 3))),
            ("unfold", (k, pick.randint(0, n), pick.randint(1, 3))),
            ("chunk", (pick.randint(1, 4), k)), ("tensor_split", (pick.randint(1, 4), k)),
        ]  # fmt: skip
        if x.numel():
            start = pick.randrange(n)
            some += [
                ("select", (k, pick.randrange(-n, n))), ("unflatten", (k, (-1, 1))),
                ("narrow", (k, start, pick.randint(0, n - start))), ("view", ((*x.shape, 1),)),
                ("view", ((-1, *x.shape[2:]) if ndim > 1 else (1, -1),)),
            ]  # fmt: skip
    if ndim > 1:
        some += [("diagonal", (pick.randint(-2, 2), *pick.sample(range(ndim), 2))), ("mT", ())]
    return pick.choice(some)


@pytest.mark.parametrize("seed", range(8))
def test_strides_of_random_chains(seed: int) -> None:
    pick = random.Random(seed)
    for _ in range(150):
        shape = [pick.choice([1, 1, 2, 3, 4, 4, 0]) for _ in range(pick.randint(0, 4))]
        x = torch.zeros(shape)
        layout: Layout = contiguous(shape)
        assert x.stride() == contiguous_strides(shape)
        for _ in range(5):
            name, args = random_view(x, pick)
            try:
                views = apply(name, x, *args)
            except RuntimeError as error:
                assert str(error) == NOT_VIEWABLE and VIEW_RULES[name](layout, *args) is None
                continue
            got = VIEW_RULES[name](layout, *args)
            if got is None:
                assert views.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
                break
            views, layouts = (views, got) if isinstance(got, list) else ((views,), [got])
            for view, each in zip(views, layouts, strict=True):
                assert (tuple(view.shape), view.stride(), view.storage_offset()) == tuple(each)
                assert view.is_contiguous() == is_contiguous(each.shape, each.strides)
            if not layouts:
                break
            at = pick.randrange(len(layouts))
            x, layout = views[at], layouts[at]
