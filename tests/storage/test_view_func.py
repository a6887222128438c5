"""`_view_func`: a view made again of another base."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from helpers.sameness import Log, same

View = Callable[[Any, Any], Any]
VIEWS: dict[str, tuple[tuple[int, ...], View]] = {
    "as_strided": ((2, 2), lambda t, x: x.as_strided((4,), (1,))),
    "chunk": ((2, 4), lambda t, x: x.chunk(2, -1)),
    "diagonal": ((4, 4), lambda t, x: x.diagonal()),
    "expand": ((4, 1), lambda t, x: x.expand(-1, 3)),
    "narrow": ((2, 2), lambda t, x: x.narrow(0, 1, 1)),
    "permute": ((2, 3, 4), lambda t, x: x.permute(1, 0, 2)),
    "select": ((2, 2), lambda t, x: x.select(0, 0)),
    "slice": ((2, 2), lambda t, x: x[:, 1:2]),
    "split": ((2, 4), lambda t, x: x.split_with_sizes([1, 3], -1)),
    "squeeze": ((2, 1, 4), lambda t, x: x.squeeze()),
    "transpose": ((2, 4), lambda t, x: x.t()),
    "unbind": ((2, 5), lambda t, x: x.unbind()),
    "unfold": ((1, 5), lambda t, x: x.unfold(1, 3, 2)),
    "view": ((2, 10), lambda t, x: x.view(-1, 5, 2)),
    "view_as_complex": ((2, 2), lambda t, x: t.view_as_complex(x)),
    "view_as_real": ((2, 2), lambda t, x: t.view_as_real(x)),
    "a chain": ((2, 3, 4), lambda t, x: x.chunk(2, -1)[1].transpose(0, 1).unsqueeze(-1)),
    "views of one of several": ((2, 3, 4), lambda t, x: x.split([1, 3], -1)[1].chunk(2, 0)),
}


@pytest.mark.parametrize(
    ("how", "tracked"),
    [*[(how, True) for how in VIEWS], ("slice", False), ("chunk", False), ("view_as_real", False)],
)
def test_made_again(how: str, tracked: bool) -> None:
    shape, view = VIEWS[how]

    @same
    def program(torch: Any, log: Log) -> Any:
        base = torch.zeros(shape, dtype=torch.complex64 if how == "view_as_real" else None)
        base += torch.arange(float(base.numel())).reshape(shape)
        with torch.autograd._force_original_view_tracking(tracked):
            views = view(torch, base)
            for v in views if isinstance(views, tuple) else (views,):
                again = v._view_func(base * 10)
                log(again, again.stride(), again.storage_offset())
                log(v._view_func(base.detach()[None]), v._view_func(v * 1) is None)
                with log.catch():
                    whole = v._rev_view_func_unsafe(v.detach())
                    log(
                        tuple(whole.shape), whole.stride(), whole.storage_offset(), whole._is_view()
                    )


def test_with_other_numbers() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        base = torch.arange(60.0).view(60).clone().resize_(3, 4, 5)
        with torch.autograd._force_original_view_tracking(True):
            v = base.select(1, 2)
            other = base * 2
            log(v._view_func(other, symint_visitor_fn=lambda n: n + 1))
            log(v._view_func(other))
            log(v._view_func_unsafe(other, lambda n: n - 1))
        log(base._view_func(other), base.detach()._view_func(other))
        log.attempt(v._view_func, 3)


def test_views_of_both_kinds() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        track = torch.autograd._force_original_view_tracking
        for first, second in ((True, False), (False, True)):
            base = torch.arange(12.0).view(2, 6).clone()
            with track(first):
                part = base.split([2, 4], 1)[1]
            with track(second):
                views = part.chunk(2, 0)
            for v in views:
                log(v._view_func(base * 10))
                whole = v._rev_view_func_unsafe(v.detach())
                log(tuple(whole.shape), whole.stride(), whole.storage_offset())
