"""Ops on small data at rest on the host: NumPy computes them at once, and no program runs.

Each program runs with leafax and with torch, and twice: what was met before takes other paths.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
import torch
from helpers.sameness import Log, assert_equal, run, same

import leafax
from leafax._core.trie import local
from leafax._host import compute, constants
from leafax.functional.execution import single_ops


@pytest.fixture(autouse=True)
def nothing_pending() -> Iterator[None]:
    leafax.synchronize()
    leafax.explain(clear=True)
    yield
    assert local.cuts.at_once


def without_programs(program: Callable[[Any, Log], None]) -> None:
    """Compare a program with torch's, and let no program run for it."""
    same(program)
    leafax.explain(clear=True)
    assert_equal(run(program, leafax), run(program, torch), "once more")
    report = leafax.explain(clear=True)
    assert (len(report), report.compilations) == (0, []) and report.at_once > 0, str(report)


def test_results_have_the_dtypes_and_shapes_of_pytorch() -> None:
    @without_programs
    def program(t: Any, log: Log) -> None:
        x, i = t.tensor([[1.5, -2.0, 3.0]]), t.tensor([3, 4, 5])
        scalar, flag = t.tensor(2.0), t.tensor([True, False, True])
        half = t.tensor([1.0, 2.0, 4.0], dtype=t.float64)
        for a, b in ((x, i), (i, scalar), (flag, i), (half, x), (scalar, i), (x, x.t())):
            log(a + b, a * b, a > b, t.maximum(a, b))
        log(x + 1, i + 1, i + 1.5, i * True, 2 - i, i / 2, flag + 1, -x, x.abs(), ~flag, i**2)
        log(x.sum(), i.sum(), x.mean(1), i.max(), x.argmax(), i.float(), x.long(), flag.int())
        log(x.clone(), x.exp(), t.where(flag, x, 0.0), x.clamp(-1, 2), i.cumsum(0), flag.any())
        log(t.tensor(2**63 - 1) + 1, t.tensor([250], dtype=t.uint8) + 10, i // 2, i % 2)


def test_lengths_that_no_call_had_before_are_computed_by_what_is_known() -> None:
    compute._plans.clear()
    compute._operators.clear()
    sizes = []
    for n in (3, 4, 7, 1, 0):
        x = leafax.from_numpy(np.arange(n, dtype="float32"))
        np.testing.assert_array_equal(((x + 1) * x).numpy(), (np.arange(n) + 1.0) * np.arange(n))
        sizes.append(len(compute._plans))
    assert sizes == [2] * 5 and len(leafax.explain()) == 0


def test_views_see_writes_and_count_versions_together() -> None:
    @without_programs
    def program(t: Any, log: Log) -> None:
        x = t.zeros(4, 3)
        x[1] = t.tensor([1.0, 2.0, 3.0])
        row, column, turned = x[1], x[:, 2], x.t()
        detached = x.detach()
        row += 10
        column[0] = -1.0
        turned[0, 3] = 5
        x[2:, :2] = 7.0
        detached[3] = row
        log(x, row, column, turned, detached, row[0])
        log([v._version for v in (x, row, column, turned, detached)])
        log(row._base is x, column.is_contiguous(), turned.stride(), column.storage_offset())
        row.zero_()
        x.mul_(2).add_(t.tensor([1.0, 2.0, 3.0]))
        x[0] = x[0]
        x[0, 0] += 1
        log(x, row, turned, x._version)


def test_places_masks_and_products() -> None:
    @without_programs
    def program(t: Any, log: Log) -> None:
        x, i = t.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]]), t.tensor([1, 0, -1])
        log(x[i], x[:, i], x[i[:2], i[1:]], x[x > 0], x[0, i], x[None, i], i[i], x[[True, False]])
        x[x < 0] = 0.0
        x[0, i[:2]] = t.tensor([7.0, 8.0])
        x[t.tensor([True, False])] += 1
        x[i[:1]] = x[:1] * 2
        log(x, x._version, x @ x.t(), x @ x[0], x[0] @ x[1], x.t().mm(x))
        log(*x.unbind(), x.flatten()[2:], x[0].expand(2, 3) + 1, x.squeeze(0), x[:, None].sum(1))
        log([row.sum().item() for row in x], x.index_select(0, i[:2]), x.gather(1, i[None, :2]))

    @same
    def wrong(t: Any, log: Log) -> None:
        x, i = t.tensor([[1.0, 2.0]]), t.tensor([3])
        log.attempt(lambda: x[:, t.tensor([True])])
        log.attempt(lambda: x[t.tensor([0.5])])
        log.attempt(x.__setitem__, t.tensor([0, 0, 0]), t.ones(2, 2))
        log.attempt(x.__setitem__, (0, t.tensor([[True]])), 1.0)
        log.attempt(lambda: x @ t.tensor([1.0, 2.0, 3.0]))
        log.attempt(lambda: (x / 0, i.expand(2).add_(1)))
        log(x, i)


def test_what_is_tried_leaves_no_step_that_a_recorded_call_could_take() -> None:
    root = local.root(local.mode)
    before = set(root.next)
    x = leafax.tensor([[1.0, float("nan")], [2.0, 3.0]])
    assert leafax.isnan(x.sum(1) * x.t()[0]).tolist() == [True, False]
    assert set(root.next) == before
    with pytest.raises(RuntimeError, match="failed to converge"):
        leafax.svd(x)[0].tolist()


def test_data_in_error_are_told_by_the_program() -> None:
    i = leafax.tensor([1, 2])
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        (i // leafax.tensor([1, 0])).tolist()
    assert (i // leafax.tensor([1, 1])).tolist() == [1, 2]
    with pytest.raises(IndexError, match="out of"):
        leafax.tensor([1.0, 2.0])[leafax.tensor([5])].tolist()
    with pytest.raises(RuntimeError, match="index 3 is out of bounds"):
        i.gather(0, leafax.tensor([3])).tolist()


def test_integers_that_were_looked_at_lie_on_the_host() -> None:
    ix = leafax.randperm(9)[:4]
    first = ix.tolist()
    leafax.explain(clear=True)
    assert [int(ix[k] + 1) for k in range(4)] == [k + 1 for k in first]
    ix[0] = 7
    assert (ix.tolist(), ix._base._version) == ([7, *first[1:]], 1)
    assert len(leafax.explain()) == 0


def test_buffers_are_counted_by_the_program() -> None:
    layer = leafax.nn.BatchNorm1d(2)
    leafax.explain(clear=True)
    layer(leafax.ones(3, 2))
    assert leafax.explain().at_once == 0 and int(layer.num_batches_tracked) == 1


def test_writes_that_pytorch_refuses_raise_its_errors() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x, i = t.zeros(3), t.tensor([1, 2, 3])
        for index, value in ((3, 1.0), (-4, 1.0), ((0, 0), 1.0), (0, t.ones(2)), (0, 1j)):
            log.attempt(x.__setitem__, index, value)
        log.attempt(x.__setitem__, slice(0, 2), t.ones(3))
        log.attempt(x.__setitem__, slice(None, None, -1), 1.0)
        log.attempt(i.__setitem__, 0, 2**70)
        log.attempt(i.add_, 1.5)
        log.attempt(i.add_, t.ones(3))
        log.attempt(x.add_, t.ones(2, 3))
        log.attempt(lambda: x + t.tensor([1.0, 2.0]))
        log.attempt(lambda: t.tensor([1.0, 2.0]) + t.tensor([1.0, 2.0, 3.0]))
        log.attempt(lambda: t.tensor([1.0]) & 1)
        y = t.tensor([1.0, 2.0, 3.0, 4.0])
        log.attempt(y[1:].add_, y[:-1])
        log.attempt(lambda: t.cat([t.tensor([1.0]), t.tensor([[1.0]])]))
        log.attempt(lambda: t.cat([t.tensor([1.0]), t.tensor(1.0)]))
        log(x, i, y, x._version)


def test_numbers_are_written_as_their_dtypes_hold_them() -> None:
    @without_programs
    def program(t: Any, log: Log) -> None:
        i, b = t.tensor([1, 2, 3]), t.tensor([False, False])
        x, y = t.tensor([1.0, 2.0]), t.tensor([1.0, 2.0], dtype=t.float64)
        i[0], i[1], b[0], b[1] = 2.9, True, 3, 0.5
        x[0], x[1], y[0] = 1e-50, float("inf"), 0.1
        x[0] = t.tensor(0.1, dtype=t.float64)
        y[1] = x[0]
        i[2] = t.tensor(7, dtype=t.int32)
        log(i, b, x, y)


def test_what_a_graph_saved_is_not_written_over() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        w, x, zeros = t.ones(3, requires_grad=True), t.tensor([1.0, 2.0, 3.0]), t.zeros(3)
        y = (w * x * (1 + w * zeros)).sum()
        x[1] = 5.0
        zeros[0] = 1.0
        log.attempt(y.backward)
        z = (w * x).sum()
        z.backward()
        log(x, zeros, w.grad, x._version)
        part = x[:2]
        kept = (w[:2] * part).sum()
        part += 1
        log.attempt(kept.backward)
        log(x, part)


def test_a_program_takes_what_lies_there_then() -> None:
    x = leafax.zeros(3)
    x[0] = 1.0
    w = leafax.ones(3, requires_grad=True)
    (w * x).sum().backward()
    view = x[1:]
    x[1] = 2.0  # recorded: the program has the memory
    view[1] = 3.0
    assert (w.grad.tolist(), x.tolist(), view.tolist()) == ([1, 0, 0], [1, 2, 3], [2, 3])


def test_a_step_is_one_program_with_its_batch_as_input() -> None:
    w = leafax.ones(4, 2, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    rng = np.random.default_rng(0)
    leafax.explain(clear=True)
    for _ in range(4):
        x, y = (
            leafax.from_numpy(rng.normal(size=(5, 4)).astype("f")),
            leafax.tensor([0, 1, 1, 0, 1]),
        )
        optimizer.zero_grad()
        loss = leafax.nn.functional.cross_entropy(x @ w, y)
        loss.backward()
        optimizer.step()
    report = leafax.explain()
    assert [run.reason for run in report] == ["optimizer.step()"] * 4
    assert len({run.inputs for run in report[1:]} if isinstance(report, list) else {1}) == 1
    assert report[3].inputs == report[2].inputs and report[3].how == "cached"


def test_constants_that_are_only_used_stay_in_the_program() -> None:
    w = leafax.ones(3, requires_grad=True)
    (w * leafax.arange(3.0) + leafax.zeros(3)).sum().backward()
    assert w.grad.tolist() == [0, 1, 2]
    assert len(leafax.explain()) == 1 and leafax.explain().at_once == 0


def test_a_constant_that_is_written_to_leaves_no_step_behind() -> None:
    before = local.trace.state
    for number in (2.0, 3.0, 4.0):  # from the second on it is an input
        x = leafax.full((3,), number)
        assert constants.is_pending_constant(x)
        x[0] = 1.0
        assert local.trace.state is before and not local.trace.arrays
        assert x.tolist() == [1, number, number] and x.dtype is leafax.float32
    x = leafax.full((2,), 5.0)
    w = leafax.ones(2, requires_grad=True) * 2.0
    x[0] = 1.0
    assert x.tolist() == [1, 5] and w.tolist() == [2, 2]
    assert leafax.explain().at_once > 0


IDIOMS: dict[str, Callable[[Any], Any]] = {
    "grow": lambda t: grown(t).tolist(),
    "stack of slices": lambda t: stacked(t).tolist(),
    "discount": lambda t: t.stack(discounted(t)).tolist(),
    "loop": lambda t: [float(v) for v in t.tensor([0.5, 1.5])],
    "rows": lambda t: [row.sum().item() for row in t.tensor([[1.0, 2.0], [3.0, 4.0]])],
    "compare": lambda t: [bool(v > 1) for v in t.tensor([0.5, 1.5])],
    "tensor index": lambda t: t.arange(5.0).clone()[t.tensor(3)].item(),
}


def grown(t: Any) -> Any:
    x = t.zeros(1, 2)
    for k in range(5):
        x = t.cat((x, t.tensor([[1.0, k]])))
    return x


def stacked(t: Any) -> Any:
    data = t.tensor([*range(20)])
    return t.stack([data[i + 1 : i + 5] for i in t.tensor([3, 0, 9])])


def discounted(t: Any) -> list[Any]:
    r, found = t.tensor(0.0), []
    for reward in (1.0, 2.0, 3.0):
        r = reward + 0.99 * r
        found.append(r)
    return found


@pytest.mark.parametrize("name", IDIOMS)
def test_idioms_of_scripts(name: str) -> None:
    expected = IDIOMS[name](torch)
    for _ in range(2):
        np.testing.assert_allclose(IDIOMS[name](leafax), expected, 1e-6)
    assert name == "tensor index" or len(leafax.explain()) == 0, str(leafax.explain())


def test_where_the_default_device_is_another_data_stay_on_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a GPU, programs run elsewhere than where NumPy's arrays are."""
    monkeypatch.setattr(single_ops, "_runs_on_host", lambda: False)
    for name, idiom in IDIOMS.items():
        if name != "tensor index":
            np.testing.assert_allclose(idiom(leafax), idiom(torch), 1e-6)
    assert len(leafax.explain()) == 0
    ix = leafax.randint(5, (4,))
    data = leafax.from_numpy(np.arange(9))
    x = leafax.stack([data[i : i + 3] for i in ix])
    assert x.tolist() == [[k, k + 1, k + 2] for k in ix.tolist()]
    assert [run.reason for run in leafax.explain()] == ["a loop over integers"]


def test_it_is_off_inside_transforms_and_where_it_is_turned_off() -> None:
    x = leafax.tensor([1.0, 2.0])
    leafax.func.grad(lambda v: (v * v).sum())(x)
    leafax.vmap(lambda v: v + 1)(x)
    jax.jit(lambda v: (leafax.tensor([1.0, 2.0]) * 2 + leafax.tensor([3.0, 4.0])).jax() + v)(1.0)
    local.cuts.at_once = False
    try:
        (leafax.tensor([1.0, 2.0]) + 1).tolist()
        y = leafax.tensor([1.0, 2.0])
        y[0] = 3.0
        assert y.tolist() == [3.0, 2.0]
    finally:
        local.cuts.at_once = True
    assert leafax.explain().at_once == 0


def test_deterministic_algorithms_leave_what_is_rounded_to_programs() -> None:
    leafax.use_deterministic_algorithms(True)
    try:
        (leafax.tensor([0.1, 0.2]) * 3).tolist()
        assert len(leafax.explain()) == 1
    finally:
        leafax.use_deterministic_algorithms(False)


def test_views_take_sizes_as_lists() -> None:
    x = leafax.from_numpy(np.arange(6.0))
    for _ in range(2):  # the second call is known
        assert x.reshape([2, 3]).permute([1, 0]).shape == (3, 2)
        assert x.view([3, 2]).expand([1, 3, 2]).shape == (1, 3, 2)


def test_numbers_that_a_dtype_does_not_hold_wrap_or_are_refused() -> None:
    @without_programs
    def program(t: Any, log: Log) -> None:
        x = t.tensor([0, 1, 44], dtype=t.uint8)
        for n in (1, 300, 2**40, -212, 44):
            log(str((x == n).tolist()), str((x < n).tolist()))

    @same
    def refused(t: Any, log: Log) -> None:
        for n in (1, 2**64, -(2**63) - 1):
            log.attempt(lambda n: str((t.tensor([7.0]) % n).tolist()), n)
            log.attempt(lambda n: str((t.tensor([7.0]) // n).tolist()), n)
