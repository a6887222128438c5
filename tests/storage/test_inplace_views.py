"""Views in place, writes to memory that is shared within a tensor, `out=` arguments."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import Log, same
from helpers.tensors import numbers

VIEWS = {
    "t_": (), "transpose_": (0, 1), "swapaxes_": (0, 1), "swapdims_": (0, 1), "unsqueeze_": (0,),
    "squeeze_": (0,), "as_strided_": ((2, 2), (1, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", VIEWS)
def test_view_in_place(name: str) -> None:
    """Base or view, in grad mode or not: node names, versions, and writes afterwards."""

    def program(lib: Any, see: Any) -> None:
        for kind in ("plain", "base", "view", "multi", "leaf"):
            for view_grad, write_grad in ((True, True), (True, False), (False, True)):
                x = numbers(lib, 2, 3, requires_grad=kind != "plain")
                x = x if kind in ("plain", "leaf") else x.clone()
                with lib.set_grad_enabled(view_grad):
                    y = x.view_as(x) if kind == "view" else x.unbind()[0] if kind == "multi" else x
                if kind == "multi" and name in (
                    "transpose_",
                    "swapaxes_",
                    "swapdims_",
                    "as_strided_",
                ):
                    continue
                with lib.set_grad_enabled(write_grad):
                    see.attempt(getattr(y, name), *VIEWS[name])
                see.attempt(lambda y=y: see(y))
                see.attempt(y.mul_, 2)
                see.attempt(lambda x=x, y=y: see(x, y))
                see(tuple(y.shape), y.stride())

    same(program)


def test_base_transposed_in_place_keeps_its_views() -> None:
    def program(lib: Any, see: Any) -> None:
        leaf = numbers(lib, 2, 3, requires_grad=True)
        x = leaf.clone()
        row = x[0]
        x.t_()
        row.mul_(3)
        see(x, row)
        (x * x).sum().backward()
        see.gradients(leaf.grad)

    same(program)


def test_views_of_other_elements_are_made_again_by_name() -> None:
    def program(lib: Any, see: Any) -> None:
        z = lib.view_as_complex(numbers(lib, 3, 2)).requires_grad_()
        for steps in (lambda y: y, lambda y: y.t(), lambda y: y[1:].t()):
            y = z.clone()
            real = steps(lib.view_as_real(y))
            real += 1
            see(real, y)
            see(real.grad_fn)
            (real * real).sum().backward()
        see.gradients(z.grad)

    same(program)


def test_writes_to_repeated_elements() -> None:
    def program(lib: Any, see: Any) -> None:
        index, one = lib.tensor([0]), lib.tensor(1.0, dtype=lib.float64)
        writes = {
            "add_": (1,), "sin_": (), "clamp_": (0, 1), "copy_": (numbers(lib, 4, 3),),
            "index_add_": (0, index, numbers(lib, 1, 3)), "cumsum_": (0,), "uniform_": (),
            "zero_": (), "fill_": (2.0,), "masked_fill_": (lib.tensor(True), 3.0),
            "index_fill_": (0, index, 4.0), "index_put_": ((index,), one),
        }  # fmt: skip
        for name, args in writes.items():
            x = numbers(lib, 1, 3)
            spread = x.expand(4, 3)
            see.attempt(lambda name=name, args=args, y=spread: getattr(y, name)(*args) is None)
            see(x, spread)
        spread[0] = 1
        spread[0].add_(1)
        see(x, spread)

    same(program)


def test_writes_that_overlap_in_part() -> None:
    # A reduction into a part of its input (`sum(x, 0, out=x[0])`) is refused as these are; PyTorch
    # gives what its kernel's order gives.
    def program(lib: Any, see: Any) -> None:
        y = numbers(lib, 3, 3)
        for write in (
            lambda: y[0].add_(y), lambda: y.add_(y.t()), lambda: y[1:].copy_(y[:-1]),
            lambda: y[1:].addcmul_(y[:-1], y[:-1]), lambda: y.add_(y[:1]), lambda: y.add_(y[0, 0]),
            lambda: lib.add(y[:-1], 1, out=y[1:]), lambda: lib.sin(y.t(), out=y),
            lambda: y.__setitem__(slice(1, None), y[:-1]), lambda: y.masked_fill_(y > 0, y[0, 0]),
            lambda: y.add_(y), lambda: y[1:].mul_(y[1:]), lambda: y[::2].add_(y[:2]),
            lambda: y.copy_(y),
        ):  # fmt: skip
            see.attempt(lambda write=write: write() is None)
            see(y)

    same(program)


def test_out() -> None:
    def program(lib: Any, see: Any) -> None:
        a, wide = numbers(lib, 2, 2), numbers(lib, 2, 2, requires_grad=True)
        makers = (
            lambda: lib.zeros(2, 2, dtype=lib.float64), lambda: lib.zeros(3, dtype=lib.float64),
            lambda: lib.empty(0, dtype=lib.float64), lambda: lib.zeros(2, 2, dtype=lib.int64),
            lambda: lib.zeros(2, 2), lambda: numbers(lib, 2, 2, requires_grad=True),
        )  # fmt: skip
        for op in (
            lambda x, out: lib.mul(x, x, out=out), lambda x, out: lib.sin(x, out=out),
            lambda x, out: lib.mm(x, x, out=out), lambda x, out: lib.cat([x, x], out=out),
            lambda x, out: lib.eq(x, x, out=out), lambda x, out: lib.sum(x, 0, out=out),
            lambda x, out: lib.where(x > 0, x, x, out=out),
        ):  # fmt: skip
            for make in makers:
                out = make()
                see.attempt(op, a, out)
                see(out)
            see.attempt(op, wide, makers[0]())
            with lib.no_grad():
                see.attempt(op, wide, makers[0]())
        see.attempt(lib.sin, a, out=1)
        with lib.inference_mode():
            made = lib.zeros(2, 2, dtype=lib.float64)
        see.attempt(lib.mul, a, a, out=made)

    same(program)


def test_resize_counts_a_version_only_if_it_changes_the_shape() -> None:
    def program(lib: Any, see: Any) -> None:
        x, y = numbers(lib, 1), numbers(lib, 3)
        for resize in (
            lambda: x.resize_((1, 2)), lambda: x.resize_as_(y), lambda: x.resize_((3,)),
            lambda: x.resize_as_(y),
        ):  # fmt: skip
            resize()
            see(x._version, tuple(x.shape))
        see.attempt(numbers(lib, 2, requires_grad=True).resize_, 3)

    same(program)


def test_split_without_views() -> None:
    def program(lib: Any, see: Any) -> None:
        for split in (
            lambda x: x.unsafe_split(1), lambda x: x.unsafe_split_with_sizes((1, 2)),
            lambda x: x.unsafe_chunk(3), lambda x: x.split(1), lambda x: x.chunk(2),
        ):  # fmt: skip
            leaf = numbers(lib, 3, 3, requires_grad=True)
            parts = split(leaf + leaf)
            see(parts)
            see.attempt(parts[0].mul_, 2)
            see.attempt(lambda parts=parts: parts[0].sum().backward())
            see.gradients(leaf.grad)

    same(program)


def test_what_a_function_returns_as_a_view() -> None:
    def program(lib: Any, see: Any) -> None:
        class View(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, many: bool) -> Any:
                y = x.narrow(0, 0, 2)
                return (y, x + 1) if many else y

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return grads[0], None

        for many in (False, True):
            for requires_grad in (False, True):
                for grad_mode in (False, True):
                    x = numbers(lib, 2, requires_grad=requires_grad).clone()
                    with lib.set_grad_enabled(grad_mode):
                        out = View.apply(x, many)
                    out = out[0] if many else out
                    see(out)
                    see.attempt(out.add_, numbers(lib, 2, requires_grad=True))

    same(program)


def test_a_function_that_wrote_to_a_view_gets_no_gradient() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Write(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any) -> Any:
                ctx.mark_dirty(x)
                return x.add_(y)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad, grad

        a = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        b = torch.tensor([5.0, 6.0], requires_grad=True)
        x = a.clone()
        Write.apply(x[0], b)
        none = torch._C._functions.UndefinedGrad()(x)
        log(torch.autograd.grad(none.sum(), (a, b), allow_unused=True))
        log.gradients(*torch.autograd.grad(x.sum(), (a, b)))


@pytest.mark.parametrize("change", ["unsqueeze_", "t_", "as_strided_"])
@pytest.mark.parametrize("first", ["part", "whole", "neither"])
def test_one_of_several_views_that_is_changed_without_grad(first: str, change: str) -> None:
    given: Any = {"unsqueeze_": (0,), "t_": (), "as_strided_": ((1, 2), (2, 1))}

    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.tensor([0.5, 1.5, -2.0, 1.0], dtype=lib.float64, requires_grad=True) * 1
        part = x.chunk(2)[0].view(-1)
        with lib.no_grad():
            if first != "neither":
                {"part": part, "whole": x}[first].mul_(2)
            getattr(part, change)(*given[change])
        with log.catch():
            log(part)
        with lib.no_grad():
            part.mul_(2)
        with log.catch():
            log(part.grad_fn)
        with log.catch():
            part.mul_(2)
        log(part.detach(), x)


@pytest.mark.parametrize("view", [lambda x: x.unbind(0)[0], lambda x: x[0], lambda x: x[0][:]])
def test_views_of_what_was_cut_off_are_written_to_without_grad(view: Any) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.ones(2, 3, dtype=lib.float64, requires_grad=True) * 1
        part, other = view(x), x[0]
        x.detach_()
        x.sub_(2)
        with lib.no_grad():
            part.mul_(3)
        for t in (part, other, x):
            with log.catch():
                log(t.requires_grad, t.is_leaf, t.grad_fn, t)
