"""Frozen vectors of a model enter a compiled program as one array; their values are as ever."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import leafax
from leafax.functional.execution import packed_inputs
from leafax.functional.execution.plan import _PLANS
from leafax.functional.execution.policy import forget_runs

N = 20


@pytest.fixture(autouse=True)
def _no_part_of_the_history() -> Iterator[None]:
    """Forget these runs afterwards: other tests ask which programs are worth compiling."""
    yield
    forget_runs()


def _layers(ws: Any, x: Any) -> Any:
    for w in ws[:-1]:
        x = x * w.astype(x.dtype) + 1
    return x @ ws[-1]


class Model:
    """`N` frozen vectors of two dtypes, and a matrix that trains.

    Args:
      width: of the vectors; models of one width share their programs.
    """

    def __init__(self, seed: float = 0.0, width: int = 4) -> None:
        vectors = [(leafax.arange(float(width)) * 0.01 + k + seed) / N for k in range(N)]
        vectors[3] = leafax.ones(width, dtype=leafax.int32)
        leafax.synchronize()
        self.width = width
        self.head = leafax.full((width, 2), 0.5, requires_grad=True)
        self.leaves = leafax.Leaves([*vectors, self.head])

    def loss(self, x: Any) -> Any:
        return leafax.call_jax(_layers, self.leaves, x).square().sum()

    def expected(self, x: Any) -> float:
        ws = [t.detach().jax() for t in self.leaves]  # integers that NumPy sees go to the host
        return float((_layers(ws, jnp.asarray(x.numpy())) ** 2).sum())


def _train(model: Model, steps: int, change: Any = None) -> list[tuple[float, float]]:
    """Losses of a few steps of SGD, and what they should have been."""
    optimizer = leafax.optim.SGD([model.head], lr=0.01)
    found = []
    for i in range(steps):
        x = leafax.arange(3.0 * model.width).reshape(3, model.width) + i
        leafax.synchronize()
        if change is not None:
            change(model, i)
        expected = model.expected(x)
        loss = model.loss(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append((loss.item(), expected))
    return found


def _packings() -> list[Any]:
    ready = [plan._ready for plan in _PLANS.values() if plan._ready is not None]
    return [packing for _, packing in ready if packing is not None]


def _close(found: list[tuple[float, float]]) -> None:
    for got, want in found:
        assert got == pytest.approx(want, rel=1e-5)


def test_frozen_vectors_are_packed() -> None:
    model = Model()
    _close(_train(model, 4))
    packing = next(p for p in _packings() if len(p._places) == N)
    assert len(packing._by_dtype) == 2
    (made,) = packing._sets.values()
    assert [p.shape for p in made.packs] == [(4 * (N - 1),), (4,)]
    assert not any(t.requires_grad for t in model.leaves[:-1])


@pytest.mark.parametrize("how", ["data", "copy_", "mul_", "view", "unfreeze"])
def test_what_is_written_to_a_frozen_vector_is_seen(how: str) -> None:
    model = Model()
    _close(_train(model, 3))

    def change(model: Model, i: int) -> None:
        t = model.leaves[7]
        with leafax.no_grad():
            if how == "data":
                t.data = leafax.full((4,), 0.3 + i)
            elif how == "copy_":
                t.copy_(leafax.full((4,), 0.4 + i))
            elif how == "mul_":
                t.mul_(1.5)
            elif how == "view":
                t[1:3] = 0.25 + i
            elif i == 2:
                t.requires_grad_()

    _close(_train(model, 4, lambda m, i: change(m, i) if i in (1, 2) else None))
    if how == "unfreeze":
        assert model.leaves[7].grad is not None


def test_vectors_that_change_every_step_are_let_be() -> None:
    """Packing them anew each time would cost more than it saves: the program is compiled anew."""

    def change(model: Model, i: int) -> None:
        model.leaves[7].data = leafax.full((3,), 0.3 + 0.01 * i)

    model = Model(width=3)
    _close(_train(model, packed_inputs._PATIENCE + 6, change))
    leafax.explain(clear=True)
    _close(_train(model, 3, change))
    assert leafax.explain().compiles == 0


def test_steady_state_compiles_nothing() -> None:
    model = Model(0.5)
    _train(model, 5)
    leafax.explain(clear=True)
    _train(model, 5)
    assert leafax.explain().compiles == 0


def test_models_of_one_kind_take_turns() -> None:
    models = [Model(0.1 * k) for k in range(3)]
    for _ in range(3):
        for model in models:
            _close(_train(model, 2))


def test_sets_are_forgotten_oldest_first() -> None:
    models = [Model(0.1 * k, width=6) for k in range(packed_inputs._SETS + 3)]
    for model in models:
        _close(_train(model, 2))
    sets = [p._sets for p in _packings() if p._avals[p._places[0]].shape == (6,)]
    assert sets
    assert max(map(len, sets)) == packed_inputs._SETS
    assert all(r() is not None for s in sets for made in s.values() for r in made.alive)
    _close(_train(models[0], 2))


@pytest.mark.exhaustive
def test_what_its_text_and_memory_are_asked_of() -> None:
    model = Model(width=7)
    _train(model, 3)
    plan = next(
        plan for plan in _PLANS.values()
        if plan._ready is not None and plan._ready[1] in _packings()
        and plan._ready[1]._avals[plan._ready[1]._places[0]].shape == (7,)
    )  # fmt: skip
    ready = plan._ready[1]
    with jax.enable_x64(True):
        args = [jnp.zeros(a.shape, a.dtype) for a in ready._avals]
    assert "7" in plan.lowered(args).as_text()


def test_threads_with_models_of_their_own() -> None:
    wrong: list[Any] = []

    def work(k: int) -> None:
        try:
            _close(_train(Model(0.05 * k), 6))
        except BaseException as e:  # noqa: BLE001
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_nobodys_memory_is_kept() -> None:
    model = Model(width=5)
    _train(model, 4)
    arrays = [weakref.ref(t._array) for t in model.leaves]
    sets = [p._sets for p in _packings()]
    mine = [s for s in sets if any(r() is arrays[0]() for made in s.values() for r in made.alive)]
    assert mine
    del model
    leafax.synchronize()
    gc.collect()
    assert not any(r() is not None for r in arrays[:-1])
    assert not any(r() is None for s in mine for made in s.values() for r in made.alive)


def test_few_or_long_vectors_enter_as_they_are() -> None:
    from leafax.functional import Aval, Input, Program

    def packing(*shapes: tuple[int, ...]) -> Any:
        inputs = tuple(Input(Aval(shape, jnp.dtype("float32"))) for shape in shapes)
        program = Program(inputs, (0,), ())
        return packed_inputs.Packing.of(program, range(len(shapes)), ())

    assert packing(*[(4,)] * 15) is None
    assert packing(*[(4,)] * 16)._places == list(range(16))
    assert packing(*[(4,)] * 16, (4097,), (2, 2), (), (0,)).rest == [16, 17, 18, 19]
