"""Views that Functions make: pure ones may be written to, and how forbidden ones print."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

FORWARDS: dict[str, Callable[..., Any]] = {
    "a view": lambda a: a[:2],
    "the input": lambda a: a,
    "a copy": lambda a: a.clone(),
    "a view of a copy": lambda a: a.clone()[:2],
    "two views": lambda a: (a[:2], a[2:]),
    "of two inputs": lambda a, b: a[:2],
}


@pytest.mark.parametrize("what", FORWARDS)
@pytest.mark.parametrize("requires_grad", [True, False])
def test_pure_views(what: str, requires_grad: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Some(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *tensors: Any) -> Any:
                ctx._is_pure_view = True
                return FORWARDS[what](*tensors)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                log("backward")
                return grad

        a = torch.arange(4.0, requires_grad=requires_grad)
        tensors = [a.clone()] * (2 if what == "of two inputs" else 1)
        with torch.no_grad():
            log.attempt(lambda: Some.apply(*tensors))
        with log.catch():
            out = Some.apply(*tensors)
            log(out, out._base is tensors[0])
            out += 3
            log(out, tensors[0])
            if requires_grad and what != "a view of a copy":
                out.sum().backward()
                log.gradients(a.grad)


def test_a_view_that_autograd_lost_still_has_its_values() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        a = torch.ones(1, requires_grad=True)
        with torch.no_grad():
            b = a[:]
            b *= 2
        log(repr(b), b.item(), repr(b.detach()), b.requires_grad)
        log.attempt(lambda: b + 1)
        log.attempt(lambda: b.grad_fn)
        log.attempt(lambda: b.add_(1))
        log(repr(a))


@pytest.mark.parametrize("write", ["function", "function of a view", "hooks", "hooks on a view"])
def test_what_retains_its_gradient_does_so_at_the_history_of_a_write(write: str) -> None:
    """A Function drops what was retained of the tensor that it writes to; hooks stay behind."""

    def program(lib: Any, see: Any) -> None:
        class Doubled(lib.autograd.Function):  # type: ignore[misc, name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                x.mul_(2)
                ctx.mark_dirty(x)
                return x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g * 2

        p = lib.ones(2, requires_grad=True)
        a = p * 1
        a.register_hook(lambda g: see.gradients(g))
        a.retain_grad()
        v = a[:1]
        v.retain_grad()
        (v.sum() + a.sum()).backward(retain_graph=True)
        if write.startswith("function"):
            Doubled.apply(v if "view" in write else a)
        else:
            hooks = lib.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t)
            with hooks:
                (v if "view" in write else a).mul_(a[1:] * 3)
        see(a.retains_grad, a.grad is None, v.grad is None)
        a.sum().backward()
        see.gradients(a.grad, p.grad)

    same(program)


@pytest.mark.parametrize("first", ["leaf", "view", "of_no_grad"])
def test_a_refused_write_counts_in_all_that_is_dirty(first: str) -> None:
    @same
    def program(lib: Any, log: Any) -> None:
        class Both(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                x.mul_(2), y.add_(1)
                ctx.mark_dirty(x, y)
                return x, y

        leaf, other = lib.ones(2, requires_grad=True), lib.zeros(2)
        made = leaf * 2
        view = made.view(2)
        with lib.no_grad():
            of_no_grad = made.view(2)
        given = {"leaf": leaf, "view": view, "of_no_grad": of_no_grad}[first]
        log.attempt(Both.apply, given, other)
        log(other._version, given._version)
        log.attempt(Both.apply, other, given)
        log(other._version, given._version)


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("needs", [False, True])
def test_an_input_returned_as_not_differentiable(needs: bool, saves: bool) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        class Beside(lib.autograd.Function):
            @staticmethod
            def forward(x: Any, y: Any) -> Any:
                return x * 2, y

            @staticmethod
            def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
                if saves:
                    ctx.save_for_backward(inputs[1])
                ctx.mark_non_differentiable(output[1])

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                return g * 2, h

        x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=needs)
        with log.catch():
            a, b = Beside.apply(x, y)
            log(b, b.requires_grad, b._is_view(), b.is_leaf)
            a.sum().backward()
            log.gradients(x.grad, y.grad)


def test_a_refused_write_to_a_view_is_counted_where_the_base_was_saved() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        class Pair(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                y.add_(x)
                ctx.mark_dirty(y)
                return y, x * 2

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                return h, g

        b = lib.ones(2, 3, requires_grad=True)
        d = b * 2
        distance = d.dist(lib.zeros(2, 3))
        log.attempt(Pair.apply, distance, d.expand_as(b))
        log(d._version)
        log.attempt(lib.autograd.grad, distance, b)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize(("times", "marks"), [(1, 1), (1, 2), (2, 1), (3, 2)])
def test_an_input_that_was_written_to_counts_by_its_marks(
    times: int, marks: int, view: bool
) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Doubled(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                x.mul_(2)
                ctx.mark_dirty(*[x] * marks)
                return (x,) * times if times > 1 else x

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                log.gradients(*g)
                return sum(g) * 2

        for requires_grad in (True, False):
            leaf = torch.tensor([1.0, 2.0], requires_grad=requires_grad)
            base = leaf.clone()
            x = base.view(2) if view else base
            with log.catch():
                out = Doubled.apply(x)
                log((out[0] if times > 1 else out) is x, x, base)
                if requires_grad:
                    x.retain_grad()
                    (x * 3).sum().backward()
                    log.gradients(leaf.grad, x.grad)
            log(x._version)


def test_zeros_for_gradients_that_did_not_arrive_were_written_once() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Pair(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                out = x.clone(), y.clone(), x.sum()
                ctx.mark_non_differentiable(out[2])
                return out

            @staticmethod
            def backward(ctx: Any, *g: Any) -> Any:
                log([t._version for t in g], g)
                return g[:2]

        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = torch.tensor([[1.0]], requires_grad=True)
        a, b, _ = Pair.apply(x, y)
        log(torch.autograd.grad(a.sum(), (x, y), retain_graph=True))
        log(torch.autograd.grad(b.sum(), (x, y), create_graph=True))
