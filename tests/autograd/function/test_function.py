"""`autograd.Function` against torch: values, graph, flags, errors, cuts anywhere."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from helpers.sameness import Log, same

import leafax


def make(lib: Any, forward: Any, backward: Any, **members: Any) -> Any:
    members |= {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("My", (lib.autograd.Function,), members)


def test_saved_tensors_and_several_inputs() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, a: Any, n: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            ctx.n = n
            log(ctx.needs_input_grad, a.requires_grad)
            return a * b * n, a + b

        def backward(ctx: Any, g: Any, h: Any) -> Any:
            a, b = ctx.saved_tensors
            return g * b * ctx.n + h, None, g * a * ctx.n + h

        f = make(torch, forward, backward)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x * 2
        z, w = f.apply(y, 3, x)
        log(z, w, z.grad_fn)
        (z.sum() * 2 + w.exp().sum()).backward()
        log.gradients(x.grad)
        with torch.no_grad():
            log(f.apply(y, 3, x))


def test_double_backward() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

        f = make(torch, forward, backward)
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        (g,) = torch.autograd.grad(f.apply(x * 1).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        log.gradients(g.detach(), h)


def test_saved_output_and_double_backward_through_it() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        f = make(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0])
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = f.apply(x)
        log(y.grad_fn.saved_tensors[0].grad_fn is y.grad_fn)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        log.gradients(x.grad)


def test_setup_context() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(x: Any, k: Any = 3) -> Any:
            return x * k

        def setup(ctx: Any, inputs: Any, output: Any) -> None:
            log(len(inputs), inputs[1], output)
            ctx.k = inputs[1]

        f = make(
            torch, forward, lambda ctx, g: (g * ctx.k, None), setup_context=staticmethod(setup)
        )
        x = torch.ones(2, requires_grad=True)
        f.apply(x).sum().backward()
        f.apply(x, 4).sum().backward()
        log.gradients(x.grad)


def test_mark_dirty() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            x.mul_(2)
            return x

        f = make(torch, forward, lambda ctx, g: g * 2)
        x = torch.ones(2, requires_grad=True)
        a = x.clone()
        b = f.apply(a)
        log(b is a, a.grad_fn.name(), a._version)
        c = f.apply(a[0])
        log(c, a.detach(), a.grad_fn.name())
        (a * a).sum().backward()
        log.gradients(x.grad)
        log.attempt(f.apply, x)


def test_mark_non_differentiable_and_materialize() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any, keep: Any) -> Any:
            y = x.argmax(0)
            z = x * 2
            w = x * 3
            ctx.mark_non_differentiable(y, z)
            ctx.set_materialize_grads(keep)
            return y, z, w, w * 2

        def backward(ctx: Any, *grads: Any) -> Any:
            log([None if g is None else g.tolist() for g in grads])
            return grads[2] * 3, None

        f = make(torch, forward, backward)
        x = torch.ones(2, requires_grad=True)
        for keep in (True, False):
            y, z, w, v = f.apply(x, keep)
            log(y, z, w, v)
            w.sum().backward()
        log.gradients(x.grad)


def test_an_input_returned_is_a_view() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        f = make(torch, lambda ctx, x: x, lambda ctx, g: g * 5)
        x = torch.ones(2, requires_grad=True)
        y = f.apply(x)
        log(y is x, y._is_view(), y._base is x, y.grad_fn.name())
        y.sum().backward()
        log.gradients(x.grad)
        z = f.apply(x.clone())
        log.attempt(z.mul_, 2)


@pytest.mark.parametrize(
    "backward",
    [
        lambda ctx, g: (g, g),
        lambda ctx, g: (),
        lambda ctx, g: (g, None, None),
        lambda ctx, g: 3.0,
        lambda ctx, g: g.new_ones(3),
        lambda ctx, g: g.new_ones(4, 2),
        lambda ctx, g: g.double(),
    ],
)
def test_what_backward_returns(backward: Any) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(2, requires_grad=True)
        f = make(torch, lambda ctx, x: x * 2, backward)
        log.attempt(f.apply(x).sum().backward)
        log.gradients(x.grad)


def test_errors() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        base = torch.autograd.Function
        x = torch.ones(2, requires_grad=True)
        plain = make(torch, lambda ctx, x, k: x * k, lambda ctx, g: (g, g))
        log.attempt(plain.apply(x, 3).sum().backward)
        for forward in (
            lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1].clone(),
            lambda ctx, x: (ctx.save_for_backward(3), x * 2)[1],
            lambda ctx, x: [x * 2],
            lambda ctx, x: None,
            lambda ctx, x: (x * 2, 3, None),
        ):
            log.attempt(make(torch, forward, lambda ctx, *g: g[0]).apply, x.clone())
        log.attempt(base.apply, x)
        no_backward = type("No", (base,), {"forward": staticmethod(lambda ctx, x: x * 2)})
        log.attempt(no_backward.apply(x).sum().backward)


def test_freed_and_modified() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        f = make(torch, forward, lambda ctx, g: ctx.saved_tensors[0] * g)
        none = make(torch, lambda ctx, x: x * 2, lambda ctx, g: g)
        x = torch.ones(2, requires_grad=True)
        y = f.apply(x).sum()
        y.backward()
        log.attempt(y.backward)
        y = none.apply(x).sum()
        y.backward()
        y.backward()
        y = f.apply(x).sum()
        y.backward(retain_graph=True)
        y.backward()
        log.gradients(x.grad)
        with torch.no_grad():
            y = f.apply(x)
            x.mul_(2)
        a = x * 3
        y = f.apply(a)
        a.mul_(2)
        with log.catch() as _:
            y.sum().backward()


def test_once_differentiable() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        once = torch.autograd.function.once_differentiable
        f = make(torch, forward, once(lambda ctx, g: ctx.saved_tensors[0] * g))
        x = torch.ones(2, requires_grad=True)
        v = torch.ones(2, requires_grad=True)
        (g,) = torch.autograd.grad(f.apply(x), x, v, create_graph=True)
        log(g.requires_grad)
        log.attempt(g.sum().backward)
        f.apply(x).sum().backward()
        log.gradients(x.grad)


def test_chains_hooks_and_retained_gradients() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        f = make(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2)
        x = torch.ones(2, requires_grad=True)
        y = f.apply(x)
        y.retain_grad()
        y.register_hook(lambda g: g + 1)
        y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10,))
        y.grad_fn.register_prehook(lambda go: (go[0] * 100,))
        z = f.apply(f.apply(y))
        z.sum().backward()
        log.gradients(x.grad, y.grad)


def test_a_step_with_a_function_is_one_program() -> None:
    class Scale(leafax.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * ctx.saved_tensors[0] * g

    w = leafax.ones(3, requires_grad=True)
    opt = leafax.optim.SGD([w], lr=0.1)
    leafax.synchronize()
    for _ in range(4):
        leafax.explain(clear=True)
        opt.zero_grad()
        Scale.apply(w).sum().backward()
        opt.step()
        leafax.synchronize()
        report = leafax.explain()
        assert len(report) == 1
    assert report[0].how == "cached"


def test_a_dead_output_is_not_computed() -> None:
    class Double(leafax.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = leafax.ones(3, requires_grad=True)
    leafax.synchronize()
    y = Double.apply(x)
    z = y + 1
    del y
    leafax.explain(clear=True)
    z.tolist()
    assert leafax.explain()[0].outputs == 1


@pytest.mark.parametrize("use", ["none", "hook", "view", "inplace"])
def test_a_dropped_graph_needs_no_garbage_collector(use: str) -> None:
    class Product(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            z = x * y
            ctx.save_for_backward(x, y, z)
            return z

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            x, y, _ = ctx.saved_tensors
            return g * y, g * x

    def scope() -> Any:
        y = Product.apply(x * 2, x)
        node = ref(y.grad_fn)
        if use == "hook":
            y.register_hook(lambda g: g)
        elif use == "view":
            y = y.view(3)
        elif use == "inplace":
            y.mul_(2)
        return node

    x = leafax.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        node = scope()
        leafax.synchronize()
        assert node() is None
    finally:
        gc.enable()


def test_retained_gradients_and_versions_of_what_is_marked_dirty() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Double(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any, returned: Any) -> Any:
                a.mul_(2)
                ctx.mark_dirty(a)
                return a if returned else a * 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 4, None

        for cut in (False, True):
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            y = x * 1
            if cut:
                y.tolist()
            y.retain_grad()
            Double.apply(y, True).sum().backward()
            log(y.grad.tolist(), x.grad.tolist(), y._version)
            z = x * 1
            with pytest.raises(RuntimeError) as e:
                Double.apply(z, False)
            log(str(e.value), z.tolist(), z._version, z.grad_fn.name())


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("tracked", [False, True])
def test_what_forward_sets_must_be_of_its_kind(separate: bool, tracked: bool) -> None:
    """Each alone, and two at a time: which PyTorch looks at first."""
    names = ["dirty_tensors", "non_differentiable", "to_save", "saved_for_forward"]
    values: list[Any] = ["a", 3, ["a"], [], (), None, ("a",), True, (1,)]
    cases: list[dict[str, Any]] = [
        {name: value} for name in [*names, "materialize_grads"] for value in values
    ]
    cases += [{a: "x", b: 3} for a in names for b in names if a != b]
    cases += [{a: ("x",), b: (3,)} for a in names for b in names if a != b]

    @same
    def program(torch: Any, log: Log) -> Any:
        def mark(ctx: Any, given: dict[str, Any]) -> None:
            for name, value in given.items():
                setattr(ctx, name, value)

        for given in cases:

            class Apart(torch.autograd.Function):
                @staticmethod
                def forward(x: Any) -> Any:
                    return x.clone()

                @staticmethod
                def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                    mark(ctx, given)  # noqa: B023

            class Together(torch.autograd.Function):
                @staticmethod
                def forward(ctx: Any, x: Any) -> Any:
                    mark(ctx, given)  # noqa: B023
                    return x.clone()

            x = torch.ones(2, requires_grad=tracked)
            log.attempt((Apart if separate else Together).apply, x)
