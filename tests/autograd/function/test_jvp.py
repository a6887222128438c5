"""`Function.jvp`: what it is given, what it must return, and PyTorch's errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

Rule = Callable[[Any, Any], Any]


def _calls(
    torch: Any, log: Log, forward: Rule, jvp: Rule, primal: Any, tangent: Any, viewed: bool = False
) -> None:
    forward_ad = torch.autograd.forward_ad

    class Rules(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: None)
        jvp = staticmethod(lambda ctx, t: None)

    Rules.forward, Rules.jvp = staticmethod(forward), staticmethod(jvp)
    with forward_ad.dual_level(), log.catch():
        x = forward_ad.make_dual(primal, tangent)
        x = x.view_as(x) if viewed else x
        out = Rules.apply(x)
        for o in out if isinstance(out, tuple) else (out,):
            if isinstance(o, torch.Tensor):
                along = forward_ad.unpack_dual(o).tangent
                log(None if along is None else along.detach())


VIEWS: dict[str, Rule] = {
    "a view": lambda ctx, t: t.narrow(0, 0, 1),
    "a copy": lambda ctx, t: t.narrow(0, 0, 1).clone(),
    "a view of a copy": lambda ctx, t: t.clone().narrow(0, 0, 1),
}


@pytest.mark.parametrize("how", VIEWS)
@pytest.mark.parametrize("of_a_view", [False, True])
@pytest.mark.parametrize("viewed", [False, True])
def test_the_tangent_of_a_view_is_a_view(how: str, of_a_view: bool, viewed: bool) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        primal, tangent = torch.ones(2, 2), torch.full((2, 2), 3.0)
        if of_a_view:
            primal, tangent = primal.view(4)[:2], tangent.view(4)[:2]
        _calls(torch, log, lambda ctx, x: x.narrow(0, 0, 1), VIEWS[how], primal, tangent, viewed)


WRITES: dict[str, Rule] = {
    "in place": lambda ctx, t: t.mul_(2),
    "not at all": lambda ctx, t: t,
    "another": lambda ctx, t: t * 2,
    "in place, a copy": lambda ctx, t: (t.mul_(2), (t * 1).add_(1))[1],
}


@pytest.mark.parametrize("how", WRITES)
def test_a_dirty_input_has_its_tangent_written(how: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        _calls(torch, log, forward, WRITES[how], torch.ones(2), torch.ones(2))


def test_what_needs_no_tangent() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x, t = torch.ones(2), torch.full((2,), 3.0)
        both = lambda ctx, t: (t, t * 2)  # noqa: E731
        _calls(torch, log, lambda ctx, x: (x * 2, x.argmax()), both, x, t)
        _calls(torch, log, lambda ctx, x: (x * 2, 5), lambda ctx, t: (t, None), x, t)
        _calls(torch, log, lambda ctx, x: (x * 2, x * 3), both, x, t)

        class Second(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, k: Any) -> Any:
                return x * k

            @staticmethod
            def jvp(ctx: Any, x_t: Any, k_t: Any) -> Any:
                log(k_t)
                return x_t

        forward_ad = torch.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, t)
            log(forward_ad.unpack_dual(Second.apply(dual, torch.tensor(3))).tangent)
            log.attempt(forward_ad.make_dual, torch.ones(2), dual)


def test_saved_tensors_are_those_saved_for_forward() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        for save in (True, False):

            def forward(ctx: Any, x: Any, save: bool = save) -> Any:
                ctx.save_for_backward(x)
                if save:
                    ctx.save_for_forward(x * 2)
                return x.clone()

            def jvp(ctx: Any, t: Any) -> Any:
                log(len(ctx.saved_tensors))
                return t

            _calls(torch, log, forward, jvp, torch.ones(2), torch.ones(2))
