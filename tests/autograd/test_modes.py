"""no_grad, enable_grad, set_grad_enabled and inference_mode in all their forms, against torch."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.sameness import same

MODES = ["no_grad", "enable_grad", "inference_mode"]


@pytest.mark.parametrize("mode", MODES)
def test_forms(mode: str) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        scope = getattr(torch, mode)
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        with scope():
            y = x * 2
            see(torch.is_grad_enabled(), torch.is_inference_mode_enabled())
            with torch.enable_grad():
                see((x * 2).requires_grad, torch.is_grad_enabled())
        see(y, torch.is_grad_enabled())

        @scope()
        def called(n: int) -> Any:
            return x * n, torch.is_grad_enabled()

        @scope
        def bare(n: int) -> Any:
            return x * n

        @scope()
        def generated(n: int) -> Any:
            for k in range(n):
                got = yield x * k
                see(torch.is_grad_enabled(), got)
            return "end"

        see(called(2)[0].requires_grad, bare(3).requires_grad, called.__name__)
        g = generated(2)
        see(next(g).requires_grad, torch.is_grad_enabled())
        see(g.send("sent").requires_grad)
        with see.catch():
            g.send("last")
        with see.catch():
            with scope():
                raise ValueError("inside")
        see(torch.is_grad_enabled(), torch.is_inference_mode_enabled())


def test_set_grad_enabled() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, requires_grad=True)
        torch.set_grad_enabled(False)
        see((x * 2).requires_grad)
        torch.set_grad_enabled(True)
        with torch.set_grad_enabled(False):
            see((x * 2).requires_grad)
        see((x * 2).requires_grad)

        @torch.set_grad_enabled(False)
        def f() -> Any:
            return x * 2

        see(f().requires_grad, torch.is_grad_enabled())
        with torch.no_grad():
            x.requires_grad_(False)
            y = torch.ones(2, requires_grad=True) * 2
            see(y.requires_grad)


def test_leaving_inference_mode_turns_gradients_on() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        x = torch.ones(2, requires_grad=True)
        for scope in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            with scope():
                with torch.inference_mode(False):
                    see(torch.is_grad_enabled(), torch.is_inference_mode_enabled(), x * 2)
                see(torch.is_grad_enabled(), torch.is_inference_mode_enabled())


def test_inference_tensors() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        c = torch.ones(3, dtype=torch.float64, requires_grad=True)
        n = torch.ones(3, dtype=torch.float64)
        with torch.inference_mode():
            q = torch.ones(3, dtype=torch.float64)
            w = n.view(3)
            n.add_(1)
            see(n.is_inference(), w.is_inference(), (c * 2).is_inference())
            q.mul_(3)
        see(q.is_inference(), q.requires_grad)
        see.attempt(lambda: q._version)
        see.attempt(lambda: q * c)
        see.attempt(q.requires_grad_)
        see.attempt(w.mul_, c)
        see(q.view(3).is_inference(), q.clone().is_inference(), (q + c).requires_grad)
        see(q.clone() * c)


def test_variable_and_volatile() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        Variable = torch.autograd.Variable
        x = torch.ones(2)
        see(Variable(x), Variable(x, True), Variable(x, requires_grad=True).is_leaf)
        see(isinstance(x, Variable), x.volatile)
        see(Variable(x, volatile=True))
        x.volatile = True
        see.attempt(Variable, 3)
        see.attempt(Variable, x.long(), requires_grad=True)
        see.attempt(Variable, x, requires_grad=True, volatile=True)


def test_entering_and_leaving_by_hand() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        scope = torch.no_grad()
        with scope, scope:  # remembers the last time only
            see(scope.prev)
        see(torch.is_grad_enabled(), hasattr(torch.enable_grad(), "prev"))
        see(isinstance(torch.enable_grad(), torch.no_grad))
        torch.set_grad_enabled(True)
        x = torch.ones(2, 2)
        scope.__enter__()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scope.__exit__(None, None, None)
            see((x @ x).dtype)
        scope.__enter__()
        torch.set_default_dtype(torch.float64)
        scope.__exit__(None, None, None)
        see(torch.ones(1), torch.is_grad_enabled())
        torch.set_default_dtype(torch.float32)
        with torch.no_grad() as a, torch.inference_mode() as b, torch.set_grad_enabled(True) as c:
            see(a, b, c)


def test_what_modes_are_called_and_refuse() -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        autograd = torch.autograd
        makers = (
            torch.set_grad_enabled, autograd.set_multithreading_enabled,
            autograd._force_original_view_tracking,
        )  # fmt: skip
        scopes = [torch.no_grad(), torch.enable_grad(), torch.inference_mode()]
        for make in makers:
            see.attempt(lambda: make(1))  # noqa: B023
            see.attempt(lambda: make(None))  # noqa: B023
            scopes.append(make(True))
            make(make is not makers[-1])
        for scope in scopes:
            see(repr(scope).split(" object")[0].replace("leafax", "torch"))
        for wrong in ((3,), ([3],), (None,)):
            see.attempt(autograd.graph.increment_version, *wrong)
            see.attempt(autograd._unsafe_preserve_version_counter, *wrong)
        see("volatile" in dir(torch.ones(1)))
