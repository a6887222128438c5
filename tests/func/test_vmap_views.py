"""A mapped function that returns views of its arguments returns views of the batch, as in torch.

What it computes lies here row by row, examples first, then moved to `out_dims`; in torch as the
batch does.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from helpers.sameness import Log, assert_equal, run, same

import leafax

# The function of one example, which is (4, 2), and the arguments of `vmap`.
VIEWS: list[Any] = [
    (lambda t, x: x, {}),
    (lambda t, x: x, {"in_dims": 1}),
    (lambda t, x: x, {"in_dims": 2, "out_dims": -1}),
    (lambda t, x: x, {"in_dims": 1, "out_dims": 2}),
    (lambda t, x: (x, x.t()), {"out_dims": (0, 1)}),
    (lambda t, x: x.t(), {"in_dims": 1, "out_dims": -1}),
    (lambda t, x: x[0].t(), {}),
    (lambda t, x: x.T, {}),
    (lambda t, x: x.unsqueeze(0).T, {}),
    (lambda t, x: x.mT, {}),
    (lambda t, x: x.view(-1), {}),
    (lambda t, x: x.view(2, -1, 2).view(4, 2).view_as(x), {}),
    (lambda t, x: x.view(-1), {"in_dims": 1}),
    (lambda t, x: x.reshape(8), {}),
    (lambda t, x: x[0, 0].reshape(1, 1), {}),
    (lambda t, x: x.transpose(0, -1), {}),
    (lambda t, x: x[0, 0].transpose(0, -1), {}),
    (lambda t, x: x.swapaxes(0, 1), {"in_dims": 2}),
    (lambda t, x: x.permute(-1, 0), {}),
    (lambda t, x: x.movedim(0, 1), {}),
    (lambda t, x: x.unsqueeze(0).movedim((0, 1), (-1, 0)), {}),
    (lambda t, x: x[:, :1].expand(4, 5), {}),
    (lambda t, x: x.expand(3, -1, 2), {}),
    (lambda t, x: x.broadcast_to((2, 4, 2)), {"in_dims": 1}),
    (lambda t, x: x.narrow(-1, 1, 1), {}),
    (lambda t, x: x.select(1, -1), {}),
    (lambda t, x: x[1:3], {}),
    (lambda t, x: x[:, 1], {"in_dims": -1, "out_dims": 1}),
    (lambda t, x: x[..., None, ::2], {}),
    (lambda t, x: x.unsqueeze(-1), {}),
    (lambda t, x: x[0, 0].unsqueeze(-1), {}),
    (lambda t, x: x[:1].squeeze(), {}),
    (lambda t, x: x[:1].squeeze(0), {}),
    (lambda t, x: x[:1, :1].squeeze((-1, 0)), {}),
    (lambda t, x: x.squeeze(), {}),
    (lambda t, x: x.diagonal(), {}),
    (lambda t, x: x.diagonal(-1, -1, 0), {}),
    (lambda t, x: x.unbind(), {}),
    (lambda t, x: x.unbind(-1)[::-1], {}),
    (lambda t, x: x.split(3), {}),
    (lambda t, x: x.split([1, 1], dim=1), {"in_dims": 1}),
    (lambda t, x: x.chunk(2), {}),
    (lambda t, x: x.tensor_split((1, 3)), {}),
    (lambda t, x: x.unfold(0, 2, 2), {}),
    (lambda t, x: x.unflatten(0, (2, -1)), {}),
    (lambda t, x: x.flatten(), {}),
    (lambda t, x: x[0, 0].flatten(), {}),
    (lambda t, x: x[1].ravel(), {}),
    (lambda t, x: x.contiguous(), {}),
    (lambda t, x: x.conj(), {}),
    (lambda t, x: t.view_as_complex(x), {}),
    (lambda t, x: t.view_as_real(t.view_as_complex(x)), {}),
    (lambda t, x: t.view_as_complex(x).imag, {}),
    (lambda t, x: x.as_strided((2, 2), (2, 1)), {}),
    (lambda t, x: x.as_strided((2, 4), (1, 2)), {"out_dims": 1}),
    (lambda t, x: x.as_strided((3,), (2,), 1), {}),
    (lambda t, x: x.as_strided((4, 3), (2, 1)), {}),
    (lambda t, x: x.as_strided((2,), (1,), 7), {}),
    (lambda t, x: x[:0].as_strided((1,), (1,)), {}),
    (lambda t, x: x.as_strided((2,), (1, 1)), {}),
    (lambda t, x: t.vmap(lambda y: y.unsqueeze(0))(x), {}),
    (lambda t, x: t.vmap(lambda y: y, in_dims=1, out_dims=0)(x), {"in_dims": 2}),
    (lambda t, x: t.vmap(lambda y: y.as_strided((1,), (1,), 1))(x), {}),
    (lambda t, x: t.vmap(lambda y: x, in_dims=1)(x), {}),
    (lambda t, x: x.add_(1).mul_(2), {}),
    (lambda t, x: x.add_(1).mul_(2), {"in_dims": 1}),
    (lambda t, x: (x.t()[0].mul_(3), x)[1], {"out_dims": 1}),
    (lambda t, x: (x.t()[0].mul_(3), x.add_(1))[0], {}),
    (lambda t, x: x.new_empty_strided((2, 3), (1, 2)).zero_(), {}),
    (lambda t, x: x.new_empty_strided((2, 0), (0, 0)), {}),
    (lambda t, x: t.vmap(lambda y: y.new_empty_strided((3, 2), (1, 4)).fill_(2))(x), {}),
    (lambda t, x: t.squeeze(x, dim=2), {}),
    (lambda t, x: t.squeeze(x[0, 0], dim=1), {}),
]


@pytest.mark.parametrize("case", VIEWS, ids=range(len(VIEWS)))
def test_views(case: Any) -> None:
    fn, kwargs = case

    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(24.0).view(3, 4, 2) + 1
        if kwargs.get("in_dims"):
            x = x.movedim(0, kwargs["in_dims"])
        base = x._base
        with log.catch():
            found = torch.vmap(lambda e: fn(torch, e), **kwargs)(x)
            for y in found if isinstance(found, tuple) else (found,):
                log(y, y is x, y._base is (x if base is None else base), y.stride(), x._version)
        with log.catch():
            y.mul_(2)
            log(x, y, x._version)

    assert_equal(run(program, leafax), run(program, torch), "vmap")


@pytest.mark.parametrize("case", VIEWS[:-9:2], ids=range(0, len(VIEWS) - 9, 2))
def test_gradients_of_views(case: Any) -> None:
    fn, kwargs = case

    def program(torch: Any, log: Log) -> Any:
        x = (torch.arange(24.0).view(3, 4, 2) + 1).requires_grad_()
        y = x if not kwargs.get("in_dims") else x.movedim(0, kwargs["in_dims"])
        with log.catch():
            found = torch.vmap(lambda e: fn(torch, e), **kwargs)(y)
            found = found if isinstance(found, tuple) else (found,)
            log(*(str(f.grad_fn).split(" ")[0] for f in found))
            sum((f.abs() ** 2).sum() for f in found).backward()
            log.gradients(x.grad)

    assert_equal(run(program, leafax), run(program, torch), "vmap")


def test_detached_and_written_to() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.ones(3, 2, requires_grad=True)
        y = torch.vmap(lambda e: e.detach().unsqueeze(0))(x)
        log(y.requires_grad, y.shape)
        z = torch.vmap(lambda e: e.unsqueeze(1).detach())(x)
        z.add_(1)
        log(x, y, z, x._version)
        with torch.no_grad():
            log(torch.vmap(lambda e: e)(x) is x, torch.vmap(lambda e: e.view(1, 2))(x))
            torch.vmap(lambda e: e.t())(x).zero_()
        log(x)


def test_what_all_examples_share_is_expanded() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        w = torch.tensor([1.0, 2.0], requires_grad=True)
        x = torch.ones(3, 2)
        y = torch.vmap(lambda e: w)(x)
        log(y, y.stride(), y._base is w, str(y.grad_fn).split(" ")[0])
        with log.catch():
            torch.vmap(lambda e: w.detach())(x).add_(1)
        (y * x).sum().backward()
        log(w.grad, torch.vmap(lambda e: torch.ones(2))(x).stride())


def test_strides_are_those_of_the_batch() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def f(e: Any) -> Any:
            log(e.stride(), e.is_contiguous(), e.t().stride(), e.view(1, *e.shape).stride())
            with log.catch():
                log(e.view(-1).stride())
            return e * 2

        x = torch.arange(24.0).view(3, 4, 2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for dim in (0, 1, 2):
                log(torch.vmap(f, in_dims=dim)(x).sum())
            torch.vmap(f)(x.movedim(0, -1))
            torch.vmap(f)(x[:, 1:])
            torch.vmap(f)(x[:, :1].expand(3, 4, 2))
            log(torch.vmap(torch.vmap(lambda e: e * e.stride()[0]))(x.transpose(0, 2)).sum())


def test_results_are_moved_to_their_place() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.arange(24.0).view(3, 4, 2).requires_grad_()
        for dim in (0, 1, 2, -1):
            y = torch.vmap(lambda e: e * 2, out_dims=dim)(x)
            log(y.stride(), y._is_view(), dim == 0 or str(y.grad_fn).split(" ")[0])
        z = torch.func.jacfwd(lambda e: e.sin())(torch.ones(3))
        log(z, z.stride(), torch.func.jacrev(lambda e: e.sin())(torch.ones(3)).stride())
        h = torch.func.hessian(lambda e: e.sin().sum())(torch.ones(3))
        log(h, h.stride())


STRIDED: list[Any] = [
    lambda t, x: (x.as_strided((2,), (1,), x.storage_offset()).mul_(2), x * 1, x[:1]),
    lambda t, x: (t.as_strided(x, (2, 2), (1, 2), x.storage_offset() + 1).zero_(), x + 0),
    lambda t, x: (x.as_strided((3,), (2,), x.storage_offset() + 1), x.zero_(), x * 1)[::2],
    lambda t, x: (x[1:].as_strided((2,), (1,)).fill_(7), x * 2, x[1:].storage_offset() + x),
    lambda t, x: (x.add_(1), x.as_strided((2,), (3,), x.storage_offset()).mul_(3), x.clone()),
    lambda t, x: t.vmap(lambda y: (y.as_strided((1,), (1,)).mul_(9), y.storage_offset() + y))(
        x.unsqueeze(0)
    ),
]


@pytest.mark.parametrize("base", ["x", "x[:, 1:]", "x.transpose(1, 2)"])
@pytest.mark.parametrize("fn", STRIDED, ids=range(len(STRIDED)))
def test_writes_through_as_strided(fn: Any, base: str) -> None:
    def program(torch: Any, log: Log) -> Any:
        x = eval(base, {"x": torch.arange(24.0).view(2, 4, 3)})
        found = torch.vmap(lambda e: fn(torch, e))(x)
        log(x, *[(f.tolist(), f._version, f._is_view()) for f in found])
        found[0].mul_(2)
        log(x, [f.tolist() for f in found])

    assert_equal(run(program, leafax), run(program, torch), "vmap")


WITH_GAPS: list[Any] = [
    lambda e: (e.as_strided((2, 2), e.stride(), e.storage_offset()).mul_(2), e * 1, e[:1]),
    lambda e: (e[1].as_strided((2,), e.stride()[1:], e[1].storage_offset()).mul_(2), e * 1),
    lambda e: (e.as_strided((2,), e.stride()[:1]).t(), e.zero_(), e * 1)[::2],
]


@pytest.mark.quick(3)
@pytest.mark.parametrize("in_dim", [0, 1, 2])
@pytest.mark.parametrize("fn", WITH_GAPS, ids=range(len(WITH_GAPS)))
def test_writes_through_as_strided_of_an_example_with_gaps(fn: Any, in_dim: int) -> None:
    """The elements of other examples lie between its own."""

    def program(torch: Any, log: Log) -> Any:
        for needs in (False, True):
            x = torch.arange(24.0).view(2, 3, 4).requires_grad_(needs)
            y = x * 1 if needs else x
            found = torch.vmap(fn, in_dims=in_dim)(y)
            log(y._version, [f.tolist() for f in (y, *found)])
            if needs:
                (y * y).sum().backward()
                log(x.grad)

    assert_equal(run(program, leafax), run(program, torch), "vmap")
