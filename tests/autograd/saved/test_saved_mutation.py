"""Saved tensors that are written to: the context that allows it, `.data`, `detach_()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.sameness import Log, assert_equal, run, same
from helpers.tensors import numbers

import leafax


def tables(context: Any) -> tuple[int, int]:
    return len(list(context.cloned.items())), len(list(context.tid_to_weakhandle.items()))


def test_what_is_written_to_is_copied_and_backward_reads_the_copy() -> None:
    def program(lib: Any, see: Any) -> None:
        allow = lib.autograd.graph.allow_mutation_on_saved_tensors
        for write in ("sin_", "base", "view"):
            x = numbers(lib, 2, 3, requires_grad=True)
            with allow() as context:
                y = x.clone()
                z = y[:1] if write == "view" else y.view_as(y)
                out = (y**2).sum()
                if write == "sin_":
                    y.sin_()
                elif write == "base":
                    y *= 2
                else:
                    z *= 10
                see(tables(context)[0])
                out.backward()
                see(tables(context)[0])
            see.gradients(x.grad)

    same(program)


def test_each_version_is_copied_once_and_dies_with_its_nodes() -> None:
    def program(lib: Any, see: Any) -> None:
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as context:
            x = numbers(lib, 3, requires_grad=True).clone()
            y, z = x**2, x**2
            x.sin_()
            see(tables(context)[0])
            del y, z
            see(tables(context)[0])
            y = x**2
            x.sin_()
            z = x**2
            x.sin_()
            see(tables(context)[0])
            del y
            see(tables(context)[0])
            z.sum().backward()
            see(tables(context)[0])

    expected = run(program, torch)
    assert_equal(run(program, leafax), expected, "first run")
    assert_equal(run(program, leafax, eager=True), expected, "values read at once")


def test_second_gradients_and_out_arguments_see_what_was_saved() -> None:
    def program(lib: Any, see: Any) -> None:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            x = numbers(lib, 2, 2, requires_grad=True)
            y = x.clone()
            out = (y**3).sum()
            y.sin_()
            (first,) = lib.autograd.grad(out, x, create_graph=True)
            see.gradients(lib.autograd.grad(first.sum(), x)[0])
            w = numbers(lib, 2, 2)
            out = x * w
            lib.sin(w * 2, out=w)
            out.sum().backward()
            see.gradients(x.grad)

    same(program)


def test_backward_outside_of_the_context_and_nesting_raise() -> None:
    def program(lib: Any, see: Any) -> None:
        allow = lib.autograd.graph.allow_mutation_on_saved_tensors
        x = numbers(lib, 2, requires_grad=True)
        with allow():
            out = (x**2).sum()
        see.attempt(out.backward)
        with allow():
            out = (x**2).sum()
        with allow():
            see.attempt(out.backward)
        with see.catch(), allow(), allow():
            pass

    same(program)


@pytest.mark.parametrize("cut", [False, True])
def test_backward_reads_what_data_wrote(cut: bool) -> None:
    def program(lib: Any, see: Any) -> None:
        def pause() -> None:
            if cut and lib is leafax:
                lib.synchronize()

        x, w = numbers(lib, 3, requires_grad=True), numbers(lib, 3)
        loss = (x * x * w).sum()
        pause()
        x.data.mul_(2)
        w.data[0] = 7
        pause()
        loss.backward()
        see.gradients(x.grad)
        x.grad = None
        y = x.clone()
        loss = (y * y).sum() + y.exp().sum()
        pause()
        y.data.fill_(2)
        loss.backward()
        see.gradients(x.grad)
        see(x, y, w)

    same(program)


def test_setting_data_shares_memory_and_checks_the_type() -> None:
    def program(lib: Any, see: Any) -> None:
        x, y = numbers(lib, 3), numbers(lib, 3)
        x.data = y
        x.add_(1)
        see(x, y)
        y.mul_(2)
        see(x, y)
        view = x[:2]
        x.data = numbers(lib, 2, 2)
        x.add_(1)
        view.add_(1)
        see(x, view, y)
        leaf = numbers(lib, 2, requires_grad=True)
        with see.catch():
            leaf.data = lib.tensor([1, 2])
        loss = (leaf * leaf).sum()
        leaf.data = numbers(lib, 2) + 5
        loss.backward()
        see.gradients(leaf.grad)

    same(program)


def test_what_was_saved_and_detached_in_place_raises() -> None:
    def program(lib: Any, see: Any) -> None:
        for op in ("sin", "exp", "neg"):
            y = numbers(lib, 3, requires_grad=True).clone()
            out = getattr(y, op)().sum()
            y.detach_()
            see.attempt(out.backward)

    same(program)


def test_a_version_counted_by_hand_is_noticed() -> None:
    def program(lib: Any, see: Any) -> None:
        x = numbers(lib, 3, requires_grad=True)
        y = x.clone()
        view = y[1:]
        out = (y * y).sum()
        lib.autograd.graph.increment_version(view)
        see(y._version, view._version)
        see.attempt(out.backward)

    same(program)


def test_assigned_gradients_must_fit() -> None:
    def program(lib: Any, see: Any) -> None:
        x = numbers(lib, 2, 2, requires_grad=True)
        for grad in (numbers(lib, 3), numbers(lib, 2, 2).float(), lib.ones(2, 2).long(), x, 1):
            with see.catch():
                x.grad = grad

    same(program)


@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_attention_saves_a_mask_of_its_own_for_one_of_bools(dtype: str) -> None:
    def program(lib: Any, see: Any) -> None:
        q = numbers(lib, 1, 2, 3, 4, requires_grad=True)
        mask = lib.ones(3, 3).tril().to(getattr(lib, dtype))
        attend = lib.nn.functional.scaled_dot_product_attention
        out = attend(q, q, q, attn_mask=mask)
        mask.fill_(1)
        with see.catch():
            see(lib.autograd.grad(out.sum(), q)[0].mul(1e6).round().long().tolist())

    same(program)


REWRITES: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda y, n: y.data.copy_(n),
    "in part": lambda y, n: y.data[1:].mul_(2),
    "at an index": lambda y, n: y.data.__setitem__(0, 7.0),
    "other memory": lambda y, n: setattr(y, "data", n),
}


@pytest.mark.parametrize("how", REWRITES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_function_reads_what_data_left_of_its_saved_output(how: str, outputs: int) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        class Exp(lib.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                y = x.exp()
                ctx.save_for_backward(y)
                return y if outputs == 1 else (y, x + 1)

            @staticmethod
            def backward(ctx: Any, g: Any, *_: Any) -> Any:
                return g * ctx.saved_tensors[0]

        c = lib.tensor([0.5, 1.5, -2.0], requires_grad=True)
        made = Exp.apply(c)
        y = made if outputs == 1 else made[0]
        REWRITES[how](y, lib.tensor([3.0, 4.0, 5.0]))
        y.sum().backward()
        log.gradients(c.grad)


@pytest.mark.parametrize("view", ["view", "part", "expanded", "transposed"])
@pytest.mark.parametrize("leaf", [True, False])
def test_views_of_what_was_written_to_silently_and_used_again(view: str, leaf: bool) -> None:
    """A program ran between: the graph kept what the view had been before the write."""
    make = {
        "view": lambda t: t.view(3, 2), "part": lambda t: t[:3].view(3, 1),
        "expanded": lambda t: t[:2].expand(3, 2), "transposed": lambda t: t.view(2, 3).t(),
    }[view]  # fmt: skip

    @same
    def program(lib: Any, log: Log) -> None:
        for write in (
            lambda t: t.data.zero_(), lambda t: t.data[1:].mul_(2),
            lambda t: t.data.view(2, 3).t_().exp_(),
        ):  # fmt: skip
            x = lib.tensor([0.3, -0.7, 1.1, 2.0, -1.5, 0.9], requires_grad=True)
            c = lib.tensor([[0.5], [1.5], [-2.0]], requires_grad=True)
            whole = x if leaf else x * 2
            product = make(whole) * c
            write(whole)
            whole.exp().tolist()
            product.sum().backward()
            log.gradients(c.grad, x.grad)


DETACHED: dict[str, Callable[[Any], Any]] = {
    "a view": lambda t: t.view(2, 2).detach(),
    "a part": lambda t: t[1:].detach(),
    "the data of a view": lambda t: t.view(2, 2).data,
    "a view of a detached view": lambda t: t.view(2, 2).detach().t(),
    "parts of parts": lambda t: t[1:].detach()[1:].detach(),
}
BEHIND: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda t, v: t.data.mul_(2),
    "one": lambda t, v: t.data.__setitem__(3, 7),
    "itself": lambda t, v: v.data.mul_(2),
    "a view": lambda t, v: t.view(2, 2).data.t_().exp_(),
}


@pytest.mark.parametrize("how", BEHIND)
@pytest.mark.parametrize("what", DETACHED)
def test_what_was_detached_from_a_view_is_read_anew(what: str, how: str) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        for leaf in (True, False):
            x = lib.tensor([0.5, 1.5, -2.0, 1.0], requires_grad=True)
            c = lib.tensor([3.0, 4.0, 5.0, 6.0], requires_grad=True)
            whole = x if leaf else x * 2
            part = DETACHED[what](whole)
            product = c[: part.numel()].view(part.shape) * part
            BEHIND[how](whole, part)
            product.sum().backward()
            log.gradients(c.grad)


def test_what_a_detached_tensor_resizes_was_written_to() -> None:
    """`resize_` counts for all that share the counter; `.data` has one of its own."""

    @same
    def program(lib: Any, log: Log) -> None:
        for leaf in (True, False):
            for share in (lambda t: t.detach(), lambda t: t.data, lambda t: t.detach().view(-1)):
                for size in ((1,), (2,), (3, 1)):
                    x = lib.tensor([[0.5], [1.5], [-2.0]], requires_grad=True)
                    whole = x if leaf else x * 1
                    product = whole * whole
                    share(whole).resize_(size)
                    log(whole._version)
                    log.attempt(product.sum().backward)
                    log.gradients(x.grad)


FLAGGED: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda lib, y: y.requires_grad_(),
    "by its base": lambda lib, y: y._base.requires_grad_(),
    "taken away": lambda lib, y: y.requires_grad_().requires_grad_(False),
}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("how", FLAGGED)
def test_what_was_saved_requires_grad_later(how: str, before: bool) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        base = lib.tensor([3.0, 4.0, 5.0])
        y = base[:2] if how == "by its base" else base[:2].clone()
        if before and how != "by its base":
            y.requires_grad_()
        z = x * y
        with log.catch():
            FLAGGED[how](lib, y)
        for create_graph in (False, True):
            (g,) = lib.autograd.grad(z.sum(), x, create_graph=create_graph, retain_graph=True)
            log(g, g.requires_grad, g.grad_fn, y.requires_grad)


def test_what_got_other_memory_counts_writes_for_what_was_saved() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        for view in (False, True):
            w = lib.tensor([1.0, 2.0], requires_grad=True)
            x = lib.tensor([1.0, 2.0])
            v = x.view(2) if view else x
            loss = (w * v).sum()
            x.data = lib.tensor([5.0, 6.0])
            x.add_(1)
            log(x._version, v._version, v, x)
            log.attempt(loss.backward)
            log.gradients(w.grad)


def test_views_of_data_that_are_turned_count_for_themselves() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        w = lib.ones(3, 2, requires_grad=True)
        x = lib.arange(6.0).view(2, 3)
        d = x.data
        d.t_()
        loss = (w * d).sum()
        d.t_()
        log.attempt(loss.backward)
        x.add_(1)
        loss = (w * d.t()).sum()
        x.add_(1)
        log(d._version, x._version)
        log.attempt(loss.backward)
        log.gradients(w.grad)
