"""Batches that are gathered by indices that were drawn: `stack([data[i : i + 8] for i in ix])`."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers.sameness import same

import leafax

BLOCK, BATCH = 8, 4
with tempfile.TemporaryFile() as _file:
    _MAPPED = np.memmap(_file, np.uint16, "w+", shape=(500,))
_MAPPED[:] = np.arange(500) % 64


def _data(lib: Any) -> Any:
    return lib.from_numpy(np.arange(500) % 64)


def _sliced(lib: Any, data: Any, ix: Any) -> Any:
    x = lib.stack([data[i : i + BLOCK] for i in ix])
    return x, lib.stack([data[i + 1 : i + 1 + BLOCK] for i in ix])


def _by_int(lib: Any, data: Any, ix: Any) -> Any:
    x = lib.stack([data[int(i) : int(i) + BLOCK] for i in ix])
    return x, lib.stack([data[1 + i.item() : i.item() + 1 + BLOCK] for i in ix])


def _by_place(lib: Any, data: Any, ix: Any) -> Any:
    ix.tolist()
    x = lib.stack([data[ix[k] : ix[k] + BLOCK] for k in range(BATCH)])
    return x, lib.stack([data[ix[k] + 1 : ix[k] + 1 + BLOCK] for k in range(BATCH)])


def _mapped(lib: Any, data: Any, ix: Any) -> Any:
    x = [lib.from_numpy(_MAPPED[i : i + BLOCK].astype(np.int64)) for i in ix]
    y = [lib.from_numpy(_MAPPED[i + 1 : i + 1 + BLOCK].astype(np.int64)) for i in ix]
    return lib.stack(x).to("cpu"), lib.stack(y).to("cpu")


def _one_by_one(lib: Any, data: Any, ix: Any) -> Any:
    x, y = [], []
    for i in ix:
        x.append(data[i : i + BLOCK])
        y.append(data[i + BLOCK])
    return lib.stack(x), lib.cat([x[0][1:], x[1], lib.stack(y)[:1]]).view(2, BLOCK).repeat(2, 1)


GETS: dict[str, Callable[..., Any]] = {
    "slices": _sliced, "ints": _by_int, "places": _by_place, "mapped": _mapped,
    "list": lambda lib, data, ix: _sliced(lib, data, ix.tolist()),
    "as rows": lambda lib, data, ix: _sliced(lib, data.view(-1, 5).view(500), ix),
    "part": lambda lib, data, ix: _sliced(lib, data[:499], ix),
    "one by one": _one_by_one,
}  # fmt: skip


@pytest.mark.parametrize("name", GETS)
def test_a_batch_is_as_in_pytorch(name: str) -> None:
    def program(lib: Any, see: Any) -> None:
        data = _data(lib)
        x, y = GETS[name](lib, data, lib.tensor([3, 77, 1, 320]))
        see(x, y)
        data.zero_()
        see(x, y, data[3])

    same(program)


def _learn(get: Any, draw: Any, steps: int, early: bool = False) -> list[Any]:
    """The runs of each of the last steps; `early`: the next batch comes before `backward()`."""
    leafax.manual_seed(0)
    data = _data(leafax)
    w = leafax.full((64, 64), 0.01, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    found = []
    batch = get(leafax, data, draw())
    for _ in range(steps):
        leafax.explain(clear=True)
        x, y = batch if early else get(leafax, data, draw())
        loss = leafax.nn.functional.cross_entropy(w[x].view(-1, 64), y.view(-1))
        if early:
            batch = get(leafax, data, draw())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        found.append(leafax.explain())
    return found[-10:]


DRAWS: dict[str, Callable[[], Any]] = {
    "randint": lambda: leafax.randint(490, (BATCH,)),
    "randperm": lambda: leafax.randperm(490)[:BATCH],
}


@pytest.mark.quick(9)
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("drawn", DRAWS)
@pytest.mark.parametrize("name", GETS)
def test_a_step_is_one_program(name: str, drawn: str, early: bool) -> None:
    """Beside the draw, which is looked at; whatever was drawn, nothing is compiled."""
    for runs in _learn(GETS[name], DRAWS[drawn], 30, early):
        assert not runs.compiles
        assert [run.reason for run in runs].count("optimizer.step()") == 1
        assert len(runs) == 2


def test_a_batch_of_rows_takes_no_program() -> None:
    rows = leafax.from_numpy(np.arange(60.0).reshape(20, 3))
    leafax.synchronize()
    leafax.explain(clear=True)
    order = [3, 11, 3, 0]
    x = leafax.stack([rows[k] for k in order])
    y = leafax.cat([rows[k : k + 2] for k in order])
    assert x.tolist() == [[3.0 * k, 3 * k + 1, 3 * k + 2] for k in order]
    assert y.shape == (8, 3) and y[2].tolist() == [33, 34, 35]
    assert not leafax.explain()


def test_looking_at_what_was_drawn_changes_no_number() -> None:
    def drawn(look: bool) -> list[Any]:
        leafax.manual_seed(3)
        w = leafax.ones(3, requires_grad=True)
        found = []
        for turn in range(3):
            loss = (w * turn).sum()
            ix = leafax.randint(1000, (5,))
            found.append([int(i) for i in ix] if look else ix)
            loss = loss * leafax.rand(())
            loss.backward()
            found.append(leafax.randperm(9)[:4])
            if look:
                found[-1] = [i.item() for i in found[-1]]
        return [*[x if look else x.tolist() for x in found], w.grad.tolist()]  # type: ignore[union-attr]

    assert drawn(True) == drawn(False)


def test_draws_by_few_and_many_are_those_of_jax() -> None:
    import jax

    from leafax.functional.execution.numpy.random import threefry

    key = np.array([123456789, 4294967295], np.uint32)
    for n in (1, 2, 5, 6, 100):
        low = np.arange(n, dtype=np.uint32)
        x, y = threefry(key, np.zeros_like(low), low)
        with jax.enable_x64(True):
            bits = jax.random.bits(jax.random.wrap_key_data(key, impl="threefry2x32"), (n,), "u4")
        assert (x ^ y).tolist() == np.asarray(bits).tolist()


def test_slices_see_what_is_written() -> None:
    def program(lib: Any, see: Any) -> None:
        d = _data(lib)
        a, e = d[2:6], d[4]
        see(a, e, a._base is d)
        d[3] = 99
        see(a, d[:8])
        a[0] = -1
        see(a, d[:8], a + d[2:6])
        c = d[10:14][1:3]
        c.add_(5)
        see(c, d[10:14], c._base is d)
        d += 1
        see(e, int(e), e + 1, 1 + e, e - 1, 2 - e, e * 3, e > 5, e == int(e))
        items = [*d[:5]]
        see(items, items[1] + 1)
        d[1] = 1000
        see(items[1], int(items[1]), items[1] + 1)
        try:
            items[1].add_(1)
        except RuntimeError as error:
            see(error)
        see(copy.deepcopy(d[2:5]), d[2:5].clone())
        v = d[2:5].view(3, 1)
        v[0] = 50
        see(v, d[:5], v.unsqueeze(0) + d[2:5])
        detached = d[1:3].detach()
        detached[0] = 7
        see(detached, d[:3])

    same(program)


def test_gradients_pass_through_what_is_gathered() -> None:
    def program(lib: Any, see: Any) -> None:
        w = lib.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
        see(w[1:3])
        s = lib.stack([w[0:2], w[2:4]])
        (s * 2).sum().backward()
        see(s), see.gradients(w.grad)
        f = lib.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        rows = [f[i] for i in (0, 2)]
        see(lib.stack(rows))
        f.requires_grad_()
        see(rows[0], f[0])
        h = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        q, view = lib.ones(2, requires_grad=True), h[0]
        view.mul_(q)
        h.sum().backward()
        see(view, h), see.gradients(q.grad)
        g = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
        loss = (g[1] * q).sum()
        g.add_(1)
        try:
            loss.backward()
        except RuntimeError as error:
            see(str(error)[:60])
        with lib.no_grad():
            see(g[0], lib.stack([g[0], g[1]]))
        with lib.inference_mode():
            see(lib.stack([g[0], g[1]]))

    same(program)


def test_what_cannot_be_gathered_is_refused() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(6)
        for call in (
            lambda: lib.stack([x[:2], x[:3]]), lambda: lib.cat([x[:2], lib.zeros(2, 3)]),
            lambda: lib.stack([x[:2]], dim=5), lambda: x[7], lambda: lib.stack([x[0], 3]),
            lambda: lib.cat([x[0], x[1]]),
        ):  # fmt: skip
            try:
                call()
            except Exception as error:
                see(error)
        see(lib.cat([x[:2], lib.tensor([1.5])]), lib.stack([x[:1], lib.tensor([1.5])]))
        see(lib.stack([x[:2], x[3:5]], -1), lib.cat([x[0:0], x[1:3]]))

    same(program)


def test_numbers_that_do_not_fit() -> None:
    def program(lib: Any, see: Any) -> None:
        n = lib.tensor(2**63 - 1)
        see(n + 1, n - 1, n * 2, lib.tensor(3) + 2.5, lib.tensor(3) + True, lib.tensor(3) / 2)
        m = n
        n -= 7
        see(m, n is m, n < 5, lib.tensor(3) - lib.tensor(5))

    same(program)


def test_slices_of_halves() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(6.0).bfloat16()
        see(lib.stack([x[:2], x[2:4]]).float(), x[1].item(), x[2:4].tolist())
        x = (lib.arange(6.0) + 1j)[1:]
        see(lib.stack([x[:2].conj(), x[2:4].conj()]))

    same(program)


def test_a_buffer_that_was_read_can_be_written_over() -> None:
    """A NumPy array on its memory, once kept, would make each write a copy of the whole."""
    import jax

    x = leafax.arange(1000) * 2
    leafax.synchronize()
    assert x[5].item() == 10 and leafax.stack([x[:2], x[4:6]]).tolist() == [[0, 2], [8, 10]]
    array = x.jax()
    with jax.enable_x64(True):
        jax.jit(lambda a: a + 1, donate_argnums=0)(array)
    assert array.is_deleted()


def test_views_by_other_names_are_read_as_they_are_said() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.arange(12).view(3, 4)
        x = x.clone()
        y = lib.from_numpy(np.arange(12).reshape(3, 4))
        for t in (x, y):
            views = [
                t.narrow(0, -2, 2), t.narrow(-1, 1, 2), t.select(-1, -2), t[::2], t[-2:], t[1:-1],
                t[5:9], t.narrow(0, lib.tensor(1), 1), t[2][1:], t[:2][0], t[-1], t.T[1:3],
                t.view(-1, 2)[1:4], t.reshape(4, 3)[2], t.t()[1], t.unsqueeze(-1)[0],
                t.T.reshape(2, 6)[1], t.transpose(0, -1)[3], t.view(2, 3, 2)[1].t()[0],
                t.flatten()[3:5], t.unsqueeze(1)[2],
            ]  # fmt: skip
            see(*[v.tolist() for v in views], views)
            see([lib.stack([v, v]) for v in views], [lib.cat([v, v], -1) for v in views])

    same(program)


@pytest.mark.parametrize("cast", ["int", "short", "char", "byte", "long"])
def test_labels_are_cast_where_they_lie(cast: str) -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.from_numpy(np.array([1, 300, -5, 2**40]))
        turned = lib.from_numpy(np.arange(6, dtype=np.int32).reshape(2, 3).T)
        whole, part, laid = (getattr(t, cast)() for t in (x, x[1:], turned))
        if cast != "long":  # else it is `x[1:]`
            part[0] = 7
        with lib.inference_mode():
            inside = getattr(x, cast)()
        see(x, whole, part, laid, inside)
        see([(t.is_leaf, t.is_inference(), t.stride()) for t in (whole, part, laid, inside)])

    same(program)


def test_a_cast_of_labels_takes_no_program() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)
    labels = leafax.from_numpy(np.arange(8, dtype=np.int32)).long()
    assert labels.tolist() == list(range(8))
    assert len(leafax.explain()) == 0
