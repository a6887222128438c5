"""Later turns of a loop follow the trace of its first ones, or leave it and enter it again."""

from __future__ import annotations

from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

import leafax
from leafax._runtime import cut
from leafax.nn import functional as F

WEIGHT = np.arange(12, dtype="float64").reshape(3, 4) / 7 - 0.5


def _trained(lib: Any, between: Any, turns: int = 8) -> list[Any]:
    """A loop that trains a layer; `between(lib, turn, w, kept)` meddles after each turn."""
    linear = lib.nn.functional.linear
    w = lib.tensor(WEIGHT.tolist(), dtype=lib.float64, requires_grad=True)
    b = lib.zeros(3, dtype=lib.float64).requires_grad_()
    optimizer = lib.optim.SGD([w, b], lr=0.1, momentum=0.9)
    seen: list[Any] = []
    kept: dict[str, Any] = {}
    for turn in range(turns):
        x = lib.arange(8, dtype=lib.float64).reshape(2, 4) * 0.1 + turn
        loss = linear(x, w, b).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += [loss.item(), w.tolist(), b.tolist()]
        seen += between(lib, turn, w, kept) or []
    return seen


def _keeps_and_drops(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    if turn % 3 == 0:
        kept["grad"] = w.grad
    elif turn % 3 == 1:
        kept.clear()
    return [kept["grad"].tolist()] if kept else []


def _views(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    if turn == 3:
        kept["view"] = w.detach()[0]
    if turn == 6:
        kept.clear()
    return [kept["view"].tolist()] if kept else []


def _writes_through_views(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    if turn == 4:
        kept["row"] = w.detach()[1]
    if kept:
        kept["row"].mul_(0.5)
        return [w.tolist(), w._version]
    return []


def _replaces_data(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    if turn == 4:
        w.data = w.data * 0.5
    return [w._version]


def _accumulates(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    w.square().sum().backward()  # adds to what the step left
    return [w.grad.tolist()]


def _hooks(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    calls = kept.setdefault("calls", [])
    if turn == 3:
        kept["handle"] = w.register_hook(lambda g: g * 2)
    if turn == 5:
        kept["handle"].remove()
        w.register_post_accumulate_grad_hook(lambda p: calls.append(p.grad.sum().item()))
    return list(calls)


def _node_hooks(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    calls = kept.setdefault("calls", [])
    if turn == 3:
        kept["node"] = node = (w * 1).grad_fn.next_functions[0][0]
        kept["handle"] = node.register_hook(lambda *grads: calls.append(len(grads)))
    if turn == 5:
        kept["handle"].remove()
        del kept["node"]
    return list(calls)


def _freezes(lib: Any, turn: int, w: Any, kept: dict[str, Any]) -> Any:
    w.requires_grad_(turn not in (3, 4))
    return [w.requires_grad, w.grad is None]


@pytest.mark.parametrize(
    "between",
    [
        _keeps_and_drops, _views, _writes_through_views, _replaces_data, _accumulates, _hooks,
        _node_hooks, _freezes,
    ],
)  # fmt: skip
def test_a_loop_that_is_meddled_with(between: Any) -> None:
    for ours, theirs in zip(_trained(leafax, between), _trained(torch, between), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


def test_a_gradient_dtype_that_is_set_late_is_heeded() -> None:
    w = leafax.ones(3, requires_grad=True)
    for turn in range(6):
        w.grad = None
        if turn == 4:
            w.grad_dtype = leafax.float64
        (w * 2).sum().backward()
        leafax.synchronize()
        assert w.grad.dtype is (leafax.float64 if turn >= 4 else leafax.float32)


def test_operands_at_rest_that_are_alike_are_not_taken_for_one() -> None:
    x = leafax.ones(2, 2)
    a, b = leafax.tensor([[1.0, 2.0], [3.0, 4.0]]), leafax.tensor([[5.0, 6.0], [7.0, 8.0]])
    for _ in range(4):
        other = F.linear(x, a, b[0]) + a @ b
        same = a @ a
        assert other.tolist() == [[27.0, 35.0], [51.0, 63.0]]
        assert same.tolist() == [[7.0, 10.0], [15.0, 22.0]]
        same = b @ b
        assert same.tolist() == [[67.0, 78.0], [91.0, 106.0]]


def test_a_parameter_that_is_used_twice_enters_once() -> None:
    w = leafax.ones(3, 3, requires_grad=True)
    b = leafax.zeros(3, requires_grad=True)
    for turn in range(5):
        w.grad = b.grad = None
        x = leafax.full((2, 3), float(turn))
        F.linear(F.linear(x, w, b), w, b).sum().backward()
        leafax.synchronize()
        assert b.grad.tolist() == [8.0] * 3
        assert w.grad.tolist() == [[12.0 * turn] * 3] * 3


def test_a_view_whose_base_nobody_holds_is_read_again_and_again() -> None:
    view = leafax.arange(4.0).view(2, 2)
    for _ in range(4):
        assert (view + 1).tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_what_a_turn_remembers_holds_no_tensors() -> None:
    import gc
    from weakref import ref

    gone = []
    for _ in range(4):
        w = leafax.ones(3, 3, requires_grad=True)
        b = leafax.zeros(3, requires_grad=True)
        loss = F.linear(leafax.ones(2, 3), w, b).sum()
        loss.backward()
        leafax.synchronize()
        gone += [ref(w), ref(b), ref(loss), ref(w.grad)]
        del w, b, loss
    gc.collect()
    assert [r() for r in gone] == [None] * len(gone)


def test_a_look_at_a_view_does_not_work_out_anew_what_the_graph_keeps() -> None:
    """As an episode does: the action is a view, and the graph of each turn lives on."""
    w = leafax.tensor(WEIGHT.tolist(), requires_grad=True)
    x = leafax.ones(4)

    def turn() -> Any:
        p = F.softmax(F.linear(x, w), -1)
        action, log = p.argmax().view(1), p.log()
        action.item()
        return log

    logs = [turn() for _ in range(5)]
    with mock.patch.object(cut, "residual_plan") as planned:
        logs += [turn() for _ in range(2)]
    assert not planned.called
    leafax.stack(logs).sum().backward()
    ours = w.grad.clone()
    w.grad = None
    (F.softmax(F.linear(x, w), -1).log().sum() * 7).backward()
    np.testing.assert_allclose(ours.numpy(), w.grad.numpy(), rtol=1e-5, atol=1e-5)
