"""Ops of a program's own: `torch.library` and `torch.ops`."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, run

import leafax

Tensor = Any  # each library has its own


def same(program: Callable[[Any, Log], Any]) -> None:
    """Compare a program under both libraries; names are given once."""
    theirs = run(program, torch)
    ours = run(program, leafax)
    assert "NameError" not in repr(theirs)
    for mine, yours in zip(ours, theirs, strict=True):
        assert mine == yours, f"{mine}\n{yours}"


def annotated(fn: Callable[..., Any], **kinds: Any) -> Callable[..., Any]:
    """Give a function annotations: those in a test's own functions are of neither library."""
    fn.__annotations__ = kinds
    return fn


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    yield
    leafax._library.operators.OPERATORS.clear()  # type: ignore[attr-defined]


def test_custom_ops_and_their_errors() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        def f(x, y=3, *, s=1.0):  # type: ignore[no-untyped-def]
            return x * y * s

        annotated(f, x=t.Tensor, y=int, s=float, **{"return": t.Tensor})
        op = t.library.custom_op("mine::f", f, mutates_args=())
        log(repr(op), str(op._opoverload), repr(t.ops.mine.f), repr(t.ops.mine))
        log(
            str(t.ops.mine.f.default._schema), t.ops.mine.f.overloads(), t.ops.mine.f.default.name()
        )
        x = t.tensor([1.0, 2.0], requires_grad=True)
        y = op(x, 2, s=0.5)
        log(y.detach(), type(y.grad_fn).__name__, t.ops.mine.f(x.detach()))
        for args, kwargs in (
            ((3,), {}), ((), {}), ((x, "a"), {}), ((x, 1, 2), {}), ((x,), {"z": 2}), ((x, 1.5), {}),
        ):  # fmt: skip
            log.attempt(op, *args, **kwargs)
        log.attempt(y.sum().backward)
        log.attempt(lambda: t.ops.mine.g)
        log.attempt(lambda: t.ops.mine.f.other)
        log(hasattr(t.ops, "nobody"), hasattr(t.ops.nobody, "f"))

        def setup(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
            log(len(inputs), inputs[1], keyword_only_inputs, output)
            ctx.scale = inputs[1] * keyword_only_inputs["s"]

        def backward(ctx: Any, grad: Any) -> Any:
            log(ctx.needs_input_grad)
            return grad * ctx.scale, None

        op.register_autograd(backward, setup_context=setup)
        (op(x, 4, s=0.5) * x).sum().backward()
        log(x.grad.tolist())
        with t.no_grad():
            log(op(x).requires_grad)


def test_lists_and_several_results() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        def scaled(xs, w):  # type: ignore[no-untyped-def]
            return [a * b for a, b in zip(xs, w, strict=True)]

        def pair(x):  # type: ignore[no-untyped-def]
            return x + 1, x * 2

        annotated(scaled, xs=list[t.Tensor], w=list[float], **{"return": list[t.Tensor]})
        annotated(pair, x=t.Tensor, **{"return": tuple[t.Tensor, t.Tensor]})
        scaled_op = t.library.custom_op("mine::scaled", mutates_args=())(scaled)
        pair_op = t.library.custom_op("mine::pair", mutates_args=())(pair)

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            log(type(inputs[0]).__name__, type(output).__name__)
            ctx.w = inputs[1]

        def back(ctx: Any, g: Any) -> Any:
            log(type(g).__name__, ctx.needs_input_grad)
            return [a * b for a, b in zip(g, ctx.w, strict=True)], None

        scaled_op.register_autograd(back, setup_context=setup)
        x, y = t.ones(2, requires_grad=True), t.ones(2)
        made = scaled_op([x, y], [2.0, 3.0])
        (made[0].sum() + made[1].sum()).backward()
        log(x.grad.tolist(), made)
        pair_op.register_autograd(lambda ctx, a, b: a + 2 * b)
        x.grad = None
        a, b = t.ops.mine.pair(x)
        (a * 3 + b).sum().backward()
        log(x.grad.tolist(), str(pair_op._opoverload._schema))


def test_writes_and_aliases() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        kinds = {"x": t.Tensor, "return": t.Tensor}
        for name, fn in {"itself": lambda x: x, "view": lambda x: x[:1]}.items():
            op = t.library.custom_op(f"mine::{name}", annotated(fn, **kinds), mutates_args=())
            try:
                op(t.ones(2))
            except RuntimeError as e:
                log("(1) must not also be an input to this custom operator" in str(e))
        add = annotated(lambda x: x.add_(1) and None, x=t.Tensor, **{"return": None})
        op = t.library.custom_op("mine::add", lambda x: [x.add_(1), None][1], mutates_args={"x"},
                                 schema="(Tensor(a0!) x) -> ()")  # fmt: skip
        x = t.zeros(2)
        log(op(x), x.tolist(), add.__name__)
        log.attempt(op.register_autograd, lambda ctx, g: g)
        with log.catch():
            t.library.custom_op("mine::add2", lambda x: None, mutates_args=(),
                                schema="(Tensor(a0!) x) -> ()")  # fmt: skip


def test_schemas() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        def fn(a, b, c, d, e=None, *, f="x", g=2.5, h=True):  # type: ignore[no-untyped-def]
            return a

        kinds = {"a": t.Tensor, "b": t.Tensor | None, "c": list[int], "d": t.dtype, "e": int | None,
                 "f": str, "g": float, "h": bool, "return": tuple[t.Tensor, int]}  # fmt: skip
        kinds["b"] = kinds["b"] if t is torch else leafax.Tensor | None
        log.attempt(lambda: t.library.infer_schema(annotated(fn, **kinds), mutates_args=()))
        log.attempt(lambda: t.library.infer_schema(fn, op_name="n", mutates_args={"a"}))
        log.attempt(lambda: t.library.infer_schema(fn, mutates_args="unknown"))
        log.attempt(lambda: t.library.infer_schema(fn, mutates_args="some"))
        for wrong in ({"c": 1}, {"q": 1}):
            with pytest.raises(ValueError, match="infer_schema"):
                t.library.infer_schema(fn, mutates_args=wrong)
        with pytest.raises(ValueError, match="Parameter a must have a type annotation"):
            t.library.infer_schema(lambda a: a, mutates_args=())


def test_libraries() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        with t.library._scoped_library("own", "FRAGMENT") as lib:
            log(lib.define("add3(Tensor x, Tensor[] ys, int k=3) -> Tensor"))
            log(
                lib.define("twice.float(Tensor x) -> Tensor"),
                lib.define("none(Tensor x) -> Tensor"),
            )
            lib.impl("add3", lambda x, ys, k=3: x + sum(ys) + k, "CompositeImplicitAutograd")
            lib.impl("twice.float", lambda x: x * 2, "CPU")
            x = t.ones(2, requires_grad=True)
            y = t.ops.own.add3(x, [x, x * 2], k=1)
            y.sum().backward()
            log(y, x.grad.tolist(), t.ops.own.twice(x.detach()), str(t.ops.own.twice.float._schema))
            with log.catch():
                t.library.Library("own", "XXX")
            try:
                t.ops.own.none(x)
            except NotImplementedError as e:
                log(str(e)[:70])
            try:
                lib.define("none(Tensor x) -> Tensor")
            except RuntimeError as e:
                log(str(e)[:60])
            t.library.define("own::five", "(Tensor x) -> Tensor", lib=lib)
            t.library.impl("own::five", "cpu", lambda x: x + 5, lib=lib)
            log(t.ops.own.five(x.detach()))
        log(hasattr(t.ops.own, "add3"))
        log.attempt(t.library.define, "five", "(Tensor x) -> Tensor")


def test_numpy_vmap_autocast_and_kernels() -> None:
    t = leafax

    @t.library.custom_op("mine::sin", mutates_args=())
    def sin(x: leafax.Tensor) -> leafax.Tensor:
        return t.from_numpy(np.sin(x.numpy()))

    sin.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    x = t.tensor([0.5, 1.0], requires_grad=True)
    sin(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.cos([0.5, 1.0]), rtol=1e-6)

    @sin.register_vmap
    def _(info: Any, in_dims: Any, x: Any) -> Any:
        return sin(x), in_dims[0]

    batch = t.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(t.vmap(sin)(batch), np.sin(batch.numpy()), rtol=1e-6)

    @sin.register_kernel("cpu")
    def _(x: Any) -> Any:
        return x * 0

    assert sin(batch).tolist() == [[0.0] * 3] * 2
    with sin.set_kernel_enabled("cpu", enabled=False):
        assert sin(batch)[0, 1] > 0.8
    sin.register_autocast("cpu", t.bfloat16)
    with t.autocast("cpu"):
        assert sin(batch).dtype is t.bfloat16


def test_ops_of_extensions_that_are_not_there() -> None:
    """Packages register shapes and gradients of their compiled ops when they are imported."""
    t = leafax
    t.library.register_fake("vision::nms")(lambda boxes: boxes)
    t.library.register_autograd("vision::nms", lambda ctx, g: g)
    lib = t.library.Library("vision", "IMPL", "Meta")
    lib.impl("nms", lambda boxes: boxes)
    assert not hasattr(t.ops.vision, "nms")
    with pytest.raises(OSError, match=r"Could not load this library: /no\.so"):
        t.ops.load_library("/no.so")
    with pytest.raises(NotImplementedError, match="TorchFunctionMode replaces calls of them"):
        t.library.Library("aten", "IMPL").impl("add.Tensor", lambda x, y: x)
    with pytest.raises(NotImplementedError, match="PyTorch's dispatcher"):
        t.library.opcheck(t.ops.aten.mm, ())


def test_overrides_see_ops() -> None:
    class Log(leafax.overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    with leafax.library._scoped_library("own", "FRAGMENT") as lib:
        lib.define("half(Tensor x) -> Tensor")
        lib.impl("half", lambda x: x / 2)
        with Log():
            leafax.ops.own.half(leafax.ops.aten.relu.default(leafax.ops.aten.ones([2])))
    assert names[:3] == ["aten.ones", "aten.relu.default", "own.half"]
