"""`matmul` and `linear` as PyTorch composes them: graphs, views, saved fields, errors, dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.sameness import assert_equal, run, same
from helpers.tensors import filled

import leafax

Made = Callable[[Any, tuple[int, ...]], Any]


def _swapped(lib: Any, shape: tuple[int, ...], a: int, b: int) -> Any:
    turned = list(shape)
    turned[a], turned[b] = turned[b], turned[a]
    return filled(lib, tuple(turned)).transpose(a, b)


LAYOUTS: dict[str, Made] = {
    "rows": filled,
    "columns": lambda lib, shape: _swapped(lib, shape, -1, -2),
    "batch inside": lambda lib, shape: _swapped(lib, shape, 0, -2),
    "every second": lambda lib, shape: filled(lib, (*shape[:-1], shape[-1] * 2))[..., ::2],
    "repeated": lambda lib, shape: filled(lib, (1, *shape[1:])).expand(shape),
}
PAIRS = [
    ("columns", "rows"), ("rows", "columns"), ("batch inside", "columns"),
    ("every second", "batch inside"), ("repeated", "every second"), ("columns", "repeated"),
]  # fmt: skip
SHAPES = [
    ((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)), ((1, 1), (1, 1)),
    ((4, 2, 3), (3, 5)), ((4, 2, 3), (3,)), ((2, 3), (4, 3, 5)), ((3,), (4, 3, 5)),
    ((4, 2, 3), (4, 3, 5)), ((1, 2, 3), (4, 3, 5)), ((4, 2, 3), (1, 3, 5)),
    ((1, 2, 3), (1, 3, 5)), ((2, 4, 2, 3), (4, 3, 5)), ((2, 1, 2, 3), (4, 3, 5)),
    ((2, 2, 3), (1, 2, 3, 2)), ((2, 4, 2, 3), (3,)), ((3,), (2, 2, 3, 5)), ((2, 3), (2, 2, 3, 2)),
]  # fmt: skip
EMPTY = [
    ((2, 0), (0, 3)), ((0,), (0,)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 5)), ((4, 2, 0), (0, 5)),
    ((2, 3), (0, 3, 5)), ((0, 2, 3), (0, 3, 5)), ((0, 2, 3), (1, 3, 5)), ((4, 0, 3), (3,)),
    ((0,), (2, 0, 3)), ((2, 0), (3, 0, 2)),
]  # fmt: skip


SAVED = (
    "self other mat1 mat2 vec tensor self_sym_sizes self_sym_strides mat1_sym_sizes alpha beta "
    "mat1_sym_strides mat2_sym_sizes mat2_sym_strides dim dim0 dim1"
).split()


def fields(node: Any) -> dict[str, Any]:
    """Collect the saved values of this node and those behind it, but for the values of tensors."""
    seen, found, stack = set(), {}, [node]
    while stack:
        n = stack.pop(0)
        if n is None or n in seen:
            continue
        seen.add(n)
        for name in SAVED:
            value = getattr(n, f"_saved_{name}", None)
            if hasattr(value, "stride"):
                value = tuple(value.shape), tuple(value.stride())
            if value is not None:
                found[f"{len(seen)} {n.name()}.{name}"] = value
        stack += [m for m, _ in n.next_functions]
    return found


def shown(lib: Any, see: Any, out: Any, *leaves: Any) -> None:
    """The result, its place in memory, its graph, its gradients and theirs."""
    see(out, out.stride(), out.is_contiguous(), out.storage_offset())
    if out.grad_fn is None:
        return
    see(out.grad_fn, fields(out.grad_fn))
    wanted = [x for x in leaves if x.requires_grad]
    along = filled(lib, tuple(out.shape), 0.3).to(out.dtype).requires_grad_()
    grads = lib.autograd.grad(out, wanted, along, create_graph=True)
    see([g.grad_fn and g.grad_fn for g in grads])
    see.gradients(*grads)
    total = sum((g * g.conj()).real.sum() for g in grads)
    if total.requires_grad:
        see.gradients(*lib.autograd.grad(total, (*wanted, along), allow_unused=True))


@pytest.mark.quick(4)
@pytest.mark.parametrize("shapes", SHAPES + EMPTY, ids=str)
def test_the_graph_of_a_product(shapes: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        for left, right in ((True, True), (True, False), (False, True), (False, False)):
            x, y = (filled(lib, shape) for shape in shapes)
            x.requires_grad_(left), y.requires_grad_(right)
            shown(lib, see, x @ y, x, y)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


@pytest.mark.parametrize("names", PAIRS, ids=" ".join)
def test_products_depend_on_strides(names: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        for shapes in SHAPES[5:12] + [((2, 4, 2, 3), (2, 1, 3, 2))]:
            for left, right in ((True, False), (False, True), (True, True)):
                made = []
                for name, shape in zip(names, shapes, strict=True):
                    few = len(shape) < (3 if name == "batch inside" else 2)
                    made.append(LAYOUTS["rows" if few else name](lib, shape))
                x, y = made
                if left:
                    x = x.detach().requires_grad_()
                if right:
                    y = y.detach().requires_grad_()
                out = x @ y
                see(out, out.stride(), out.grad_fn)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


@pytest.mark.exhaustive
def test_known_products_have_the_place_in_memory_of_new_ones() -> None:
    """Views of what was written to, of pieces, and of what was settled, in any order."""

    @same
    def program(lib: Any, see: Any) -> None:
        x, w = filled(lib, (4, 2, 6)).requires_grad_(), filled(lib, (6, 3)).requires_grad_()
        q, k, v = x.chunk(3, -1)
        for out in (q @ k.mT, q.mT @ v, (q * 2) @ k.transpose(0, 1)[:2].mT.sum(0), x @ w, x.mT @ q):
            see(out, out.stride(), out.grad_fn)
        y = (x * 2).mT
        before = y.mT @ w
        y.mul_(2)
        see(before, y.mT @ w, y @ x, (y @ x).grad_fn)
        y.t_() if y.dim() == 2 else y.transpose_(0, 1)
        see(y, (y @ w.mT[:2].sum()[None].expand(4)).grad_fn, (y @ filled(lib, (4, 2))).grad_fn)


ERRORS = [
    ((), (3,)), ((3,), ()), ((), ()), ((2, 3), (4,)), ((4,), (3, 2)), ((2, 3), (2, 3)),
    ((3,), (4,)), ((4, 2, 3), (2, 3)), ((4, 2, 3), (5,)), ((4, 2, 3), (4, 2, 3)),
    ((4, 2, 3), (5, 3, 2)), ((5,), (4, 2, 3)), ((2, 5), (4, 2, 3)), ((2, 4, 2, 3), (3, 3, 2)),
    ((1, 2, 4), (4, 3, 5)),
]  # fmt: skip


def test_errors_of_products() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for shapes in ERRORS:
            for left, right in ((False, False), (True, False), (False, True)):
                x, y = (filled(lib, shape) for shape in shapes)
                x.requires_grad_(left), y.requires_grad_(right)
                see.attempt(lib.matmul, x, y)
        for one, two in (
            ("float32", "float64"), ("bool", "bool"), ("int64", "float32"), ("int32", "int16"),
        ):  # fmt: skip
            for shapes in SHAPES[:9]:
                x, y = (lib.ones(shape) for shape in shapes)
                see.attempt(lib.matmul, x.to(getattr(lib, one)), y.to(getattr(lib, two)))


def test_operands_that_are_none() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        x = lib.ones(2)
        for call in (
            lambda: x @ 3, lambda: 3 @ x, lambda: x @ [1.0, 2.0], lambda: x @ None,
            lambda: x.__matmul__(3) is NotImplemented, lambda: x.__rmatmul__(x),
            lambda: x.matmul(3), lambda: lib.matmul(x, [1]), lambda: lib.linalg.matmul(x, 3),
            lambda: lib.matmul(x), lambda: x.matmul(), lambda: lib.matmul(x, x, x),
            lambda: lib.matmul(x1=x, x2=x), lambda: lib.matmul(x, other=x),
            lambda: x.matmul(other=x),
            lambda: lib.matmul(x, x, out=3), lambda: x.matmul(x, out=x),
            lambda: lib.ops.aten.matmul(x, x), lambda: lib.linalg.matmul(x, x),
        ):  # fmt: skip
            see.attempt(call)
        x @= lib.ones(2, 2)
        see(x)


@pytest.mark.quick(2)
@pytest.mark.parametrize("dtype", ["complex128", "int64", "int32", "uint8", "float32"])
def test_dtypes_of_products(dtype: str) -> None:
    def program(lib: Any, see: Any) -> None:
        for shapes in SHAPES:
            x, y = ((filled(lib, shape) * 9 + 9).to(getattr(lib, dtype)) for shape in shapes)
            if x.is_complex():
                x, y = (x * (1 + 2j)).requires_grad_(), (y * (3 - 1j)).requires_grad_()
                out = x @ y
                see(out, out.grad_fn, out.conj() @ y.mH if y.dim() > 1 else out)
                see.gradients(*lib.autograd.grad(out.abs().sum(), (x, y)))
            else:
                see(x @ y)

    assert_equal(run(program, leafax), run(program, torch), dtype)


def test_products_into_a_tensor() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for shapes in SHAPES + EMPTY[:6]:
            x, y = (filled(lib, shape) for shape in shapes)
            shape = tuple((x @ y).shape)
            turned = lib.zeros(tuple(reversed(shape)), dtype=x.dtype).permute(
                *range(len(shape) - 1, -1, -1)
            )
            for out in (
                lib.zeros(shape, dtype=x.dtype), turned, lib.empty(0, dtype=x.dtype),
                lib.zeros(7, dtype=x.dtype), lib.zeros(2, *shape, dtype=x.dtype)[1],
            ):  # fmt: skip
                made = see.attempt(lambda x=x, y=y, out=out: lib.matmul(x, y, out=out))
                see(made is out, out, out.stride(), out._is_view())
            see.attempt(lambda x=x, y=y, s=shape: lib.matmul(x, y, out=lib.zeros(s)))
            x.requires_grad_()
            see.attempt(lambda x=x, y=y, s=shape: lib.matmul(x, y, out=lib.zeros(s)))
            with lib.no_grad():
                out = lib.zeros(shape, dtype=x.dtype)
                see.attempt(lambda x=x, y=y, out=out: lib.linalg.matmul(x, y, out=out))


def test_products_in_modes_and_transforms() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for shapes in SHAPES[2:14:2]:
            x, y = (filled(lib, shape) for shape in shapes)
            with lib.inference_mode():
                out = x @ y
            see(out.is_inference(), out.stride())
            with lib.no_grad():
                see(x.requires_grad_() @ y)
            x = x.detach()
            see.gradients(lib.func.grad(lambda t, y=y: (t @ y).sin().sum())(x))
            batched = lib.stack([x, x * 2])
            see.gradients(lib.func.vmap(lambda t, y=y: t @ y)(batched))
            see.gradients(*lib.func.jvp(lambda t, y=y: t @ y, (x,), (x * 3,)))
            with lib.autograd.forward_ad.dual_level():
                dual = lib.autograd.forward_ad.make_dual(x, x.cos())
                see.gradients(*lib.autograd.forward_ad.unpack_dual(dual @ y))
                see.gradients(*lib.autograd.forward_ad.unpack_dual(dual @ y.requires_grad_()))


@pytest.mark.exhaustive
def test_products_under_autocast() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for shapes in SHAPES[1:13:2]:
            x, y = (filled(lib, shape).float().requires_grad_() for shape in shapes)
            with lib.autocast("cpu"):
                out, mixed = x @ y, x.bfloat16() @ y
            see(out.dtype, mixed.dtype, out.grad_fn, mixed.grad_fn)
            out.float().sum().backward()
            see(x.grad.dtype)
        w, b = filled(lib, (4, 3)).float().requires_grad_(), filled(lib, (4,)).float()
        for shape in ((3,), (2, 3), (5, 2, 3)):
            with lib.autocast("cpu"):
                x = filled(lib, shape).float()
                one, two = lib.nn.functional.linear(x, w, b), lib.nn.functional.linear(x, w)
            see(one.dtype, one.grad_fn, two.dtype, two.grad_fn)


def test_hooks_and_writes_see_the_nodes_of_a_product() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        x, y = filled(lib, (4, 2, 3)).requires_grad_(), filled(lib, (3, 5)).requires_grad_()
        seen = []
        with lib.autograd.graph.saved_tensors_hooks(
            lambda t: seen.append(tuple(t.shape)) or t, lambda t: t
        ):
            out = x @ y
        see(seen, out.grad_fn)
        out.grad_fn.next_functions[0][0].register_hook(lambda i, o: see(tuple(o[0].shape)))
        out.sum().backward()
        see.gradients(x.grad, y.grad)
        z = x * 1
        out = z @ y
        z[0].mul_(2)
        with see.catch():
            out.sum().backward()
        v = lib.ones(3, dtype=lib.float64) @ y
        saved = v.exp() * v * v
        v.add_(1)
        with see.catch():
            saved.sum().backward()


LINEAR = ["rows", "columns", "batch inside"]


@pytest.mark.quick(2)
@pytest.mark.parametrize("shape", [(3,), (2, 3), (5, 2, 3), (2, 5, 2, 3), (0, 2, 3)], ids=str)
def test_linear_is_a_product_with_the_transposed_weight(shape: Any) -> None:
    def program(lib: Any, see: Any) -> None:
        f = lib.nn.functional.linear
        for name in LINEAR[: len(shape)]:
            for bias in (None, (4,), (1,), (), (2, 4)):
                for need in ((True, True), (False, True), (True, False)):
                    x = LAYOUTS[name](lib, shape).detach().requires_grad_(need[0])
                    w = filled(lib, (4, 3)).requires_grad_(need[1])
                    b = None if bias is None else filled(lib, bias).requires_grad_()
                    out = see.attempt(f, x, w, b)
                    if out is None:
                        continue
                    see(out.stride(), out.grad_fn, fields(out.grad_fn))
                    if name == "rows":
                        leaves = [t for t in (x, w, b) if t is not None and t.requires_grad]
                        see.gradients(*lib.autograd.grad((out * out).sum(), leaves))
        for args in (
            (filled(lib, shape), filled(lib, (3,))), (filled(lib, shape), filled(lib, (4, 2))),
            (filled(lib, shape), filled(lib, (3,)), filled(lib, ())),
            (filled(lib, shape), filled(lib, (3,)), filled(lib, (1,))),
            (filled(lib, shape), filled(lib, (4, 3)).float()),
            (filled(lib, shape), filled(lib, (4, 3)), filled(lib, (4,)).float()),
            (filled(lib, shape), filled(lib, (4, 3)), filled(lib, (3,))),
            (filled(lib, shape), filled(lib, (2, 4, 3))), (filled(lib, ()), filled(lib, (4, 3))),
            (filled(lib, shape) > 0, filled(lib, (4, 3)) > 0), (filled(lib, shape), 3),
            (filled(lib, shape), filled(lib, (4, 3)), 3),
        ):  # fmt: skip
            see.attempt(f, *args)

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax), expected, "as it is known")


def test_what_a_gone_view_is_called_when_its_base_was_written_to() -> None:
    """Products save views that nobody else holds; their history is made anew, by `as_strided`."""

    @same
    def program(lib: Any, see: Any) -> None:
        w, f = filled(lib, (4, 3)).requires_grad_(), lib.nn.functional.linear
        b, x = lib.ones(4, dtype=lib.float64), filled(lib, (2, 5, 3)).requires_grad_()
        for out in (lambda: f(x, w), lambda: f(x, w, b), lambda: f(x[0], w, b), lambda: w @ x.mT):
            made = out()
            with lib.no_grad():
                w.add_(1)
            with see.catch():
                made.sum().backward()
        for other in (w.detach().t().requires_grad_(), filled(lib, (2, 3, 4)).requires_grad_()):
            for start in (x * 1, x.detach().clone()):
                out = start @ other
                start[0].mul_(2)
                with see.catch():
                    out.sum().backward()


@pytest.mark.exhaustive
def test_bools_have_products_of_nothing() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for shapes in EMPTY:
            see.attempt(lib.matmul, *(lib.ones(shape, dtype=lib.bool) for shape in shapes))
        for shapes in (((2, 0), (0, 3)), ((0, 3), (3, 2)), ((2, 3), (3, 0))):
            x, y = (lib.ones(shape, dtype=lib.bool) for shape in shapes)
            see.attempt(lib.addmm, lib.ones(1, dtype=lib.bool), x, y)
