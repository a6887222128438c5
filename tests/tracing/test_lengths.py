"""Calls with lengths that are new each time: traced once with symbols, then filled in."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import leafax
from leafax.functional.execution import policy, single_ops
from leafax.functional.execution.numpy import evaluator
from leafax.functional.program import symbolic_lengths, symbolic_traces
from leafax.functional.program.op import Op
from leafax.functional.program.program import Aval, Call, Slot

LENGTHS = (11, 9, 17, 10, 30, 8, 24, 3, 1, 13)


@pytest.fixture
def op_by_op() -> Iterator[None]:
    with mock.patch.object(policy.CompilePolicy, "runs_op_by_op", lambda *_: True):
        yield


def both(program: Callable[..., Any], *sizes: int) -> list[tuple[np.ndarray[Any, Any], ...]]:
    """Return results and gradients of torch's and leafax's program for inputs of these sizes."""
    found = []
    for lib in (torch, leafax):
        draw = np.random.default_rng(sum(sizes))
        x = lib.from_numpy(draw.normal(size=sizes)).requires_grad_()
        w = lib.from_numpy(draw.normal(size=(4, 3))).requires_grad_()
        out = program(lib, x, w)
        seen = [out.detach().numpy()]
        if out.requires_grad:
            (out * out.detach().cos()).sum().backward()
            seen += [t.grad.numpy() for t in (x, w) if t.grad is not None]
        found.append(tuple(seen))
    return found


PROGRAMS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda lib, x, w: lib.tanh(x) * 2 + x.exp() / (1 + x**2) - x.clamp(-1, 0.5),
    "mean": lambda lib, x, w: (x - x.mean(0)) / (x.std(0, correction=0) + 1),
    "std": lambda lib, x, w: x.std() + x.var(1).sum(),
    "norm": lambda lib, x, w: x.norm() + x.norm(dim=1, p=1).sum(),
    "matmul": lambda lib, x, w: lib.relu(x @ w) @ w.t(),
    "linear": lambda lib, x, w: lib.nn.functional.linear(x, w.t()),
    "gram": lambda lib, x, w: x @ x.t(),
    "softmax": lambda lib, x, w: x.softmax(0) + x.log_softmax(1),
    "logsumexp": lambda lib, x, w: x.logsumexp(0),
    "cumsum": lambda lib, x, w: x.cumsum(0) + x.flip(0).cumsum(1),
    "cumprod": lambda lib, x, w: x.cumprod(0),
    "gather": lambda lib, x, w: x.gather(1, (x.detach().abs() * 9).long() % 4),
    "index": lambda lib, x, w: x[(x.detach()[:, 0] * 99).long().abs() % x.shape[0]],
    "rows": lambda lib, x, w: w[(x.detach()[:, 0] * 99).long().abs() % 4],
    "index_add": lambda lib, x, w: lib.zeros(5, 4, dtype=x.dtype).index_add(
        0, (x.detach()[:, 0] * 99).long().abs() % 5, x
    ),
    "where": lambda lib, x, w: lib.where(x > 0, x, x.exp()),
    "masked": lambda lib, x, w: x.masked_fill(x > 0.3, -1.0).tril(),
    "cat": lambda lib, x, w: lib.cat([x, x.neg(), w.t()[:, :4]], 0).sum(0),
    "stack": lambda lib, x, w: lib.stack([x, x * 2], 1).reshape(-1, 8),
    "slices": lambda lib, x, w: x[1:] - x[:-1],
    "transposed": lambda lib, x, w: x.t().reshape(2, -1).unsqueeze(0).squeeze(),
    "expanded": lambda lib, x, w: x[:, None] * x[None],
    "prod": lambda lib, x, w: x.prod(0) + x.amax(0) - x.amin(1).sum(),
    "sort": lambda lib, x, w: x.sort(0).values * x.argsort(1),
    "top": lambda lib, x, w: x.max(0).values + x.median(0).values,
    "loss": lambda lib, x, w: lib.nn.functional.cross_entropy(
        x, (x.detach()[:, 0] * 99).long().abs() % 4
    ),
    "huber": lambda lib, x, w: lib.nn.functional.smooth_l1_loss(x, x.detach().roll(1, 0)),
    "layer_norm": lambda lib, x, w: lib.nn.functional.layer_norm(x, (4,)),
    "gelu": lambda lib, x, w: lib.nn.functional.gelu(x @ w) + lib.nn.functional.silu(x @ w),
    "attention": lambda lib, x, w: lib.nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None].flip(2), x[None, None], is_causal=True
    ),
    "einsum": lambda lib, x, w: lib.einsum("ni,nj,ik->jk", x, x, w),
    "batched": lambda lib, x, w: lib.bmm(x[:, :, None], x[:, None] @ w),
    "outer": lambda lib, x, w: lib.outer(x[:, 0], x[:, 1]).triu(1),
    "diagonal": lambda lib, x, w: (x @ x.t()).diagonal() + lib.diag(x[:, 0]).sum(0),
    "unfolded": lambda lib, x, w: x.unfold(1, 2, 1).sum(-1),
    "padded": lambda lib, x, w: lib.nn.functional.pad(x, (1, 0, 2, 1)),
    "kron": lambda lib, x, w: lib.kron(x[:, :2], w),
    "repeated": lambda lib, x, w: x.repeat(2, 1).repeat_interleave(2, 1),
    "cdist": lambda lib, x, w: lib.cdist(x, w.t()[:, :4].contiguous() @ lib.eye(4, dtype=x.dtype)),
    "counts": lambda lib, x, w: (x > 0).sum(0) + x.argmax(0),
    "ctc": lambda lib, x, w: lib.nn.functional.ctc_loss(
        x[:, None].expand(-1, 2, 4).log_softmax(2), lib.tensor([[1, 2], [3, 3]]),
        lib.tensor([x.shape[0], x.shape[0] // 2]), lib.tensor([2, 1]),
    ),
    "heads": lambda lib, x, w: x.view(x.shape[0], 2, 2).transpose(0, 1).reshape(-1, 2) * 2,
    "folded": lambda lib, x, w: (x[None] * x.shape[0]).reshape(x.shape[0], 4) @ w,
    "causal": lambda lib, x, w: (x @ x.t()).masked_fill(
        lib.tril(lib.ones(x.shape[0], x.shape[0])) == 0, float("-inf")
    ).softmax(1),
    "positions": lambda lib, x, w: x + lib.arange(40.0).view(10, 4).repeat(4, 1)[: x.shape[0]],
    "last": lambda lib, x, w: x[-9:] * x.shape[0] + x[:8].sum(),
    "split": lambda lib, x, w: sum(p.sum() * i for i, p in enumerate((x @ w).split(8))),
    "parts": lambda lib, x, w: x.split([x.shape[0] - 2, 2])[0].exp(),
    "grid": lambda lib, x, w: lib.arange(x.shape[0]).expand(3, x.shape[0]).t() + w.sum(),
    "full": lambda lib, x, w: lib.full((x.shape[0],), 2.5)[:, None] * x,
    "flattened": lambda lib, x, w: x.expand(2, x.shape[0], 4).reshape(-1, 4).unflatten(
        0, (2, x.shape[0])
    ),
    "narrowed": lambda lib, x, w: x.repeat(3, 1).narrow(0, x.shape[0], x.shape[0]),
    "written": lambda lib, x, w: x.clone().index_fill_(0, lib.tensor([0]), 2.0).mul_(3),
}  # fmt: skip


@pytest.mark.quick(8)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.usefixtures("op_by_op")
def test_any_length_gives_torch_s_values_and_gradients(name: str) -> None:
    for n in LENGTHS:
        try:
            theirs, mine = both(PROGRAMS[name], n, 4)
        except (RuntimeError, IndexError) as error:  # too short for torch
            with pytest.raises(type(error)):
                both(PROGRAMS[name], n, 4)
            continue
        assert len(theirs) == len(mine)
        for a, b in zip(theirs, mine, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11, err_msg=f"{name} of {n}")


IMAGES: dict[str, Callable[..., Any]] = {
    "conv": lambda f, x, w: f.conv2d(x, w, padding=1),
    "conv, stride": lambda f, x, w: f.conv2d(x, w, stride=2, padding=1),
    "conv transposed": lambda f, x, w: f.conv_transpose2d(x, w, stride=2, padding=1),
    "conv of each channel": lambda f, x, w: f.conv2d(x, w[:, :1], groups=4),
    "max": lambda f, x, w: f.max_pool2d(x, 2) + f.max_pool2d(x, 3, 2, 1).sum(),
    "average": lambda f, x, w: f.avg_pool2d(x, 2) + f.avg_pool2d(x, 3, 2, 1).mean(),
    "average, counted": lambda f, x, w: f.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
    "average, last window cut": lambda f, x, w: f.avg_pool2d(x, 3, 2, ceil_mode=True),
    "blocks": lambda f, x, w: f.unfold(x, 3, padding=1, stride=2),
    "norm": lambda f, x, w: f.group_norm(x, 2) + f.instance_norm(x),
    "resized": lambda f, x, w: f.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "diagonal": lambda f, x, w: x.diagonal(1, 2, 3).exp(),
    "distances": lambda f, x, w: (x[0, 0][:, None] - x[0, 0][None]).square().sum(-1)
    + x.take_along_dim(x.detach().argsort(-1), -1).mean(),
}  # fmt: skip


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.usefixtures("op_by_op")
def test_images_of_any_size(name: str) -> None:
    """Values and gradients, and the words where a window is too large for one."""
    for size in ((9, 12), (11, 8), (16, 13), (10, 17), (4, 30), (20, 9), (2, 9), (1, 1), (15, 15)):
        found = []
        for lib in (torch, leafax):
            draw = np.random.default_rng(0)
            x = lib.from_numpy(draw.normal(size=(2, 4, *size))).requires_grad_()
            w = lib.from_numpy(draw.normal(size=(4, 4, 3, 3))).requires_grad_()
            try:
                out = IMAGES[name](lib.nn.functional, x, w)
                (out * out.detach().cos()).sum().backward()
                found.append([t.numpy() for t in (out.detach(), x.grad, w.grad) if t is not None])
            except (RuntimeError, ValueError) as error:
                found.append(str(error))
        theirs, mine = found
        if isinstance(theirs, str):
            assert mine == theirs
            continue
        for a, b in zip(theirs, mine, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11, err_msg=f"{name} of {size}")


@pytest.mark.usefixtures("op_by_op")
def test_images_of_new_sizes_trace_and_compile_nothing() -> None:
    f = leafax.nn.functional

    def step(height: int, width: int) -> None:
        x = leafax.from_numpy(np.ones((2, 4, height, width)))
        w = leafax.ones(4, 4, 3, 3, dtype=x.dtype, requires_grad=True)
        y = f.max_pool2d(f.relu(f.conv2d(x, w, padding=1)), 2)
        z = f.avg_pool2d(f.conv_transpose2d(y, w, stride=2, padding=1), 2)
        z.square().mean().backward()
        w.grad.numpy()

    for size in ((18, 20), (22, 24), (26, 36), (30, 34), (38, 40)):
        step(*size)
    with (
        mock.patch.object(evaluator, "_for_these") as traced,
        mock.patch.object(single_ops, "_compiled") as compiled,
    ):
        step(42, 44)
    assert not traced.called and not compiled.called


@pytest.mark.usefixtures("op_by_op")
def test_what_gradients_read_is_traced_once_for_all_lengths() -> None:
    """A look between forward and backward keeps what the gradients read."""

    def step(n: int) -> float:
        x = leafax.from_numpy(np.arange(1.0, n + 1)).requires_grad_()
        loss = ((x * x).log() + x[1:].sum()).mean()
        loss.item()
        loss.backward()
        return float(x.grad.sum().item())

    def expected(n: int) -> float:
        return float((2 / np.arange(1.0, n + 1)).sum() / n + n - 1)

    for n in (19, 22, 27, 33):
        assert step(n) == pytest.approx(expected(n))
    with mock.patch.object(jax, "make_jaxpr") as traced:
        assert step(40) == pytest.approx(expected(40))
    assert not traced.called


@pytest.mark.usefixtures("op_by_op")
def test_new_lengths_trace_nothing() -> None:
    def step(n: int) -> float:
        x = leafax.from_numpy(np.full((n, 4), n / 9)).requires_grad_()
        w = leafax.full((4, 3), 0.1, dtype=x.dtype, requires_grad=True)
        loss = ((x @ w).tanh() - 0.5).square().mean() + leafax.log_softmax(x, 1).std()
        loss.backward()
        return float(loss.item() + w.grad.sum().item())

    for n in (21, 22, 23, 24):
        step(n)
    shapes, traces = (
        mock.patch.object(jax, "eval_shape"),
        mock.patch.object(evaluator, "_for_these"),
    )
    with shapes as shape, traces as traced:
        values = [step(n) for n in (25, 40, 31)]
    assert not traced.called and not shape.called
    assert len(set(values)) == 3


@pytest.mark.usefixtures("op_by_op")
def test_new_lengths_in_arguments_trace_nothing() -> None:
    """A transformer layer of two heads: its lengths are arguments of views, masks and slices."""
    tokens, wide = leafax.randn(7, 8), leafax.randn(24, 8)

    def attend(n: int) -> Any:
        x = tokens[leafax.arange(n)[None] % 7]
        q, k, v = leafax.nn.functional.linear(x, wide).split(8, dim=2)
        q, k, v = (y.view(1, n, 2, 4).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)).masked_fill(
            leafax.tril(leafax.ones(n, n)) == 0, float("-inf")
        )
        return (scores.softmax(-1) @ v).transpose(1, 2).contiguous().view(1, n, 8).sum().item()

    for n in (21, 22, 23, 25):
        attend(n)
    shapes = mock.patch.object(jax, "eval_shape", wraps=jax.eval_shape)
    traces = mock.patch.object(evaluator, "_for_these", wraps=evaluator._for_these)
    with shapes as shape, traces as traced:
        values = [attend(n) for n in (27, 40, 31)]
    assert not traced.called and not shape.called
    assert len(set(values)) == 3


@pytest.mark.usefixtures("op_by_op")
def test_a_length_that_does_not_fit_is_refused_each_time() -> None:
    calls: dict[str, Callable[[Any, Any, int], Any]] = {
        "view": lambda lib, x, n: x.view(n + n % 7 // 6, 2, 2),
        "expand": lambda lib, x, n: x[:, :1].expand(n + n % 7 // 6, 4),
        "narrow": lambda lib, x, n: x.narrow(0, 8, n - 8 + n % 7 // 6),
        "split": lambda lib, x, n: x.split([8, n - 8 + n % 7 // 6])[1],
        "unflatten": lambda lib, x, n: x.reshape(-1).unflatten(0, (n + n % 7 // 6, 4)),
        "layer_norm": lambda lib, x, n: lib.nn.functional.layer_norm(x, (n + n % 7 // 6, 4)),
    }
    for call in calls.values():
        said = []
        for lib in (torch, leafax):
            found = []
            for n in (21, 22, 23, 24, 25, 26, 27, 28, 34, 41):
                try:
                    found.append(str(tuple(call(lib, lib.ones(n, 4), n).shape)))
                except (RuntimeError, IndexError) as error:
                    found.append(str(error))
            said.append(found)
        assert said[0] == said[1]


def test_widths_that_stay_are_no_symbols() -> None:
    """Heads go into a width of 64: of symbols JAX could not tell that."""
    made = an_op(lambda x, size: x.reshape(size), "x", "size", sizes=("size",))

    def at(n: int, width: int = 64) -> Any:
        call = Call(made, (Slot(0), (n, width // 16, 16)), {})
        x = np.arange(n * width * 1.0).reshape(n, width)
        found = evaluator.evaluator(call.evaluate, [x], False, (call, (Aval(x.shape, x.dtype),)))
        assert found is not None
        np.testing.assert_array_equal(found(x)[0], x.reshape(n, width // 16, 16))

    with jax.enable_x64(True):
        for n in (20, 21, 22, 23):
            at(n)
        with mock.patch.object(evaluator, "_for_these") as traced:
            at(31)
        assert not traced.called
        for n in (20, 21, 22, 40):  # another network
            at(n, 96)
        with mock.patch.object(evaluator, "_for_these") as traced:
            at(33, 96)
            at(34, 64)
        assert not traced.called


def test_lengths_that_can_be_no_symbols_are_not_tried_for_ever() -> None:
    def body(x: Any, at: int) -> Any:
        return x[int(at) % 3 :]  # a number is needed

    made = an_op(body, "x", "at", sizes=("at",))
    traces = mock.patch.object(symbolic_traces, "_trace", wraps=symbolic_traces._trace)
    with jax.enable_x64(True), traces as tried:
        for n in range(20, 60):
            x, call = np.arange(n * 1.0), Call(made, (Slot(0), 7 + n // 2 % 11), {})
            found = evaluator.evaluator(
                call.evaluate, [x], False, (call, (Aval(x.shape, x.dtype),))
            )
            assert found is not None
            np.testing.assert_array_equal(found(x)[0], x[(7 + n // 2 % 11) % 3 :])
    assert tried.call_count <= 25


@pytest.mark.parametrize("fails", [True, False])
def test_a_trace_with_symbols_holds_nothing_of_those_who_asked(fails: bool) -> None:
    """Else a program returned what nobody holds any more, until garbage is collected."""

    class Held:
        pass

    def ask() -> weakref.ref[Any]:
        held = Held()
        call = a_call(lambda x: x[: min(x.shape[0], 9)] if fails else x * 2)
        for n in (20, 21, 22, 23):
            assert evaluated(call, n).shape == (9 if fails else n,)
        (it,) = call.general.values()
        assert it._refused is fails and bool(it._traces) is not fails
        return weakref.ref(held)

    gc.disable()
    try:
        with jax.enable_x64(True):
            assert ask()() is None
    finally:
        gc.enable()


def an_op(body: Callable[..., Any], *parameters: str, sizes: tuple[str, ...] = ()) -> Any:
    """An op with this body."""
    return mock.Mock(
        spec=Op, fn=body, parameters=parameters, sizes=sizes, check=None, random=False,
        residuals=False, fits={},
    )  # fmt: skip


def a_call(body: Callable[..., Any]) -> Call:
    """A call of an op with this body, on one array."""
    return Call(an_op(body, "x"), (Slot(0),), {})


def evaluated(call: Call, n: int) -> Any:
    x = np.arange(float(n))
    made = evaluator.evaluator(call.evaluate, [x], False, (call, (Aval((n,), x.dtype),)))
    assert made is not None
    return made(x)[0]


@pytest.mark.usefixtures("op_by_op")
def test_parts_of_tables_are_traced_by_the_order_of_lengths() -> None:
    """Which of two lengths is less has to be known; and one that is too long is told so."""

    def seen(lib: Any, rows: int, n: int) -> Any:
        x = lib.from_numpy(np.arange(rows * 3.0).reshape(rows, 3)).requires_grad_()
        try:
            (x[:n].cos() if n in (23, 60) else x.narrow(0, 0, n) * x[:n].cos()).sum().backward()
        except RuntimeError as error:
            return str(error)
        return x.grad.numpy()

    def check(rows: int, n: int) -> None:
        mine, theirs = seen(leafax, rows, n), seen(torch, rows, n)
        if isinstance(theirs, str):
            assert mine == theirs
        else:
            np.testing.assert_allclose(mine, theirs)

    for rows, n in ((40, 9), (40, 11), (40, 21), (40, 33), (40, 40), (40, 41), (40, 17), (40, 50)):
        check(rows, n)
    for rows, n in ((41, 9), (42, 20), (44, 13), (44, 45), (46, 30), (46, 50), (50, 46), (9, 12)):
        check(rows, n)
    with mock.patch.object(evaluator, "_for_these") as traced:
        seen(leafax, 40, 23)
        seen(leafax, 61, 60)
    assert not traced.called


def test_a_trace_that_disagrees_is_not_used() -> None:
    """A body that asks for one length in particular: symbols are taken to differ from it."""
    with jax.enable_x64(True):
        call = a_call(lambda x: x * (2 if x.shape[0] == 12 else 1))
        for n in (9, 10, 12, 13, 12):
            np.testing.assert_array_equal(evaluated(call, n), np.arange(n) * (1 + (n == 12)))
    (it,) = call.general.values()
    assert it._refused


def test_a_body_that_needs_numbers_is_traced_for_each_length() -> None:
    with jax.enable_x64(True):
        call = a_call(lambda x: x[jnp.asarray([i for i in range(x.shape[0]) if i % 2])])
        for n in (9, 10, 12, 13, 15):
            np.testing.assert_array_equal(evaluated(call, n), np.arange(n)[1::2])
    (it,) = call.general.values()
    assert it._refused


def test_lengths_share_a_trace_by_which_are_equal_and_which_are_small() -> None:
    call = a_call(lambda x: x)
    float64 = np.dtype("float64")

    def of(*shapes: tuple[int, ...]) -> Any:
        found = symbolic_lengths.general(call, [Aval(shape, float64) for shape in shapes])
        return None if found is None else found[0]

    assert of((9, 3), (9,)) is of((20, 3), (20,))
    assert of((9, 3), (9,)) is not of((9, 2), (9,))
    assert of((9, 3), (9,)) is not of((9, 3), (10,))
    assert of((9, 3), (9,)) is not of((9, 9), (9,))
    assert of((3, 2), (3,)) is None


@pytest.mark.usefixtures("op_by_op")
def test_an_index_out_of_range_is_told_with_the_length_of_its_time() -> None:
    def said(lib: Any, n: int, at: int) -> str:
        x = lib.from_numpy(np.arange(2.0 * n).reshape(n, 2))
        i = lib.tensor([0, at])
        try:
            x[i].sum().item()
        except IndexError as error:
            return str(error)
        return "nothing"

    for n, at in [(9, 1), (10, 2), (11, 3), (12, 4), (13, 5), (14, 14), (15, 3), (16, -17)]:
        assert said(leafax, n, at) == said(torch, n, at)


@pytest.mark.usefixtures("op_by_op")
def test_checks_of_new_lengths_trace_nothing() -> None:
    def picked(n: int) -> Any:
        x = leafax.from_numpy(np.arange(2.0 * n).reshape(n, 2))
        return x[leafax.tensor([0, n - 1])].sum().item()

    for n in (9, 10, 11, 12):
        picked(n)
    with mock.patch.object(evaluator, "_for_these") as traced:
        assert picked(20) == 1 + 38 + 39
    assert not traced.called


def test_lengths_that_cannot_be_filled_in_are_traced() -> None:
    """By a name that JAX keeps to itself: another version may not have it."""
    call = a_call(lambda x: jnp.cumsum(x) * x.shape[0])
    unnamed = mock.patch.object(symbolic_traces.Lengths, "__call__", side_effect=AttributeError)
    with jax.enable_x64(True), unnamed as filled:
        for n in (41, 42, 43, 44):
            np.testing.assert_array_equal(evaluated(call, n), np.arange(n).cumsum() * n)
    assert filled.called


def traced_anew(call: Callable[[int], Any], lengths: Iterable[int]) -> list[Any]:
    """Call a function of lengths and return its results; the last three may trace nothing."""
    *first, a, b, c = lengths
    found = [call(n) for n in first]
    shapes = mock.patch.object(jax, "eval_shape", wraps=jax.eval_shape)
    traces = mock.patch.object(evaluator, "_for_these", wraps=evaluator._for_these)
    with shapes as shape, traces as traced:
        found += [call(n) for n in (a, b, c)]
    assert not [*traced.mock_calls, *shape.mock_calls]
    return found


ARGUMENTS: dict[str, Callable[[Any, Any, int], Any]] = {
    "a part": lambda lib, x, n: x.narrow(0, 0, n - 9) * 2,
    "a part of one length": lambda lib, x, n: x[:, : n - 9] + 1,
    "of any width": lambda lib, x, n: lib.ones(8, 200)[:, : n + 90] + 1,
    "written": lambda lib, x, n: lib.zeros(8, n + 9).index_fill_(0, lib.tensor([1]), 2),
    "written part": lambda lib, x, n: written_part(lib, x, n),
    "rows joined": lambda lib, x, n: (x.view(n, 3, 4) * 2).reshape(n * 3, 4) + 1,
    "rows apart": lambda lib, x, n: (x.reshape(n * 12) * 2).view(n, 3, 4) + 1,
    "heads apart": lambda lib, x, n: (x[None].expand(9, n, 12) * 2).reshape(9 * n, 12).view(
        9, n, 4, 3
    ).transpose(1, 2).reshape(36 * n, 3).exp(),
    "one": lambda lib, x, n: x[n - 9] + x[:, None][n - 20, 0],
    "written one": lambda lib, x, n: lib.zeros(n).index_put_((lib.tensor(n - 9),), lib.tensor(2.0)),
    "scattered": lambda lib, x, n: lib.zeros(n + 9, 12).slice_scatter(x.float(), 0, 0, n) * 2,
    "chunks": lambda lib, x, n: x.split(4, 1)[1].exp() + x.chunk(3, 1)[2],
}  # fmt: skip


def written_part(lib: Any, x: Any, n: int) -> Any:
    out = lib.zeros(3, n + 30)
    out[1, : n + 4] = x[0, 0].expand(n + 4)
    return out


@pytest.mark.quick(4)
@pytest.mark.usefixtures("op_by_op", "all_recorded")
@pytest.mark.parametrize("name", ARGUMENTS)
def test_lengths_that_are_less_than_others_or_products_trace_nothing(name: str) -> None:
    made = np.random.default_rng(0).normal(size=(99, 12))

    def call(lib: Any) -> Callable[[int], Any]:
        def one(n: int) -> Any:
            x = lib.from_numpy(made[:n]).requires_grad_()
            out = ARGUMENTS[name](lib, x, n)
            if out.requires_grad:
                (out * out.detach()).sum().backward()
            return [out.detach().numpy(), None if x.grad is None else x.grad.numpy()]

        return one

    lengths = (37, 38, 41, 45, 61, 40, 39)
    mine, theirs = traced_anew(call(leafax), lengths), map(call(torch), lengths)
    for here, there in zip(mine, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            assert (a is None) == (b is None)
            if b is not None:
                np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.usefixtures("op_by_op")
def test_what_gradients_of_new_lengths_read_is_not_traced() -> None:
    """Asked at each cut between a forward and its backward."""
    w = leafax.full((4, 3), 0.1, requires_grad=True)

    def look(n: int) -> float:
        x = leafax.arange(4.0 * n).view(n, 4) / n
        loss = ((x @ w).tanh() * (x @ w)).mean()
        loss.item()
        loss.backward()
        return float(loss.item() + w.grad.sum().item())

    for n in (21, 22, 23, 25):
        look(n)
    with mock.patch.object(jax, "make_jaxpr", wraps=jax.make_jaxpr) as traced:
        values = [look(n) for n in (27, 40, 31)]
    # Closures that are kept as arrays are calls of their own for each length.
    asked = [c for c in traced.mock_calls if "VjpCall.evaluate" in repr(c)]
    assert not asked
    assert len(set(values)) == 3


def test_gradients_that_read_otherwise_than_known_are_traced_each() -> None:
    """A body that asks for one length in particular: symbols are taken to differ from it."""
    from leafax.functional.lowering.lower import needed_inputs
    from leafax.functional.lowering.vjp import vjp_of

    with jax.enable_x64(True):
        call = a_call(lambda x: x * x if x.shape[0] == 12 else x * 2)
        found = {}
        for n in (9, 10, 12, 13, 12, 15):
            aval = Aval((n,), np.dtype("float64"))
            found[n] = needed_inputs(vjp_of(call, 1, (0,), (0,)), (aval, aval))
    assert [n for n, reads in found.items() if reads] == [12]
