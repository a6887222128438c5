"""`einsum` and `tensordot` as PyTorch composes them: graphs, views, strides, errors, autocast."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from helpers.sameness import assert_equal, run, same
from helpers.tensors import filled

import leafax

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]), ("ii", [(3, 3)]), ("ii->i", [(3, 3)]), ("->", [()]),
    ("i,j->ij", [(2,), (3,)]), ("i,i", [(3,), (3,)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
    ("ij->j", [(2, 3)]), ("...ij->...ji", [(2, 3, 4)]), (",->", [(), ()]), (",i->i", [(), (3,)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (4, 5)]), ("...ij,...jk", [(2, 3, 4), (5, 1, 4, 2)]),
    ("bn,anm,bm->ba", [(2, 5), (3, 5, 4), (2, 4)]), ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,i->ij", [(2, 3), (2,)]), ("ij,j->i", [(2, 3), (3,)]), ("Ab,bA->A", [(2, 3), (3, 2)]),
    ("ij,kl->ijkl", [(2, 3), (2, 2)]), ("ij,jk,kl", [(2, 3), (3, 4), (4, 2)]),
    ("iij,jk->ik", [(2, 2, 3), (3, 4)]), ("ij,jk->k", [(2, 3), (3, 4)]), ("i->i", [(3,)]),
    ("ij,kj->", [(2, 1), (3, 4)]), ("ij,jk->ik", [(2, 1), (3, 4)]), ("iij->j", [(2, 2, 3)]),
    ("ijk,ikl->ijl", [(0, 2, 3), (0, 3, 4)]), ("ij,jk->ik", [(2, 0), (0, 3)]),
    ("a,b,c,d->abcd", [(2,), (2,), (2,), (2,)]), ("...,...->...", [(2, 3), (3,)]),
    ("i...,i...->...", [(2, 3), (2, 3)]), ("..., ...i -> i", [(2,), (2, 3)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]), ("iijj->ij", [(2, 2, 3, 3)]),
]  # fmt: skip
WRONG: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij,jk->ik", [(2, 3), (4, 5)]), ("ij->k", [(2, 3)]), ("ij->ii", [(2, 3)]),
    ("ij,jk", [(2, 3)]), ("ij", [(2, 3), (2, 3)]), ("i.j", [(2, 3)]), ("ijk", [(2, 3)]),
    ("...ijk", [(2, 3)]), ("i1", [(2, 3)]), ("...i,...i->", [(2, 3), (4, 3)]), ("ii", [(2, 3)]),
    ("......ij", [(2, 3)]), ("ij->......", [(2, 3)]), ("ij->i..", [(2, 3)]),
]  # fmt: skip


def shown(see: Any, lib: Any, made: Any, *leaves: Any) -> None:
    """A result, its strides, its graph, and its gradients with theirs."""
    see(made, made.stride(), made.grad_fn)
    wanted = [x for x in leaves if x.requires_grad]
    grads = lib.autograd.grad((made * made).sum(), wanted, create_graph=True)
    see([g.stride() for g in grads])
    see.gradients(*grads)


@pytest.mark.exhaustive
@pytest.mark.parametrize("half", [0, 1])
def test_the_graph_of_an_einstein_sum(half: int) -> None:
    def program(lib: Any, see: Any) -> None:
        for equation, shapes in EQUATIONS[half::2]:
            operands = [filled(lib, s, k).requires_grad_() for k, s in enumerate(shapes)]
            shown(see, lib, lib.einsum(equation, *operands), *operands)
            if len(operands) > 1:
                operands[0] = operands[0].detach()
                shown(see, lib, lib.einsum(equation, operands), *operands)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


def test_errors_of_einstein_sums() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for equation, shapes in WRONG:
            see.attempt(lib.einsum, equation, *(filled(lib, s) for s in shapes))
        a, b = filled(lib, (2, 3)), filled(lib, (3, 4))
        for args in (
            (a, [0, 1], b, [1, 2], [0, 2]), (a, [0, 1], b, [1, 2]), (a, [0, 52]), (a, [0, -1]),
            (a, [..., 1], b, [1, 27], [..., 27]), ("ij,jk", [a, b]), ("ij",), ("ij", 3), (3, a),
            ("ij,jk", a, 3), ("ij,jk", a, b.float()), ("ij,ij->ij", a, a.float()),
            ("ij,jk", a.long(), b.long()), ("ij,jk", a > 0, b > 0), ("ij->i", a > 0),
            ("ij,k->k", a.int(), b[0].int()),
        ):  # fmt: skip
            see.attempt(lib.einsum, *args)


CONTRACTIONS: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = [
    ((2, 3, 4), (4, 3, 5), ([1, 2], [1, 0])), ((2, 3), (3, 4), 1), ((2, 3), (2, 3), 2),
    ((2, 3), (3, 2), ([0, 1], [1, 0])), ((2, 3), (3, 2), ([1, 0], [0, 1])), ((3,), (3,), 1),
    ((2, 3), (4, 5), 0), ((2, 1, 3), (4, 3), ([1, 2], [0, 1])), ((0, 2), (2, 3), 1),
    ((4, 3), (2, 1, 3), ([0, 1], [1, 2])), ((2, 3, 4), (4, 5), ([-1], [0])), ((), (), 0),
    ((), (3,), 0), ((2, 0), (0, 3), 1), ((1, 3), (3, 1), 1), ((1, 3), (3,), 1),
    ((3, 1), (3,), ([0], [0])), ((2, 1), (1, 3), 1),
]  # fmt: skip
IMPOSSIBLE: list[tuple[tuple[int, ...], tuple[int, ...], Any]] = [
    ((2, 3), (4, 5), 1), ((2, 3), (3, 4), -1), ((2, 3), (3, 4), 3), ((2, 3), (3, 4), (1, 0)),
    ((2, 3), (3, 4), ([0], [0, 1])), ((2, 3), (3, 4), ([5], [0])), ((2, 3), (3, 4), "a"),
    ((2, 3), (3, 2), ([0, 0], [1, 1])), ((2, 3), (3, 4), ([1],)), ((2, 3), (3, 4), 1.5),
]  # fmt: skip


@pytest.mark.exhaustive
def test_the_graph_of_a_contraction() -> None:
    def program(lib: Any, see: Any) -> None:
        for left, right, dims in CONTRACTIONS:
            for need in ((True, True), (False, True), (True, False)):
                a, b = filled(lib, left), filled(lib, right, 1.0)
                a.requires_grad_(need[0]), b.requires_grad_(need[1])
                shown(see, lib, lib.tensordot(a, b, dims), a, b)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


def test_contractions_of_other_kinds() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for left, right, dims in IMPOSSIBLE:
            see.attempt(lib.tensordot, filled(lib, left), filled(lib, right), dims)
        a, b = filled(lib, (2, 3)), filled(lib, (3, 4)).requires_grad_()
        for dims in ([[1], [0]], 1, [1], [[1], [0], [0]]):
            see.attempt(lib.tensordot, a, b, lib.tensor(dims))
        for x, y, dims in (
            (a, b.float(), 1), (a.int(), b.int(), 1), (a > 0, b > 0, 1), (3, a, ([0], [0])),
            (a.mT, a.mT, 2), (a.mT, a, ([0, 1], [1, 0])), (a, a, ([1, 0], [1, 0])),
            (a.int(), a.int(), 2), (a, 3, ([0], [0])),
        ):  # fmt: skip
            see.attempt(lib.tensordot, x, y, dims)
        for out in (
            lib.empty(2, 4, dtype=a.dtype), lib.empty(2, 4), lib.empty(3, dtype=a.dtype), 3,
            lib.empty(2, 4, dtype=a.dtype, requires_grad=True),
            lib.empty(2, 3, dtype=a.dtype, requires_grad=True),
        ):  # fmt: skip
            made = see.attempt(lambda out=out: lib.tensordot(a, b, 1, out=out))
            see(made is out, made is not None and made.grad_fn)


@pytest.mark.exhaustive
def test_contractions_under_autocast_and_vmap() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        a = filled(lib, (2, 3)).float().requires_grad_()
        b = filled(lib, (3, 4)).float().requires_grad_()
        with lib.autocast("cpu"):
            made = [
                lib.einsum("ij,jk->ik", a, b), lib.einsum("ij,ij->ij", a, a),
                lib.tensordot(a, b, 1), lib.tensordot(a, a, 2), lib.einsum("ij,ij->", a, a),
            ]  # fmt: skip
        see([(m.dtype, m.grad_fn) for m in made])
        a, b = a.detach(), b.detach()
        see.gradients(lib.func.vmap(lambda x: lib.einsum("j,jk->k", x, b))(a))
        see.gradients(lib.func.vmap(lambda x: lib.tensordot(x, b, 1))(a))
        see.gradients(lib.func.grad(lambda x: lib.einsum("ij,jk->", x, b).sin())(a))
        see.gradients(*lib.func.jvp(lambda x: lib.tensordot(x, b, 1), (a,), (a * 2,)))


def test_results_of_contractions_are_views_that_can_be_written_to() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for turn in range(3):
            a, b = filled(lib, (2, 3)).requires_grad_(), filled(lib, (3, 4)).requires_grad_()
            for made in (lib.einsum("ij,jk->ki", a, b), lib.tensordot(a, b, 1)):
                see(made._base is not None and made._base.grad_fn, made.storage_offset())
                part = made[1:]
                made.mul_(turn + 2)
                part.add_(1)
                see(made, made.grad_fn, part, part.grad_fn)
            with lib.no_grad():
                made = lib.einsum("ij,jk->ki", a, b)
            with see.catch():
                made.mul_(a.sum())
            see(made)
            with lib.inference_mode():
                made = lib.einsum("ij,jk->ki", a, b)
            see(made.is_inference(), made._is_view())


def test_the_path_of_a_contraction_can_be_chosen() -> None:
    def program(lib: Any, see: Any) -> None:
        backend = lib.backends.opt_einsum
        see(backend.is_available())
        leaves = [filled(lib, s).requires_grad_() for s in ((2, 9), (9, 4), (4, 2), (2, 8))]
        before = backend.enabled, backend.strategy
        try:
            for enabled, strategy in ((True, "auto"), (False, None), (True, "greedy")):
                backend.enabled = enabled
                backend.strategy = strategy
                made = lib.einsum("ij,jk,kl,lm->im", *leaves)
                see(made, made.grad_fn)
        finally:
            backend.enabled, backend.strategy = before

    assert_equal(run(program, leafax), run(program, torch), "paths")


KRONECKER: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
    ((2, 3), (4, 5)), ((3,), (2,)), ((2, 3), (4,)), ((2,), (3, 4)), ((), (3,)), ((), ()),
    ((2, 0), (3, 2)), ((2, 3, 2), (2, 2)),
]  # fmt: skip


def test_the_graph_of_a_kronecker_product() -> None:
    def turned(lib: Any, shape: tuple[int, ...], way: str) -> Any:
        if way == "rows" or len(shape) < 2:
            return filled(lib, shape)
        if way == "columns":
            return filled(lib, (*shape[:-2], shape[-1], shape[-2])).mT
        return filled(lib, (1,) * len(shape)).expand(shape)

    def program(lib: Any, see: Any) -> None:
        for left, right in KRONECKER:
            for ways in (("rows", "rows"), ("columns", "columns"), ("columns", "rows"),
                         ("rows", "columns"), ("repeated", "rows")):  # fmt: skip
                a, b = (turned(lib, s, w) for s, w in zip((left, right), ways, strict=True))
                a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
                made = see.attempt(lib.kron, a, b)  # PyTorch's cannot merge dims without a copy
                if made is not None:
                    shown(see, lib, made, a, b)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


def test_kronecker_products_of_other_kinds() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        a, leaf = filled(lib, (2, 3)), filled(lib, (2, 3)).requires_grad_()
        for call in (
            lambda: lib.kron(a > 0, a > 0), lambda: lib.kron(a.int(), a), lambda: a.kron(leaf),
            lambda: lib.kron(a.int(), a.long()), lambda: lib.kron(a, 3), lambda: a.kron(3),
            lambda: lib.kron(a), lambda: lib.kron(input=a, other=a), lambda: a.kron(other=leaf),
            lambda: lib.kron(a, a, out=lib.empty(4, 9, dtype=a.dtype)),
            lambda: lib.kron(a, a, out=lib.empty(4, 9)), lambda: lib.kron(a, a, out=3),
            lambda: lib.kron(a, a, out=lib.empty(3, dtype=a.dtype)),
            lambda: lib.kron(leaf, a, out=lib.empty(4, 9, dtype=a.dtype)),
        ):  # fmt: skip
            see.attempt(call)
        see.gradients(lib.func.vmap(lambda x: lib.kron(x, a[0]))(a))


COSINES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3), (2, 3), {}), ((2, 3), (3,), {"dim": -1}), ((2, 3), (1, 3), {"dim": 0}),
    ((3,), (3,), {"dim": 0}), ((), (), {"dim": 0}), ((2, 3), (2, 3), {"eps": 10.0}),
    ((2, 0), (2, 0), {}), ((2, 3), (4,), {}), ((2, 3), (2, 3), {"dim": 5}), ((3,), (3,), {}),
]  # fmt: skip


def test_the_graph_of_a_cosine() -> None:
    def program(lib: Any, see: Any) -> None:
        for left, right, more in COSINES:
            for need in ((True, True), (False, True), (True, False)):
                a, b = filled(lib, left), filled(lib, right, 1.0)
                a.requires_grad_(need[0]), b.requires_grad_(need[1])
                made = see.attempt(lambda a=a, b=b, m=more: lib.cosine_similarity(a, b, **m))
                if made is not None:
                    shown(see, lib, made, a, b)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


def test_which_written_vector_the_backward_of_a_cosine_tells() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for writes in (1, 2), (2, 1):
            vectors = [filled(lib, (2, 3)).requires_grad_() for _ in writes]
            cosine = lib.cosine_similarity(*vectors)
            with lib.no_grad():
                for vector, times in zip(vectors, writes, strict=True):
                    for _ in range(times):
                        vector.mul_(0.5)
            see.attempt(cosine.sum().backward)


def test_cosines_of_other_kinds() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        a, cosine = filled(lib, (2, 3)), lib.nn.functional.cosine_similarity
        for args in (
            (a, 3), (a.int(), a), (a.int(), a.int()), (a * 1j, a), (a,),
            (a > 0, a.float()), (a * 0, a), (a.mT, a.mT),
        ):  # fmt: skip
            see.attempt(cosine, *args)
        for eps in (0, 0.5, 2.0, 0.5, 3.0):
            see(cosine(x1=a, x2=a, eps=eps))
        see.gradients(lib.func.vmap(lambda x: cosine(x, a[0], dim=0))(a))
        with lib.autocast("cpu"):
            see(cosine(a.float(), a.bfloat16()).dtype)
        see(cosine(a.float(), a).dtype)
