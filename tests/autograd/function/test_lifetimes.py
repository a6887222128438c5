"""Lifetimes of the tensors, nodes and hooks that a Function holds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest
from helpers.sameness import Log, same

import leafax


@pytest.fixture(autouse=True)
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("hooked", [False, True])
def test_boxed_gradients_are_held_by_the_box_alone(hooked: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Boxed(torch.autograd.Function):
            boxed_grads_call = True

            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, grads: Any) -> Any:
                (grad,) = grads
                seen, made = ref(grad), grad * 2
                grads.clear()
                del grad
                log(seen() is None)
                return made

        x = torch.ones(2, requires_grad=True)
        y = Boxed.apply(x)
        if hooked:
            y.grad_fn.register_hook(lambda given, taken: log(taken[0].detach()))
        y.sum().backward()
        log.gradients(x.grad)


def test_saved_tensors_that_are_cleared_on_access() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Once(torch.autograd.Function):
            clear_saved_tensors_on_access = True

            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.save_for_backward(x, y)
                return x * y

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                x, y = ctx.saved_tensors
                log.attempt(lambda: ctx.saved_tensors)
                log(ctx._raw_saved_tensors)
                made, seen = (grad * y, grad * x), ref(y)
                del x, y
                log(seen() is None)
                return made

        x = torch.ones(2, requires_grad=True)
        y = Once.apply(x, x * 2)
        y.sum().backward(retain_graph=True)
        log.gradients(x.grad)
        log.attempt(y.sum().backward)
        node = Once.apply(x, x * 2).grad_fn
        log(len(node.saved_tensors))
        log.attempt(lambda: node.saved_tensors)


def test_a_view_that_was_written_to_and_saved_dies_with_its_last_reference() -> None:
    class Writes(leafax.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = leafax.ones(2, requires_grad=True).clone()
    x = x.view_as(x)
    seen = ref(Writes.apply(x))
    assert seen() is x
    del x
    assert seen() is None


class _Kept:
    """Somebody's object: whether it is still there tells of what holds it."""


@pytest.mark.parametrize("of_tensor", [False, True])
@pytest.mark.parametrize("custom", [False, True])
def test_a_cycle_through_a_hook_is_collected(custom: bool, of_tensor: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

        def scope() -> Any:
            x = torch.tensor(1.0, requires_grad=True)
            y = Same.apply(x) if custom else x.clone()
            node, kept = y.grad_fn, _Kept()

            def hook(*args: Any) -> None:
                calls.append((node, kept))

            (y if of_tensor else node).register_hook(hook)
            return y.clone(), ref(kept)

        calls: list[Any] = []
        out, seen = scope()
        for _ in range(2):
            out.backward(retain_graph=True)
            gc.collect()
        log(len(calls), seen() is None)
        calls.clear()
        del out
        gc.collect()
        log(seen() is None)


@pytest.mark.parametrize("backward", [False, True])
def test_a_cycle_through_ctx_is_collected(backward: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Keeps(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, table: Any) -> Any:
                ctx.table = table
                y = x.clone()
                ctx.save_for_backward(y)
                return y

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                log(ctx.saved_tensors[0], ctx.table["out"])
                return g * 2, None

        def scope() -> Any:
            x = torch.tensor(3.0, requires_grad=True)
            table = {"kept": _Kept()}
            table["out"] = Keeps.apply(x, table)
            gc.collect()
            if backward:
                table["out"].backward()
                log(x.grad)
            return ref(table["kept"])

        seen = scope()
        log(seen() is None)
        gc.collect()
        log(seen() is None)


@pytest.mark.parametrize("observed", [False, True])
def test_what_somebody_holds_outlives_the_collector(observed: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Twice(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                gc.collect()
                return g * 2

        def collect(*args: Any) -> None:
            gc.collect()
            calls.append(len(args))

        calls: list[int] = []
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = Twice.apply(x)
        z = y.exp().sin()
        inner = z.grad_fn.next_functions[0][0]
        inner.register_hook(collect)
        y.register_hook(collect)
        outer = torch.autograd.graph.get_gradient_edge(z)
        del y, z
        gc.collect()
        if observed:
            log(x.sum().item())
            gc.collect()
        log(outer.node.next_functions[0][0] is inner)
        log(inner.next_functions[0][0].name())
        log(torch.autograd.grad(outer, x, torch.ones(2)), calls)


def test_a_tensor_that_a_program_knows_twice_is_let_go_once() -> None:
    """Each write makes it known again; the collector's callback must not fail on that."""
    x = leafax.ones(3, requires_grad=True)
    y = x * 2
    node = y.grad_fn
    y.mul_(2)
    y.mul_(3)
    gc.collect()
    y.sum().backward()
    assert x.grad.tolist() == [12.0] * 3 and node.name() == "MulBackward0"


def test_the_collector_finds_leaves_that_no_graph_leads_to() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def hooked() -> Any:
            kept = _Kept()
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            x.register_post_accumulate_grad_hook(lambda p: kept)
            x.sum().backward()
            return x, ref(kept)

        x, seen = hooked()
        gc.collect()
        log(seen() is None)
        del x
        gc.collect()
        log(seen() is None)

        def scope(run: bool) -> Any:
            x = torch.tensor([1.0, 2.0], requires_grad=True)
            x.me = x
            y = (x * 2).view(2)
            z = y.sum()
            if run:
                z.backward(retain_graph=True)
            return z, ref(x), ref(y)

        for run in (False, True):
            z, leaf, middle = scope(run)
            gc.collect()
            log(leaf() is None, middle() is None)
            z.backward()
            log(leaf().grad)
            del z
            gc.collect()
            log(leaf() is None)


@pytest.mark.parametrize("retain", [False, True])
def test_saved_tensors_that_are_cleared_by_hand(retain: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Cleared(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.mark_shared_storage((x, x))
                ctx.save_for_backward(x)
                return x.clone()

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                (x,) = ctx.saved_tensors
                log.attempt(ctx.maybe_clear_saved_tensors)
                log.attempt(lambda: len(ctx.saved_tensors))
                return grad * x

        log(Cleared.clear_saved_tensors_on_access, Cleared.boxed_grads_call)
        x = torch.ones(2, requires_grad=True)
        y = Cleared.apply(x)
        y.grad_fn.maybe_clear_saved_tensors()  # outside of a backward
        log(len(y.grad_fn.saved_tensors))
        y.sum().backward(retain_graph=retain)
        log.gradients(x.grad)
        log.attempt(y.sum().backward)


def test_a_leaf_that_nobody_holds_has_expired() -> None:
    """`_WeakTensorRef` is asked what the pending program alone holds."""

    @same
    def program(torch: Any, log: Log) -> Any:
        gone = torch._C._WeakTensorRef
        x = torch.ones(2, requires_grad=True)
        alone, used = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
        refs = [gone(t) for t in (x, alone, used)]
        y = used * x
        log([r.expired() for r in refs])
        del alone, used
        log([r.expired() for r in refs])
        del y
        log([r.expired() for r in refs], x)
        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            tangent = torch.ones(2, requires_grad=True)
            held = gone(tangent)
            dual = forward_ad.make_dual(torch.ones(2), tangent)
            del tangent
            log(held.expired(), dual)
            del dual
            log(held.expired())
