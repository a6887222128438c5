"""Views: what a write through one does to the others, and to their history, against torch."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from helpers.sameness import same

VIEWS = {
    "select": lambda y: y[0],
    "slice": lambda y: y[:, 1:],
    "step": lambda y: y[:, ::2],
    "t": lambda y: y.t(),
    "view": lambda y: y.view(-1),
    "view of view": lambda y: y.t()[1:].unsqueeze(0),
    "diagonal": lambda y: y.diagonal(),
    "narrow": lambda y: y.narrow(1, 0, 2),
    "permute": lambda y: y.permute(1, 0),
    "squeeze": lambda y: y.unsqueeze(0).squeeze(0),
    "transpose": lambda y: y.transpose(0, 1)[0],
    "reshape": lambda y: y.reshape(3, 2),
    "flatten": lambda y: y.flatten()[1:4],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_write_through_a_view(view: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        y = x * 2
        before = view(y)
        v, other = view(y), y[1]
        see(v, v._base is y, v.stride(), v.storage_offset(), v.is_contiguous())
        v.mul_(x.sum())
        see(y, v, other, before, y.grad_fn, v.grad_fn, other.grad_fn)
        y.add_(1)
        v.sin_()
        see(y, v, other)
        (y * other.sum()).sum().backward()
        see.gradients(x.grad)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_write_to_a_plain_base(view: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
        b = torch.arange(6, dtype=torch.float64).reshape(2, 3)
        v = view(b)
        b.mul_(3)
        see(v, b)
        v.copy_(v.detach().clone() * x)
        see(b, v)
        b.sum().backward()
        see.gradients(x.grad)


def test_views_made_without_grad() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            u, v = x[0], y[0]
        see(u, v)
        see((u * 2).grad_fn.next_functions)
        see.attempt(lambda: u.sum().backward())
        with see.catch():
            u.mul_(2)
        with see.catch():
            v.mul_(2)
        with torch.no_grad():
            u.mul_(2)
            x[1] = 5.0
        see(x)
        y.mul_(2)
        see.attempt(lambda: v.grad_fn)
        see.attempt(lambda: v * 2)
        see(v.requires_grad)


def test_views_of_several_results() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        a, b = y.unbind(0)
        see(a, b)
        see.attempt(a.mul_, 2)
        with torch.no_grad():
            c, d = y.split(1)
        see.attempt(c.mul_, 2)
        y.mul_(2)
        see.attempt(lambda: b.grad_fn)
        see.attempt(lambda: b + 1)


def test_base_changes_its_flags() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        b = torch.ones(2, 3, dtype=torch.float64)
        v = b[0]
        b.requires_grad_()
        see(v)
        see((v * 2).grad_fn.next_functions)
        b.requires_grad_(False)
        see(v)


def test_copies_are_no_views() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
        y = x * 2
        r, f, c = y.t().reshape(6), y.t().flatten(), y.t().contiguous()
        see(r, f, c, r.grad_fn, f.grad_fn)
        y.zero_()
        see(r, f, c)
        flat = torch.ones(3)
        see(flat.flatten() is flat, flat.contiguous() is flat)


def test_retained_gradient_moves_with_writes() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = x * 2
        y.retain_grad()
        y.mul_(3)
        see(y.retains_grad)
        y.sum().backward()
        see.gradients(y.grad)
        y = x * 2
        y.retain_grad()
        y[0].mul_(3)
        y.sum().backward(retain_graph=True)
        y.sum().backward()
        see.gradients(y.grad, x.grad)


def test_a_base_that_requires_grad_later() -> None:
    """Views written to since get their history from it; the others have none."""

    @same
    def program(torch: Any, see: Any) -> None:
        for through_base in (False, True):
            a = torch.ones(2, 3, dtype=torch.float64)
            written, read, after = a.flatten(), a.t(), a[0]
            with torch.no_grad():
                (a if through_base else written).sub_(0.5)
            see(read.sum())
            made = a.view(3, 2)
            a.requires_grad_()
            see(written, read, after, made, a)
            (written * read.flatten()).sum().backward()
            see(a.grad)


def test_no_dims_to_move() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        s = torch.ones(3, dtype=torch.float64, requires_grad=True).sum()
        see(s.movedim(0, -1), torch.moveaxis(s, 0, 0), torch.movedim(s, (), ()))
        see(s[None].movedim(0, -1))


def test_history_asked_for_in_inference_mode() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        y = torch.ones(2, 3, dtype=torch.float64, requires_grad=True) * 2
        v = y.expand(2, 3)
        y.clamp_(-1, 1)
        with torch.inference_mode():
            z = 1.5 * v
        see(v, z)


def test_views_and_functions() -> None:
    """A view made without grad has no edge, and no place to accumulate."""

    @same
    def program(torch: Any, see: Any) -> None:
        class Next(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                see(ctx.needs_input_grad)
                return x + 1

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

        b = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        with torch.no_grad():
            v = b.unflatten(-1, (1, -1))
        y = Next.apply(v)
        see(v, y)
        y.sum().backward()
        see(b.grad, v.grad)


def test_node_names_under_hooks() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        y = torch.ones(2, 3, dtype=torch.float64, requires_grad=True) * 2
        v = y[1:]
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            v.sigmoid_()
            w = y.exp()
        see(y, v, w, y.grad_fn, w.grad_fn)


def test_an_index_written_from_a_view_of_the_same() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(3, dtype=torch.float64)
        with see.catch():
            x[[0]] = x.view_as(x)
        with see.catch():
            x[[0, 1, 2]] = x.view(3)
        see(x)


def test_flags_of_views_written_to() -> None:
    """`requires_grad_` does not ask for the history that the view will have."""

    @same
    def program(torch: Any, see: Any) -> None:
        class Same(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return g

        b = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        s = Same.apply(b)
        a = torch.ones(2, 3, dtype=torch.float64)
        v, w = a.view(-1), a.t()
        with torch.no_grad():
            b.zero_()
            v.mul_(2)
        with see.catch():
            s.requires_grad_(False)
        a.requires_grad_()
        see(v.requires_grad_(False).requires_grad, v)
        with see.catch():
            v.requires_grad_(False)
        w.requires_grad = True
        see(w)
        with see.catch():
            w.requires_grad = True


def test_a_view_of_what_hooks_saw() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        d = torch.ones(2, 3, dtype=torch.float64, requires_grad=True) * 2
        v = d[1:]
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            v[torch.tensor([0])] = 0.5
        v.t_()
        see(d, v)
        see(d.grad_fn)


def test_an_index_is_matched_before_types() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, 3, dtype=torch.float64)
        for shape in ((2, 1), (1, 3)):
            with see.catch():
                x[[0]] = torch.ones(shape, dtype=torch.complex128)
        x[[0]] = torch.tensor(2.5, dtype=torch.float32)
        see(x)


def test_no_sizes_given() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2)
        for name in ("permute", "view", "expand", "reshape", "repeat", "flip", "tile"):
            with see.catch():
                getattr(x, name)()


@pytest.mark.parametrize("name", ["atan2_", "hypot_", "nextafter_", "fmod_", "copysign_", "gcd_"])
def test_a_target_is_looked_at_before_kernels(name: str) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        for shape in ((2,), ()):
            with see.catch():
                x = torch.ones(2, dtype=torch.float64)
                getattr(x, name)(torch.ones(shape, dtype=torch.complex128))


def test_a_saved_leaf_is_named_by_its_new_shape() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        b = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        y = torch.maximum(b, b * 2)
        with torch.no_grad():
            b.transpose_(0, -1)
        with see.catch():
            y.sum().backward()


def test_unflatten_of_a_tensor_without_dimensions() -> None:
    @same
    def program(torch: Any, log: Any) -> Any:
        x = torch.tensor(1.0, requires_grad=True)
        log.attempt(lambda: x.unflatten(-1, (1, -1)))
        log.attempt(lambda: (x * 2).unflatten(0, (1,)))


def test_strides_of_parts_of_complex_tensors() -> None:
    @same
    def program(torch: Any, log: Any) -> Any:
        z = torch.tensor([[0.5 + 1j, -2j], [1.5, 1 - 1j]], dtype=torch.complex128)
        pairs = torch.view_as_real(z)
        again = torch.view_as_complex(pairs[1:])
        for x in (z.imag, z.real, z[1].imag, z.t().real, pairs, again, z.imag.view(-1)):
            log([x.stride(), x.storage_offset(), x.is_contiguous()])


@pytest.mark.parametrize("part", ["w[2:]", "w.view(2, 10)[:, 2:]", "w.as_strided((2, 4), (10, 1))"])
@pytest.mark.parametrize("offset", [2, 3])
def test_a_detached_part_is_read_by_strides_of_the_whole(part: str, offset: int) -> None:
    """Also when autograd makes the view anew from the part, which is its base."""

    @same
    def program(torch: Any, log: Any) -> Any:
        w = torch.arange(20.0)
        t = eval(part, {"w": w}).detach()
        g = torch.ones(2, 1, requires_grad=True)
        with log.catch():
            q = t.as_strided((2, 1), (10, 1), offset)
            q.mul_(g * 3)
            log(q, t, w)
            (t * t).sum().backward()
            log(g.grad)


def test_how_far_apart_a_single_pair_lies_does_not_matter() -> None:
    @same
    def program(torch: Any, log: Any) -> Any:
        x = torch.arange(24.0)
        for size, stride, offset in (
            ((3, 1, 2), (2, 1, 1), 0), ((1, 2), (3, 1), 0), ((1, 2), (1, 1), 1),
            ((0, 2), (3, 1), 0), ((2, 1, 2), (3, 1, 1), 0),
        ):  # fmt: skip
            made = log.attempt(torch.view_as_complex, x.as_strided(size, stride, offset))
            log(made if made is None else made.stride())


def test_a_view_that_nobody_can_tell_the_history_of_is_copied() -> None:
    @same
    def program(torch: Any, log: Any) -> Any:
        x = torch.ones(2, 3, requires_grad=True) * 2
        first, _ = x.chunk(2, 0)
        x.mul_(2)
        log(copy.copy(first))
        log.attempt(lambda: first.grad_fn)
