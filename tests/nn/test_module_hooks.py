"""Hooks of modules: their order, what they may change, and what is said of them, as in PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from helpers.module_scripts import Said, agree

import leafax


def layers(t: Any) -> Any:
    class Scale(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self, factor: float) -> None:
            super().__init__()
            self.factor = t.nn.Parameter(t.tensor(factor))

        def forward(self, x: Any, *, shift: float = 0.0, fail: bool = False) -> Any:
            if fail:
                raise ValueError("failed")
            return x * self.factor + shift

    class Net(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Scale(2.0), Scale(3.0)

        def forward(self, x: Any, fail: bool = False) -> Any:
            return self.b(self.a(x, shift=1.0), fail=fail)

    return Net()


@pytest.fixture(autouse=True)
def without_global_hooks() -> Iterator[None]:
    yield
    for lib in (torch, leafax):
        module: Any = lib.nn.modules.module
        module._global_is_full_backward_hook = None
        assert not module._has_any_global_hook()


def test_forward_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        m = layers(t)
        handles = [
            m.a.register_forward_pre_hook(lambda m, a: said("pre", len(a))),
            m.a.register_forward_pre_hook(lambda m, a: a[0] + 1, prepend=True),
            m.a.register_forward_pre_hook(
                lambda m, a, k: (a, {"shift": k["shift"] * 10}), with_kwargs=True
            ),
            m.a.register_forward_hook(lambda m, a, o: said("post", o)),
            m.a.register_forward_hook(lambda m, a, o: o * 2, prepend=True),
            m.b.register_forward_hook(
                lambda m, a, k, o: said("always", k, o), with_kwargs=True, always_call=True
            ),
            m.register_forward_pre_hook(lambda m, a: (a[0] * 2,)),
        ]
        said(m(t.ones(1)))
        said.refused(lambda: m(t.ones(1), fail=True))
        bad = m.a.register_forward_pre_hook(lambda m, a, k: a, with_kwargs=True)
        said.refused(lambda: m(t.ones(1)))
        bad.remove()
        m.b.register_forward_hook(lambda m, a, o: 1 / 0, always_call=True)
        said.refused(lambda: m(t.ones(1), fail=True), lambda: m(t.ones(1)))
        for handle in handles:
            handle.remove()
        said(m.a._forward_hooks, m.a._forward_pre_hooks_with_kwargs, m.b._forward_hooks_with_kwargs)

    agree(script)


def test_global_forward_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        m, module = layers(t), t.nn.modules.module
        m.a.register_forward_hook(lambda m, a, o: said("own"))
        handles = [
            module.register_module_forward_pre_hook(lambda m, a: said("pre", type(m).__name__)),
            module.register_module_forward_hook(lambda m, a, o: said("post", type(m).__name__)),
            module.register_module_forward_hook(
                lambda m, a, k, o: said("always", k, o), with_kwargs=True
            ),
        ]
        said(m(t.ones(1)))
        for handle in handles:
            handle.remove()
        module._global_forward_hooks_with_kwargs.clear()
        always = module.register_module_forward_hook(
            lambda m, a, o: said("always", o), always_call=True
        )
        said.refused(lambda: m(t.ones(1), fail=True))
        always.remove()

    agree(script)


def test_full_backward_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        m = layers(t)
        x = t.ones(2, requires_grad=True)
        handles = [
            m.a.register_full_backward_hook(lambda m, i, o: said("a", *i, *o)),
            m.a.register_full_backward_hook(lambda m, i, o: said("first"), prepend=True),
            m.b.register_full_backward_hook(lambda m, i, o: (i[0] * 10,)),
            m.b.register_full_backward_pre_hook(lambda m, o: said("b pre", *o)),
            m.b.register_full_backward_pre_hook(lambda m, o: (o[0] * 2,), prepend=True),
            m.register_full_backward_hook(lambda m, i, o: said("net", *i, *o)),
        ]
        out = m(x)
        said(type(out.grad_fn).__name__)
        out.sum().backward()
        said(x.grad, m.a.factor.grad, m.b.factor.grad)
        m(t.ones(2)).sum().backward()  # no input requires grad: it fires at the outputs, and warns
        said(m.a.factor.grad)
        with t.no_grad():
            said(m(x).grad_fn)
        for handle in handles:
            handle.remove()
        for result in ((None, None), 1):
            handle = m.a.register_full_backward_hook(lambda m, i, o, r=result: r)
            said.refused(lambda: m(x).sum().backward(), lambda: m(t.ones(2)).sum().backward())
            handle.remove()
        handle = m.a.register_full_backward_pre_hook(lambda m, o: (o[0], o[0]))
        said.refused(lambda: m(x).sum().backward())
        handle.remove()
        m.a.register_full_backward_hook(lambda m, i, o: None)
        said.refused(lambda: m.a.register_backward_hook(lambda m, i, o: None))

    def writes(t: Any, said: Said) -> None:
        m = layers(t).a
        m.register_full_backward_hook(lambda m, i, o: said(*i))
        said.refused(lambda: m(t.ones(2, requires_grad=True)).mul_(2))

    agree(writes)
    agree(script)


def test_backward_hooks_of_several_values() -> None:
    def script(t: Any, said: Said) -> None:
        class Pair(t.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any, n: int, y: Any) -> Any:
                return x * n, "word", x * y

        class Named(t.nn.Module):  # type: ignore[misc, name-defined]
            def forward(self, x: Any) -> Any:
                return {"out": x * 2}

        m, x, y = Pair(), t.ones(2, requires_grad=True), t.full((2,), 3.0)
        m.register_full_backward_hook(lambda m, i, o: said(*i[:2], *o))
        a, _, b = m(x, 2, y)
        (a.sum() + b.sum()).backward()
        m(x, 2, y)[0].sum().backward()
        t.autograd.grad(m(x, 2, y)[2].sum(), [x])
        said(x.grad)
        n = Named()
        n.register_full_backward_hook(lambda m, i, o: said("never"))
        n(x)["out"].sum().backward()

    agree(script)


def test_old_backward_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        m, x = layers(t), t.ones(2, requires_grad=True)
        for part in (m.a, m.b, m):
            part.register_backward_hook(lambda m, i, o: said(len(i), *o))
        m(x).sum().backward()
        said(x.grad)
        said.refused(lambda: m.a.register_full_backward_hook(lambda m, i, o: None))
        out = m.b(x)
        del m.b
        said.refused(lambda: out.sum().backward())

    agree(script)


def test_global_backward_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        m, module = layers(t), t.nn.modules.module
        x = t.ones(1, requires_grad=True)
        m.a.register_full_backward_hook(lambda m, i, o: said("own"))
        handles = [
            module.register_module_full_backward_hook(lambda m, i, o: said(type(m).__name__, *i)),
            module.register_module_full_backward_pre_hook(lambda m, o: said("pre", *o)),
        ]
        m(x).sum().backward()
        said.refused(lambda: module.register_module_backward_hook(lambda m, i, o: None))
        for handle in handles:
            handle.remove()
        module._global_is_full_backward_hook = None
        old = module.register_module_backward_hook(lambda m, i, o: said("old", *o))
        other = layers(t)
        other.b(x).sum().backward()
        said.refused(lambda: module.register_module_full_backward_hook(lambda m, i, o: None))
        old.remove()

    agree(script)


def test_hooks_are_copied_with_the_module() -> None:
    def script(t: Any, said: Said) -> None:
        m = layers(t)
        m.a.register_forward_hook(lambda m, a, o: said("hook", o))
        copy.deepcopy(m)(t.ones(1))
        with m.b.register_forward_hook(lambda m, a, o: said("with", o)):
            m(t.ones(1))
        said(len(m.b._forward_hooks), len(m.a._forward_hooks))

    agree(script)


def test_a_module_without_hooks_is_called_as_it_is() -> None:
    m = leafax.nn.Identity()
    x = leafax.ones(1)
    assert m(x) is x and m.__call__(x) is x and m._call_impl(x) is x
