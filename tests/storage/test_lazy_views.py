"""Views share storage only once somebody asks; whoever asks, and when, changes nothing."""

from __future__ import annotations

import copy
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.sameness import same

import leafax

ASKS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "write to the base": lambda lib, x, v: x.mul_(2),
    "write to the view": lambda lib, x, v: v.mul_(2),
    "write to another view": lambda lib, x, v: x[1].zero_(),
    "version": lambda lib, x, v: (x._version, v._version),
    "base": lambda lib, x, v: (v._base is x, v._is_view()),
    "strides": lambda lib, x, v: (v.stride(), v.storage_offset(), v.is_contiguous()),
    "view of the view": lambda lib, x, v: v.unsqueeze(0).transpose(0, 1).add_(1),
    "flat view of the view": lambda lib, x, v: v.reshape(-1).add_(1),
    "data set": lambda lib, x, v: setattr(x, "data", lib.ones(3, 2, dtype=x.dtype)),
    "view's data set": lambda lib, x, v: setattr(v, "data", lib.ones(2, 3, dtype=x.dtype)),
    "detached write": lambda lib, x, v: v.detach().mul_(3),
    "base detached in place": lambda lib, x, v: x.detach_(),
    "view transposed in place": lambda lib, x, v: v.t_().add_(1),
    "no_grad": lambda lib, x, v: lib.set_grad_enabled(False),
}
# PyTorch goes on tying the view to its base in autograd, whichever memory they have by now. Here
# the view is made anew from the base, and a write that autograd would record raises.
_WITHOUT_GRAD = {"data set", "view's data set", "base detached in place"}


@pytest.mark.parametrize(
    ("ask", "requires_grad"),
    [(ask, grad) for ask in ASKS for grad in (False, True) if not (grad and ask in _WITHOUT_GRAD)],
)
def test_whoever_asks(ask: str, requires_grad: bool) -> None:
    def program(lib: Any, see: Any) -> None:
        grad = lib.is_grad_enabled()
        w = lib.arange(6.0, dtype=lib.float64).reshape(3, 2).clone().requires_grad_(requires_grad)
        x = w * 1
        v, u = x.t(), x.view(2, 3).narrow(1, 0, 2)
        answer = ASKS[ask](lib, x, v)
        see(answer if isinstance(answer, tuple) else None)
        x.add_(1)
        lib.set_grad_enabled(grad)
        see.attempt(lambda: (x, v, u))
        see.attempt(lambda: (v.grad_fn, u.grad_fn))
        see.attempt(lambda: (v.sum() + (u * u).sum()).backward())
        see(w.grad)

    same(program)


def test_slices_whose_start_changed() -> None:
    """A start that became an input of the program still is each view's own."""

    def program(lib: Any, see: Any) -> None:
        x = lib.arange(8.0)
        for start in (0, 2, 4, 5):
            part = x[start : start + 2]
            see(part.storage_offset())
            part.add_(1)
            see(x)

    same(program)


def test_views_that_nobody_kept_leave_no_storage() -> None:
    w = leafax.ones(2, 3, requires_grad=True)
    for _ in range(3):
        (w.t() @ w).sum().backward()
        leafax.synchronize()
        assert w._store is None and w._viewers is None


def test_a_view_that_outlives_the_program() -> None:
    x = leafax.ones(2, 3) * 2
    view = x.t()
    leafax.synchronize()
    x.add_(1)
    assert view.tolist() == [[3.0, 3.0]] * 3
    view.zero_()
    assert x.tolist() == [[0.0] * 3] * 2


def test_known_views_do_not_lead_elsewhere() -> None:
    """A view is known by what was written in the call, however it was written."""

    def program(lib: Any, see: Any) -> None:
        for _ in range(2):
            x = lib.ones(2, 3) + 1
            see(x.transpose(0, 1), x.unsqueeze(0))
            x = lib.ones(2, 3) + 1
            see.attempt(x.view, 3, 2)
            see.attempt(x.view, [3, 2])
            see.attempt(x.view, (3, 2))
            see.attempt(x.view, lib.Size([3, 2]))
            see.attempt(x.unsqueeze, dim=-1)
            see.attempt(x.unsqueeze, 7)

    same(program)


# ------------------------------------------------------------ leaves


def _model(ws: Any, x: Any) -> Any:
    return sum((w * x for w in ws), x)


def _leaves(n: int = 12) -> Any:
    return leafax.Leaves([leafax.full((2,), float(i)) for i in range(n)])


def test_leaves_are_tensors() -> None:
    with pytest.raises(TypeError, match="^Leaves are tensors, got float$"):
        leafax.Leaves([leafax.ones(1), 2.0])


def test_copied_leaves_know_their_own_tensors() -> None:
    mine = leafax.Leaves([leafax.ones(1)])
    for theirs in (copy.deepcopy(mine), pickle.loads(pickle.dumps(mine))):
        assert theirs[0] in theirs and mine[0] not in theirs and type(theirs) is leafax.Leaves


def _steps(leaves: Any, between: Callable[[Any, int], Any]) -> list[Any]:
    trained = leaves[0].requires_grad_()
    found = []
    for i in range(5):
        y = leafax.call_jax(_model, leaves, leafax.ones(2) * i)
        between(leaves, i)
        again = leafax.call_jax(_model, leaves, leafax.ones(2))
        (y * again).sum().backward()
        found.append((y.tolist(), again.tolist(), trained.grad.tolist()))
    return found


BETWEEN: dict[str, Callable[[Any, int], Any]] = {
    "nothing": lambda leaves, i: None,
    "one written to": lambda leaves, i: leaves[3].add_(i),
    "one used": lambda leaves, i: (leaves[4] * 2).sum(),
    "one set": lambda leaves, i: setattr(leaves[5], "data", leafax.full((2,), 9.0 + i)),
    "one viewed and written to": lambda leaves, i: leaves[6][0].add_(i),
    "cut": lambda leaves, i: leafax.synchronize(),
    "cut after a use": lambda leaves, i: (leaves[7] + 1).tolist(),
    "one thawed": lambda leaves, i: leaves[8].requires_grad_(i % 2 == 0),
    "one shared": lambda leaves, i: leaves[9].detach().mul_(1 + i),
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", BETWEEN)
def test_leaves_are_what_a_tuple_is(name: str) -> None:
    """Changes to a leaf between two calls are seen, as if each had entered by itself."""
    leaves = _leaves()
    expected = _steps(tuple(_leaves()), BETWEEN[name])
    assert _steps(leaves, BETWEEN[name]) == expected


def test_frozen_leaves_are_not_touched() -> None:
    leaves = _leaves()
    for _ in range(3):
        y = leafax.call_jax(_model, leaves, leafax.ones(2))
        told = [t for t in leaves if t._trace is not None]
        leafax.synchronize()
    assert not told
    np.testing.assert_allclose(y.tolist(), [67.0, 67.0])


def test_a_program_is_lowered_to_a_function_of_leaves() -> None:
    leaves = _leaves()
    leafax.synchronize()
    for _ in range(3):  # from memory, too
        y = leafax.call_jax(_model, leaves, leafax.ones(2))
        lowered = leafax.functional.lower(y, leaves[3])
        np.testing.assert_allclose(lowered(np.array([4.0, 5.0], np.float32)), [68.0, 69.0])
        leafax.synchronize()


def test_detached_at_rest_shares_with_a_step_that_is_replayed() -> None:
    """The optimizer's remembered step must see that somebody shares a parameter by now."""

    def program(lib: Any, see: Any) -> None:
        w = lib.ones(3, dtype=lib.float64, requires_grad=True)
        optimizer = lib.optim.SGD([w], lr=0.5, momentum=0.9)
        seen, others = [], []  # of the others PyTorch counts writes that it makes on the way
        for i in range(8):
            if i % 3 == 2:
                seen.append(w.detach())
            loss = (w * w).sum()
            if i == 4:
                seen.append(w.detach())
            optimizer.zero_grad()
            loss.backward()
            if i in (3, 6):
                seen.append(w.detach())
                others.append(w.grad.detach())
            if i == 5:
                others.append(optimizer.state[w]["momentum_buffer"].detach())
            optimizer.step()
            see(w.tolist(), [s.tolist() for s in seen], [s.tolist() for s in others])
            see(w._version, [s._version for s in seen])

    same(program)


@pytest.mark.parametrize("versions", [0, 1])
def test_what_was_detached_goes_where_nobody_holds_it(versions: int) -> None:
    def program(lib: Any, see: Any) -> None:
        def detached() -> Any:
            x = lib.arange(3.0)
            for _ in range(versions):
                x.add_(1)
            x.tolist()
            gone.append(weakref.ref(x))
            return x.detach()

        gone: list[Any] = []
        y, z, w = detached(), detached(), detached()
        see([r() is None for r in gone], z._version)
        y.add_(1)
        w.view(3, 1).mul_(2)
        see(y, z * 2, w, y._version, w._version)

    same(program)


@pytest.mark.parametrize("order", ["first", "second"])
def test_detached_at_rest(order: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(6.0).reshape(2, 3).clone()
        x.tolist()
        y = x.detach()
        see(y._base is None, y._is_view(), y.requires_grad)
        first, second = (x, y) if order == "first" else (y, x)
        first.mul_(2)
        see(x, y, x._version, y._version)
        v = second[0]
        v.add_(1)
        see(x, y, v, x._version, v._base is second)
        z = y.detach().t()
        z.zero_()
        see(x, y, v)

    same(program)


def test_a_view_that_is_alive_sees_a_step_that_is_replayed() -> None:
    """The step is the same in the trie whether the view through which it looked is alive or not."""

    def program(lib: Any, see: Any) -> None:
        w = lib.arange(6.0, dtype=lib.float64).reshape(2, 3).clone().requires_grad_()
        x = lib.ones(4, 3, dtype=lib.float64)
        optimizer = lib.optim.SGD([w], lr=0.01, momentum=0.9)
        held = []
        for i in range(9):
            turned = w.t()
            loss = (x @ turned).square().sum()
            if i % 3 == 2:
                held.append(turned)
            del turned
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            see.gradients(w.detach().clone(), *[v.detach().clone() for v in held])
            see([v._version for v in held], w._version)

    same(program)


def test_a_step_is_replayed_though_its_forward_looked_through_views(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    w = leafax.ones(2, 3, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.01, momentum=0.9)
    recorded = []
    record = type(optimizer)._record_update
    monkeypatch.setattr(
        type(optimizer), "_record_update", lambda *a: (recorded.append(1), record(*a))[1]
    )
    for _ in range(10):
        optimizer.zero_grad()
        (leafax.ones(4, 3) @ w.t()).square().sum().backward()
        optimizer.step()
    assert len(recorded) <= 4


def test_views_that_are_gone_are_not_remembered() -> None:
    x = leafax.ones(3)
    for _ in range(200):
        x.detach().view(3, 1)
    assert len(x._store.members) < 50


def test_slices_by_length_and_by_bounds_are_told_apart() -> None:
    x = leafax.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert x.tensor_split(2)[0].shape == (1, 3)
    assert x[:0].shape == (0, 3)
    assert x.tensor_split(2)[1].shape == (1, 3)
