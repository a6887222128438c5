"""Small programs that random ones were shrunk to: each showed a difference from PyTorch once."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest
from helpers.sameness import Log, same


def test_gradients_are_cast_where_they_begin() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.zeros(3, dtype=lib.float64, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: log(g.dtype))
        log(lib.autograd.grad(y, (y, x), lib.ones(3)))
        g = lib.ones(3, requires_grad=True)
        log(lib.autograd.grad(x, x, g, create_graph=True)[0].grad_fn)
        z = lib.zeros(3, requires_grad=True)
        z.register_hook(lambda g: log(g.dtype))
        z.backward(lib.ones(3, dtype=lib.float64))


def test_which_gradient_does_not_fit_is_told_by_what_it_equals() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y, one = x * 2, lib.ones(())
        log.attempt(lib.autograd.backward, [y, y], [lib.ones(2), one])
        log.attempt(lib.autograd.backward, [x.sum(), y], [None, one])
        log.attempt(lib.autograd.backward, [x.sum(), y], [lib.ones(()), one])
        log.attempt(lib.autograd.backward, [y * 1j, y * 1j], [y * 1j, lib.ones(2)])


def test_copies_of_what_shares_memory_share_it() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        everything = [x, x.t(), x[:, 1], x[0].expand(2, 2), x.view(lib.int32), x[:0]]
        copies = copy.deepcopy(everything)
        copies[2].mul_(5)
        log(copies, everything, copy.deepcopy(x[1:, 1]), copy.deepcopy(lib.tensor([1j]).conj()))
        log([c._is_view() for c in copies])
        leaf = lib.ones(3, requires_grad=True)
        again, part = copy.deepcopy([leaf, leaf.detach()[1:]])
        part.zero_()
        (again * again).sum().backward()
        log(again, part)
        log.gradients(again.grad)


def test_copies_of_what_has_no_elements_keep_its_strides() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for x in (lib.zeros(2, 3)[::2][:0], lib.zeros(2, 3, 2)[:, :0].transpose(0, 2)):
            log(lib.ones_like(x), x.clone(), x.double(), x.t() if x.dim() == 2 else x, x + 1)


def test_apply_is_no_write_that_a_version_counts() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([1.0, 2.0])
        log(x.apply_(lambda v: v + 1), x._version)


def test_writes_by_index_do_not_read_their_target() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        two = lib.tensor([0, 1])
        for other in (lambda x: x[:2], lambda x: x[1:], lambda x: x[:2].clone()):
            for write in (
                lambda a, b: a.scatter_(0, two, b),
                lambda a, b: a.scatter_(0, two, b, reduce="add"),
                lambda a, b: a.scatter_reduce_(0, two, b, "sum"),
                lambda a, b: a.index_reduce_(0, two, b, "prod"),
                lambda a, b: a.put_(two, b),
                lambda a, b: a.put_(two, b, True),
                lambda a, b: a.clamp_(min=b),
                lambda a, b: lib.gather(b, 0, two, out=a),
                lambda a, b: lib.take(b, two, out=a),
                lambda a, b: lib.index_select(b, 0, two, out=a),
                lambda a, b: lib.cumsum(b, 0, out=a),
            ):
                x = lib.tensor([1.0, 2.0, 3.0])
                with log.catch():
                    write(x[:2], other(x))
                log(x)
        log.attempt(lambda: two.index_fill_(0, two, 2))


def test_a_gradient_that_lies_otherwise_is_told_of() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        lib.set_warn_always(True)
        x = lib.ones(2, 3, requires_grad=True)
        for grad in (lib.ones(3, 2).t(), lib.ones(4, 3)[::2], lib.ones(2, 3)):
            x.grad = grad
            x.sum().backward()
            x.sum().backward(create_graph=True)
        lib.set_warn_always(False)


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_parameters_that_share_memory_are_updated_one_after_the_other(name: str) -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for other in (
            lambda a: a.detach().view(-1).requires_grad_(),
            lambda a: a.detach()[0, 1:].requires_grad_(),
            lambda a: a.detach()[0, :0].requires_grad_(),
            lambda a: a,
            lambda a: a.view(-1),
        ):
            a = lib.tensor([[1.0, -1.75, 2.0]], requires_grad=True)
            b = other(a)
            b.retain_grad()
            c, d = (x.detach().requires_grad_() for x in lib.ones(4).chunk(2))
            made = getattr(lib.optim, name)([a, c, b, d], lr=0.1, weight_decay=0.5)
            for _ in range(3):
                made.zero_grad()
                ((a * a).sum() + (b**3).sum() + (c * d).sum()).backward()
                made.step()
                log([x.detach() for x in (a, b, c, d)])


def test_which_slices_are_none() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        none, two = lib.zeros((0, 3), requires_grad=True), lib.ones((2, 3), requires_grad=True)
        for k in (slice(-1), slice(5), slice(-3, None), slice(0, 0), slice(None, None, 2)):
            log(none[k, :], two[k, :], two[:0][k, :])


def test_hooks_of_roots_that_lead_nowhere() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x, w = lib.ones(2, requires_grad=True), lib.ones(3, requires_grad=True)
        y, far = x * 2, (w * w).sum()
        y.register_hook(lambda g: log("hook", g))
        x.register_hook(lambda g: log("leaf's hook", g))
        y.retain_grad()
        one = lib.ones(2)
        log.gradients(*lib.autograd.grad([far, y, x], w, [None, one, one], retain_graph=True))
        log(y.grad)
        log(lib.autograd.grad(y, w, one, allow_unused=True))
        log(lib.autograd.grad([y, y], w, [one, one], allow_unused=True))


def test_one_number_goes_where_one_mask_is_true_whatever_its_dtype() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x, number = lib.tensor([[0, -1], [-2, 1]]), lib.tensor(2.5, dtype=lib.float64)
        mask = [True, False]
        x[None, mask] = number
        x[:, mask] = number + 1
        x[0, mask] = number + 2
        x[..., mask] = number
        with log.catch():
            x[lib.tensor([0]), mask] = number
        log(x)


def test_several_outs_are_checked_before_one_is_written_to() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for name in ("max", "min"):
            out = lib.zeros(2), lib.zeros(2)
            log.attempt(getattr(lib, name), lib.ones(2, 2), 0, out=out)
            log(out, [t._version for t in out])


def test_writes_to_a_part_of_overlapping_windows() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for window in (
            lambda x: x.unfold(-1, 2, 1),
            lambda x: x.as_strided((3, 2), (1, 1)),
            lambda x: x.view(2, 3).as_strided((2, 2, 2), (1, 2, 1)).transpose(0, 1)[0],
        ):
            for write in (
                lambda w: w[:, 1].mul_(2),
                lambda w: w[1].fill_(7),
                lambda w: w.t()[1, :2].add_(1),
                lambda w: w[::2].neg_(),
                lambda w: w.unfold(0, 2, 1)[0, 0].sub_(3),
                lambda w: w.as_strided((2,), (1,), 1).mul_(3),
            ):
                leaf = lib.tensor([-1.0, -2.0, -3.0, 4.0, 5.0, 6.0], requires_grad=True)
                x = leaf * 1
                w = window(x)
                write(w)
                write(window(x))
                (x * x).sum().backward()
                log(x, w)
                log.gradients(leaf.grad)
        z = lib.tensor([1 + 2j, 3 - 1j, 2j])
        z.unfold(0, 2, 1)[:, 1].imag.mul_(5)
        lib.view_as_real(z).unfold(0, 2, 1)[1, 0].add_(1)
        log(z)


@pytest.mark.exhaustive
def test_complex_numbers_are_divided_as_numpy_does() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x = lib.tensor([1 + 1j, 2 - 1j, 0j, 4j, 3 + 0j], requires_grad=True)
        for by in (0, 0.0, 0j, lib.zeros(5), lib.zeros(5, dtype=lib.complex64)):
            log.lines.append([str(z) for z in lib.view_as_real(x.detach() / by).tolist()])
        y = lib.tensor([3 + 1j, 0.5 - 1j, -1j, 1e3 + 0j, 7j], requires_grad=True)
        (x / y).abs().sum().backward(create_graph=True)
        (y.grad.abs().sum() + x.grad.real.sum()).backward()
        log(x / y)


def test_a_gradient_with_a_graph_lies_as_its_leaf_does() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        for make in (lambda x: x, lambda x: x.t(), lambda x: x[:, ::2]):
            x = make(lib.ones(2, 3)).detach().requires_grad_()
            y = (x.t() * 0.5).sin().mean()
            for again in (True, True, False):
                y.backward(create_graph=again, retain_graph=True)
                log(x.grad.stride(), x.grad.grad_fn)


@pytest.mark.exhaustive
def test_what_backward_says_of_places_and_of_what_has_no_derivative() -> None:
    """Indices that were written to are no node's output; without a gradient, too, it refuses."""

    @same
    def program(t: Any, log: Log) -> None:
        class Partly(t.autograd.Function):  # type: ignore[name-defined, misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.set_materialize_grads(False)
                return x * 3, x.sin()

            @staticmethod
            def backward(ctx: Any, g: Any, h: Any) -> Any:
                return g

        for find in ("sort", "max", "median", "cummax", "mode", "min"):
            b = t.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], requires_grad=True)
            values, places = getattr(b * 2, find)(dim=0)
            places.clamp_min_(0)
            log.attempt(values.sum().backward)
            b = b.detach().view(-1).requires_grad_()
            found = (b * 2).unique() if find != "sort" else (b * 2).sort()[0]
            log.attempt(Partly.apply(found)[1].sum().backward)


def test_a_cast_that_is_refused_warns_of_nothing() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        z = t.tensor([[0.5 + 1j, -2j], [1.5, 1 - 1j]], requires_grad=True)
        for cast in (lambda x: x.float(), lambda x: x.to(t.float64)):
            view, other = z.chunk(2, -1)
            t.autograd.graph.increment_version(other)
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                log.attempt(cast, view)
            log(len(found))


def test_what_jvp_returns_is_a_view_of_what_the_function_returned() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        x, kept = lib.tensor([1.0, 2.0]), lib.tensor([3.0, 4.0])
        weight = lib.tensor([0.5, 1.5], requires_grad=True)
        out, tangent = lib.func.jvp(lambda x: kept, (x,), (x,))
        log(out, tangent, out is kept, out._base is kept)
        out.mul_(2).requires_grad_()
        log(out, kept, kept.requires_grad)
        out = lib.func.jvp(lambda x: weight, (x,), (x,))[0]
        log(out, out is weight)
        log.attempt(out.mul_, 2)
        log.attempt(out.detach_)
        out = lib.func.jvp(lambda x: {"sum": (x * weight).sum()}, (x,), (x,))[0]["sum"]
        log(out, out.grad_fn)
        out.backward()
        log(weight.grad)


def test_what_is_made_of_products_with_numbers_is_differentiated_twice() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        x = lib.tensor([0.3, -0.7, 1.1], requires_grad=True)
        for f in (lib.trapezoid, lib.cumulative_trapezoid, lambda t: lib.gradient(t)[0]):
            y = f(x).sum()
            y.backward()
            y.backward()
            log.gradients(x.grad)
