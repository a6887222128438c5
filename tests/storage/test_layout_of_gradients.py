"""Memory layout of gradients, where a user can see it: in hooks and from `autograd.grad`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from helpers.sameness import Log, same

import leafax

OPS: dict[str, Callable[[Any, Any], Any]] = {
    "sums": lambda lib, x: x.sum(),
    "sums of rows": lambda lib, x: x.sum(0),
    "sums that keep a dim": lambda lib, x: x.sum(1, keepdim=True),
    "means": lambda lib, x: x.mean(),
    "t": lambda lib, x: x.t(),
    "T": lambda lib, x: x.T,
    "mT": lambda lib, x: x.mT,
    "transpose": lambda lib, x: x.transpose(0, 1),
    "swapaxes": lambda lib, x: x.swapaxes(0, 1),
    "permute": lambda lib, x: x.permute(1, 0),
    "movedim": lambda lib, x: x.movedim(0, 1),
    "view": lambda lib, x: x.reshape(-1),
    "flatten": lambda lib, x: x.flatten(),
    "unflatten": lambda lib, x: x.unflatten(-1, (1, 3)),
    "unsqueeze": lambda lib, x: x.unsqueeze(0),
    "squeeze": lambda lib, x: x[None].squeeze(0),
    "copies": lambda lib, x: x.clone(),
    "contiguous": lambda lib, x: x.t().contiguous(),
    "add": lambda lib, x: x + 1,
    "add of a matrix that lies otherwise": lambda lib, x: x + lib.ones(3, 2).double().t(),
    "add that broadcasts": lambda lib, x: x[:1] + lib.ones(4, 3).double(),
    "sub": lambda lib, x: 1 - x,
    "mul": lambda lib, x: x * 2,
    "mul by a row": lambda lib, x: x * lib.ones(3).double(),
    "mul by a matrix that lies otherwise": lambda lib, x: x * lib.ones(3, 2).double().t(),
    "mul that broadcasts": lambda lib, x: x * lib.ones(4, 2, 3).double(),
    "exp": lambda lib, x: x.exp(),
    "relu": lambda lib, x: x.relu(),
    "tanh": lambda lib, x: x.tanh(),
    "pow": lambda lib, x: x**2,
    "clamp": lambda lib, x: x.clamp(0, 1),
    "fmod": lambda lib, x: x.fmod(2),
    "addcmul": lambda lib, x: x.addcmul(x.detach(), x.detach()),
    "float": lambda lib, x: x.float(),
    "flip": lambda lib, x: x.flip(0),
    "cat": lambda lib, x: lib.cat([x, x.detach()]),
    "stack": lambda lib, x: lib.stack([x, x.detach()], 1),
    "amax": lambda lib, x: x.amax(0),
    "prod": lambda lib, x: x.prod(),
    "var": lambda lib, x: x.var(0),
    "norm": lambda lib, x: x.norm(),
    "logsumexp": lambda lib, x: x.logsumexp(0),
    "softmax": lambda lib, x: x.softmax(0),
    "slices": lambda lib, x: x[:, 1:],
    "diagonals": lambda lib, x: x.diagonal(),
    "mm": lambda lib, x: x.mm(lib.ones(3, 4).double()),
    "mm from the left": lambda lib, x: lib.ones(4, 2).double().mm(x),
    "mm of a transposed matrix": lambda lib, x: x.t().mm(lib.ones(2, 4).double()),
    "writes": lambda lib, x: (x * 1)[:].mul_(2),
}


@pytest.mark.quick(49)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("how", ["", "cut", "checkpoint"])
def test_strides_of_gradients(op: str, how: str) -> None:
    def program(lib: Any) -> list[Any]:
        found: list[Any] = []
        for turned in (False, True):
            x = lib.linspace(-1, 2, 6, dtype=lib.float64)
            x = x.view(3, 2).t() if turned else x.view(2, 3)
            h = x.detach().requires_grad_() * 1
            h.register_hook(lambda g: found.append((g.stride(), g.is_contiguous())))
            for graph in (False, True):
                fn = functools.partial(OPS[op], lib)
                if how == "checkpoint":
                    y = lib.utils.checkpoint.checkpoint(fn, h, use_reentrant=False)
                else:
                    y = fn(h)
                if how == "cut":
                    y.tolist()
                for outs, given in ((y, lib.ones_like(y)), (y.sum(), None)):
                    (g,) = lib.autograd.grad(outs, h, given, True, graph)
                    found.append((g.stride(), g.is_contiguous()))
        return found

    assert program(leafax) == program(torch)


def test_a_leafs_gradient_lies_as_the_leaf_does() -> None:
    def program(lib: Any) -> Any:
        x = lib.ones(2, 3).t().detach().requires_grad_()
        found = []
        for f in (lambda: x.sum(), lambda: (x * 2).sum(), lambda: x.t().exp().sum()):
            x.grad = None
            for _ in range(3):
                f().backward()
                found.append(x.grad.stride())
        y = lib.ones(3, 1).expand(3, 2).requires_grad_()
        y.exp().sum().backward()
        return [*found, y.grad.stride(), y.grad.tolist()]

    assert program(leafax) == program(torch)


def test_a_gradient_may_lie_as_it_came() -> None:
    @same
    def program(lib: Any, log: Log) -> Any:
        kept = []

        class Rows(lib.autograd.Function):  # type: ignore[misc,name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any, keep: bool) -> Any:
                ctx.keep = keep
                return x.sum()

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                rows = lib.ones(2, 3)
                kept.extend([rows] * ctx.keep)
                return rows, None

        x = lib.ones(3, 2).t().requires_grad_()
        policy = lib.autograd.enforce_grad_layout_policy
        backward = {
            "Function": lambda: Rows.apply(x, False).backward(),
            "one that keeps it": lambda: Rows.apply(x, True).backward(),
            "product": lambda: (x.contiguous() * lib.ones(2, 3)).sum().backward(),
            "twice": lambda: [(x.contiguous() * lib.ones(2, 3)).sum().backward() for _ in "ab"],
        }
        for enabled in (True, False, True):
            for name, run in backward.items():
                for _ in range(2):  # the second time it is met
                    x.grad = None
                    with policy(enabled):
                        run()
                    log(name, x.grad.stride(), x.grad.tolist())
        enforced = lib._C._is_grad_layout_enforcement_enabled
        decorated = policy(False)(enforced)
        log(enforced(), decorated(), enforced())
        policy(False)
        log(enforced(), policy(True).clone().prev, enforced())
        lib._C._set_grad_layout_enforcement_enabled(True)
        with pytest.raises(KeyError), policy(False):
            raise KeyError
        log(enforced())


def test_new_tensors_lie_as_what_they_are_like() -> None:
    def program(lib: Any) -> Any:
        x = lib.ones(2, 3).t()
        made = [
            f(view)
            for view in (x, x[:, None], x[:, ::2], x[:1].expand(3, 2), x.expand(2, 3, 2))
            for f in (
                lib.ones_like, lib.zeros_like, lib.rand_like, lib.empty_like,
                lambda v: lib.full_like(v, 2.0), lambda v: lib.ones_like(v, requires_grad=True),
                lambda v: lib.ones_like(v, memory_format=lib.contiguous_format),
                lambda v: lib.randint_like(v, 5), lambda v: lib.zeros_like(v, dtype=lib.int64),
            )
        ]  # fmt: skip
        w = lib.ones_like(x, requires_grad=True)
        (w * w).sum().backward()
        return [m.stride() for m in made], w.grad.stride(), w.grad.tolist()

    assert program(leafax) == program(torch)


def test_gradients_that_are_views_of_others() -> None:
    @same
    def program(lib: Any, see: Log) -> None:
        x = lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
        h = x * 1
        flat = h.view(-1)
        handle = h.register_hook(lambda g: g.mul_(2))  # PyTorch asks not to do this
        see.gradients(*lib.autograd.grad(flat * flat, [h, flat], lib.ones(6)))
        h = x * 1
        h.register_hook(lambda g: g.mul_(2))
        see.attempt(lambda: lib.autograd.grad(h.sum(), x))
        handle.remove()
        (g,) = lib.autograd.grad(x.sum(), x)
        see.attempt(lambda: g.add_(1))
        see.attempt(lambda: g.view(-1))
        g[0, 0] = 5.0  # one number in memory
        see.gradients(g, g.clone().add_(1))
        seed = lib.ones(6)
        (g,) = lib.autograd.grad(x.view(-1), x, seed)
        g.mul_(3)
        see(seed)
        see(lib.autograd.grad(x + 1, x, g)[0] is g)


@pytest.mark.parametrize("cut", [False, True])
def test_saved_views_are_views(cut: bool) -> None:
    """Views that only the node knows; once the program has run, those of leaves."""

    def program(lib: Any) -> Any:
        b = lib.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], requires_grad=True)
        found: list[Any] = []

        def note(y: Any, name: str) -> None:
            if cut and lib is leafax:
                leafax.synchronize()
            s = getattr(y.grad_fn, "_saved_" + name)
            found.append((s._is_view(), s._base is b, s.grad_fn.name(), s._version, s.stride()))
            found.append(s.tolist())

        note((b * 2).mm(b.t()), "mat2")
        note(b.view(-1)[1:].sin(), "self")
        note(b.t().t() ** 2, "self")
        note((b * 2).t() * b.t(), "self")
        note((b * 3).t().abs().t() * b, "self")
        g = lib.autograd.grad((b**2).sum(), b, create_graph=True)[0]
        if cut and lib is leafax:
            leafax.synchronize()
        s = g.grad_fn._saved_self
        found.append((s._is_view(), s.is_leaf, s.stride(), s.tolist()))
        if not cut:
            d = b * 2
            note(d.t() * b.t(), "self")
            note(d.split(1)[1] ** 2, "self")
            note(d.unbind(0)[1] * 2 * d[0], "other")
            note(d.sum().expand(3) ** 2, "self")
        return found

    assert program(leafax) == program(torch)
