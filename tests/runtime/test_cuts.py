"""When programs run, how often they compile, and what `explain()` says of it."""

from __future__ import annotations

import math
import random
from typing import Any
from unittest import mock

import jax
import numpy as np
import pytest

import leafax
from leafax._core.run_log import Run
from leafax._runtime.explain import Report
from leafax._tracing import loop_cuts
from leafax.functional.execution import op_by_op
from leafax.functional.execution.policy import forget_runs
from leafax.functional.lowering.vjp import vjp_of


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)


def linear_problem() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    w = leafax.tensor(rng.normal(size=(4, 2)), requires_grad=True)
    x, y = leafax.tensor(rng.normal(size=(8, 4))), leafax.tensor(rng.normal(size=(8, 2)))
    return w, x, y


@pytest.mark.parametrize(
    ("observe", "reason"),
    [
        (lambda t: t.sum().item(), "item()"),
        (lambda t: t.tolist(), "tolist()"),
        (lambda t: t.numpy(), "numpy()"),
        (lambda t: repr(t), "print"),
        (lambda t: bool(t.sum()), "bool()"),
        (lambda t: t.jax(), "jax()"),
        (lambda t: leafax.synchronize(), "synchronize()"),
    ],
)
def test_what_cuts_is_told_with_the_users_line(observe: Any, reason: str) -> None:
    t = leafax.ones(3) * 2
    observe(t)
    run = leafax.explain()[-1]
    assert run.reason == reason
    assert run.where[0] == __file__
    assert f"{reason} at test_cuts.py:{run.where[1]}" in str(leafax.explain())


def test_recording_runs_nothing() -> None:
    w, x, y = linear_problem()
    ((x @ w - y) ** 2).mean().backward()
    assert len(leafax.explain()) == 0
    assert w.grad is not None and w.grad.shape == (4, 2)
    assert len(leafax.explain()) == 0


def test_steady_state_compiles_nothing() -> None:
    w, x, y = linear_problem()
    optimizer = leafax.optim.Adam([w], lr=0.1)
    for step in range(6):
        optimizer.zero_grad()
        loss = ((x @ w - y) ** 2).mean() * (1.0 + step) + step
        loss.backward()
        optimizer.step()
        loss.item()
        if step == 2:
            leafax.explain(clear=True)
    report = leafax.explain()
    assert len(report) == 3, "one program a step"
    assert report.compiles == 0, "numbers that change are inputs"


@pytest.mark.usefixtures("all_recorded")
def test_a_number_that_changes_compiles_twice_at_most() -> None:
    x = leafax.ones(3)
    values = []
    for i in range(20):
        values.append(((x + 1) * (i * 0.5) - 1).sum().item())
    np.testing.assert_allclose(values, [3 * (2 * i * 0.5 - 1) for i in range(20)])
    assert leafax.explain().compiles <= 2
    assert [run.how for run in leafax.explain()][-10:] == ["cached"] * 10


def test_minus_zero_and_nan_are_numbers_of_their_own() -> None:
    x = leafax.ones(1)
    assert [str((x * c).item()) for c in (0.0, -0.0, 0.0, -0.0)] == ["0.0", "-0.0", "0.0", "-0.0"]
    assert all(np.isnan((x * float("nan")).item()) for _ in range(3))
    assert [(x * c).dtype for c in (1, 1.0, True)] == [leafax.float32] * 3
    i = leafax.ones(1, dtype=leafax.int64)
    assert [(i * c).dtype for c in (1, 1.0, True)] == [leafax.int64, leafax.float32, leafax.int64]


def test_slices_at_changing_places_compile_once() -> None:
    data = leafax.arange(100).float()
    data.tolist()
    leafax.explain(clear=True)
    sums = [data[i : i + 10].sum().item() for i in range(0, 100, 10)]
    assert sums == [45.0 + 100 * i for i in range(10)]
    assert leafax.explain().compiles <= 2


@pytest.mark.parametrize("batches", ["split", "chunk", "unbind", "tensor_split", "iterated"])
@pytest.mark.usefixtures("all_recorded")
def test_batches_that_are_pieces_of_one_tensor_are_one_program(batches: str) -> None:
    forget_runs()  # what came of this line with other batches
    rows = np.arange(72.0).reshape(12, 6)
    x = leafax.tensor(rows)
    argument = () if batches == "unbind" else (2,) if batches == "split" else (6,)
    pieces = iter(x) if batches == "iterated" else getattr(x, batches)(*argument)
    leafax.explain(clear=True)
    seen = [((piece * 2).sum() + 1).item() for piece in pieces]
    np.testing.assert_allclose(seen, 2 * rows.reshape(len(seen), -1).sum(1) + 1)
    how = [run.how for run in leafax.explain(clear=True)]
    assert len(how) >= 6 and set(how[4:]) == {"cached"}


@pytest.mark.usefixtures("all_recorded")
def test_windows_at_random_places_compile_a_few_times_only() -> None:
    """The batches of character models: ten slices each, none where it was the turn before."""
    x = leafax.arange(100.0)
    rng = np.random.default_rng(0)
    leafax.explain(clear=True)
    for _ in range(8):
        starts = rng.integers(0, 90, 10).tolist()
        batch = leafax.stack([x[i : i + 5] for i in starts])
        assert batch.sum().item() == sum(5 * i + 10 for i in starts)
    how = [run.how for run in leafax.explain(clear=True)]
    assert set(how[4:]) == {"cached"}


def test_printing_the_loss_before_backward_gives_the_same_in_two_programs() -> None:
    def train(observe: bool) -> tuple[list[float], Any]:
        w, x, y = linear_problem()
        optimizer = leafax.optim.SGD([w], lr=0.1)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = ((x @ w).exp() - y).pow(2).mean()
            if observe:
                losses.append(loss.item())
            loss.backward()
            optimizer.step()
            losses += [] if observe else [loss.item()]
        return losses, w.detach().numpy()

    plain, w_plain = train(False)
    leafax.explain(clear=True)
    seen, w_seen = train(True)
    np.testing.assert_allclose(seen, plain, rtol=1e-12)
    np.testing.assert_allclose(w_seen, w_plain, rtol=1e-12)
    reasons = [run.reason for run in leafax.explain()]
    assert reasons[:4] == ["item()", "optimizer.step()"] * 2


def test_backward_after_a_cut_computes_no_forward_again() -> None:
    w, x, _ = linear_problem()
    loss = ((x @ w).exp() @ w.t()).exp().sum()
    loss.item()
    loss.backward()
    leafax.synchronize()
    from leafax._runtime import cut

    text = cut.plans[-1][1].lowered(_arguments(cut.plans[-1][1])).as_text()
    assert "exponential" not in text, "residuals carry what the forward computed"
    # The second product's two gradients and the first's one: `x` requires none.
    assert text.count("dot_general") == 3, "gradients of products, and nothing else"


def _arguments(plan: Any) -> list[Any]:
    inputs = [e.aval for e in plan.program.entries if hasattr(e, "aval")]
    return [np.zeros(a.shape, a.dtype) for a in inputs]


def test_branching_on_the_loss() -> None:
    x = leafax.tensor([3.0], requires_grad=True)
    y = x * 2
    z = y * y if y.sum() > 5 else y
    z.backward()
    assert x.grad is not None and x.grad.item() == 24.0


def test_a_loop_that_never_observes_runs_in_bounded_programs() -> None:
    rng = np.random.default_rng(0)
    batches = [rng.normal(size=(8, 5)).astype("f") for _ in range(10)]
    w = leafax.tensor(rng.normal(size=(5, 3)).astype("f"), requires_grad=True)
    correct = leafax.tensor(0)
    for i in range(3000):
        x = leafax.from_numpy(batches[i % 10])
        correct += (leafax.relu(x @ w).argmax(1) == 0).sum()
    expected = sum(
        int((np.maximum(batches[i % 10] @ w.detach().numpy(), 0).argmax(1) == 0).sum())
        for i in range(3000)
    )
    assert correct.item() == expected
    report = leafax.explain()
    assert report.compiles <= 3
    assert max(run.nodes for run in report) <= loop_cuts.BUDGET + 1
    assert any("the program is long" in run.reason for run in report)


def test_a_long_differentiable_chain_is_cut_and_still_right() -> None:
    x = leafax.tensor([1.0], dtype=leafax.float64, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y * 1.0001
    y.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.item(), 1.0001**20_000, rtol=1e-9)
    report = leafax.explain()
    assert report.compiles <= 8, "a long chain is several programs of equal structure"
    assert max(run.nodes for run in report) <= loop_cuts.BUDGET + 1


def test_little_programs_run_op_by_op_first() -> None:
    a = leafax.ones(7)
    for _ in range(2):
        (a + 1).tolist()
        (a * 2).tolist()
    leafax.explain(clear=True)
    ((a + 1) * 2).tolist()
    ((a + 1) * 2).tolist()
    ((a + 1) * 2).tolist()
    assert [run.how for run in leafax.explain()] == ["op by op", "compiled", "cached"]


def test_turns_that_repeat_few_ops_are_not_compiled_whole_at_first() -> None:
    x = leafax.ones(1, 11)
    leafax.synchronize()
    expected = 0.0
    for _ in range(60):
        expected = math.sin(expected + 1) * 0.5
    for how in ("op by op", "compiled", "cached"):
        leafax.explain(clear=True)
        other = leafax.zeros(1, 11)
        other.add_(0)
        leafax.synchronize()
        for _ in range(60):
            other.add_(x).sin_().mul_(0.5)  # gives its buffer away
        np.testing.assert_allclose(other.numpy(), np.full((1, 11), expected), rtol=1e-5)
        run = leafax.explain()[-1]
        assert run.how == how
        assert run.donated == (how != "op by op")
    assert leafax.explain()[-1].nodes == 180


def test_a_net_that_is_another_at_each_step_is_not_compiled_each_time() -> None:
    """A new step runs op by op where there were several others, compiled if it is met again."""
    w = leafax.full((1, 13), 0.5, dtype=leafax.float64, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)

    def step(path: int) -> tuple[float, str]:
        x = w
        for k in range(8):
            x = (x.sin() if path >> k & 1 else x.tanh()) * w
        before = w.detach().clone()
        leafax.synchronize()
        optimizer.zero_grad()
        x.sum().backward()
        leafax.explain(clear=True)
        optimizer.step()
        how = leafax.explain()[-1].how
        assert w.grad is not None
        assert leafax.equal(w, before - 0.1 * w.grad)
        return w.sum().item(), how

    ran = [step(path)[1] for path in range(40, 48)]
    assert ran[:3] == ["compiled"] * 3 and ran[3:] == ["op by op"] * 5
    assert _is_compiled_by_and_by([step(47)[1] for _ in range(20)])
    assert [step(100)[1] for _ in range(2)] == ["op by op", "compiled"]  # a loop, as it seems


def test_lengths_that_return_between_others_are_not_compiled_each() -> None:
    """Batches of a few dozen lengths that come in any order: each is met again, seldom."""
    w = leafax.full((3, 3), 0.5, dtype=leafax.float64, requires_grad=True)
    optimizer, how, order = leafax.optim.Adam([w], lr=0.01), [], random.Random(0)
    for _ in range(120):
        x = leafax.ones(order.randint(8, 30), 3, dtype=leafax.float64)
        optimizer.zero_grad()
        (x @ w - x).tanh().square().mean().backward()
        optimizer.step()
        how.append(leafax.explain()[-1].how)
    assert how.count("compiled") <= 4 and how[60:].count("op by op") >= 50


def test_rows_that_masks_leave_are_not_compiled_for_each_count() -> None:
    """Means over clusters: each count is met again, between others."""
    points, order = leafax.arange(120.0).view(40, 3), random.Random(0)
    leafax.explain(clear=True)
    for _ in range(40):
        mask = leafax.tensor([order.random() < 0.3 for _ in range(40)])
        chosen = points[mask]
        assert chosen.mean(0).shape == (3,) and chosen.sum().item() >= 0
    assert leafax.explain().compiles <= 2


def test_text_that_is_sampled_is_not_compiled_for_each_length() -> None:
    """A program of 2000 ops for some twenty lengths, and others when it is sampled again."""
    weight, tokens = leafax.randn(9, 9), leafax.randn(5, 9)

    def sample(length: int) -> list[int]:
        text = leafax.zeros(1, 1, dtype=leafax.int64)
        for _ in range(length):
            x = tokens[text]
            for _ in range(6):
                scores = (x @ x.transpose(1, 2)).masked_fill(
                    leafax.tril(leafax.ones(x.shape[1], x.shape[1])) == 0, float("-inf")
                )
                x = (scores.softmax(-1) @ x + x @ weight).tanh()
            text = leafax.cat([text, (x[:, -1] @ tokens.t()).argmax(-1, keepdim=True)], 1)
        return text[0].tolist()

    leafax.explain(clear=True)
    texts = [sample(60) for _ in range(3)]
    assert texts[0] == texts[1] == texts[2]
    assert leafax.explain().compiles == 0
    assert max(run.nodes for run in leafax.explain()) > 1900


@pytest.mark.exhaustive
def test_episodes_that_ask_a_small_model_are_not_compiled_for_each_length() -> None:
    """An observation a turn, a loss over the episode: its gradients of the model run alone."""
    w = leafax.full((3, 2), 0.5, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)
    model = leafax.jax_function(lambda w, x: jax.nn.log_softmax(jax.numpy.tanh(x @ w)))

    def episode(length: int) -> float:
        logs = []
        for k in range(length):
            scores = model(w, leafax.full((1, 3), 0.1 + k % 3))
            logs.append(scores[0, int(scores[0, 0].item() > -0.5)])
        logs = leafax.stack(logs)
        loss = -(logs * leafax.arange(float(length))).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.item())

    def gradient(length: int) -> Any:
        episode(length)
        assert w.grad is not None
        return w.grad.tolist()

    lengths = (40, 44, 37, 52, 61, 33, 48, 57)
    leafax.explain(clear=True)
    for length in lengths:
        episode(length)
    steps = [run for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert len(steps) == len(lengths) and min(run.nodes for run in steps) > 150
    assert [run.how for run in steps].count("compiled") <= 1
    with leafax.no_grad():
        w.fill_(0.5)
    apart = gradient(42)
    assert steps_how() == "op by op"
    with leafax.no_grad():
        w.fill_(0.5)
    with mock.patch.object(op_by_op.CompilePolicy, "runs_op_by_op", return_value=False):
        np.testing.assert_allclose(gradient(42), apart, rtol=1e-5)
    assert steps_how() == "compiled"


def steps_how() -> str:
    return [run.how for run in leafax.explain() if run.reason == "optimizer.step()"][-1]


def test_a_long_program_is_not_compiled_for_one_more_run() -> None:
    """Steps that are met again between others run op by op until that has cost its part."""
    w = leafax.full((1, 17), 0.5, dtype=leafax.float64, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1)

    def step(length: int) -> str:
        x = w
        for _ in range(length):
            x = x.sin() * w
        optimizer.zero_grad()
        x.sum().backward()
        leafax.explain(clear=True)
        optimizer.step()
        return leafax.explain()[-1].how

    assert {step(n) for n in (30, 31, 32, 30, 31, 32, 31)} == {"op by op"}
    assert _is_compiled_by_and_by([step(31) for _ in range(12)])  # a loop's body after all


def _is_compiled_by_and_by(ran: list[str]) -> bool:
    """Tell whether a step that repeats is compiled after a few times, once."""
    first = ran.index("compiled")
    rest = ["cached"] * (len(ran) - first - 1)
    return 2 <= first <= 9 and ran == ["op by op"] * first + ["compiled", *rest]


def test_tensors_that_are_one_array_come_out_once() -> None:
    leafax.explain(clear=True)
    x = leafax.ones(2) + 1
    y = x.detach()
    assert y.tolist() == x.tolist() == [2.0, 2.0]
    run = leafax.explain()[0]
    assert (run.outputs, run.saved) == (1, 0)


def test_temporaries_that_died_are_no_outputs() -> None:
    a = leafax.ones(3)
    b = (a + 1) * 2 - 3
    b.tolist()
    assert leafax.explain()[-1].outputs == 2  # `a`, which is alive and was pending, and `b`


def test_batches_gathered_from_a_replay_buffer_are_one_program() -> None:
    """Which of the sampled tensors are the same one differs from step to step."""
    choose = random.Random(0)
    states = [leafax.tensor([[float(i), 1.0]]) for i in range(12)]
    w = leafax.ones(2, 1, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.01)
    expected, compiles = np.ones((2, 1), np.float32), []
    for _ in range(12):
        places = choose.choices(range(11), k=5)
        now = leafax.cat([states[i] for i in places])
        then = leafax.stack([states[i + 1] for i in places])
        loss = (now @ w - then[:, 0, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        compiles.append(leafax.explain(clear=True).compiles)
        x = np.array([[i, 1] for i in places], np.float32)
        y = np.array([[i + 1] for i in places], np.float32)
        expected -= 0.01 * 2 / 5 * x.T @ (x @ expected - y)
    assert sum(compiles[2:]) == 0
    np.testing.assert_allclose(w.detach().numpy(), expected, rtol=1e-4)


def test_a_number_that_backward_does_not_need_is_no_wider_than_it_was() -> None:
    """It stands for itself over a cut: a strong float64 would make the result one."""
    x = leafax.tensor(2.0, requires_grad=True)
    for number in (1.0, 2.0, 3.0):
        leafax.synchronize()
        y = leafax.where(x > 0, x, number)
    state = y.grad_fn.state
    assert [v.weak for v in state.operands] == [False, False, True]
    absent = tuple((i, state.operands[i].aval) for i in (1, 2))
    call = vjp_of(state.call, 3, (1,), (0,), absent)
    with jax.enable_x64(True):
        (gradient,) = call.evaluate(np.array(True), np.float32(1))
    assert gradient == 1 and gradient.dtype == np.float32


def test_what_cannot_be_run_fails_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later calls found the same program, and failed like it, until its tensors were gone."""

    def fail(*args: Any) -> Any:
        raise TypeError("no such gradient")

    w = leafax.ones(3, requires_grad=True)
    y = w * 2
    with monkeypatch.context() as patch:
        patch.setattr(leafax._runtime.cut, "residual_plan", fail)
        with pytest.raises(TypeError, match="no such gradient"):
            y.tolist()
    assert (w + 1).tolist() == [2.0, 2.0, 2.0]
    assert y.tolist() == [2.0, 2.0, 2.0]


def test_turns_of_a_loop_are_told_once() -> None:
    a = Run("item()", ("loop.py", 3), 4, "cached", 0.001, 1, 2, 0, 0)
    b = a._replace(nodes=7, seconds=0.004)
    table = str(Report([b, a, a, a, *[b, a] * 5, b._replace(how="compiled")]))
    assert table.splitlines()[1:] == [
        "7    cached     4.00      1   2   0     0        item() at loop.py:3",
        "4    cached     1.00      1   2   0     0        item() at loop.py:3",
        "     the same, 2 times more, 1.00 ms each in the median",
        "7    cached     4.00      1   2   0     0        item() at loop.py:3",
        "4    cached     1.00      1   2   0     0        item() at loop.py:3",
        "     these 2, 4 times more, 2.50 ms each in the median",
        "7    compiled   4.00      1   2   0     0        item() at loop.py:3",
    ]


def test_deterministic_algorithms_give_the_same_bits_from_the_first_run_on() -> None:
    rng = np.random.default_rng(1)
    x, y = (leafax.tensor(rng.normal(size=23).astype("float32")) for _ in range(2))

    def rounded() -> list[list[float]]:
        return [(x * y + 1).tolist(), (x * y + x).sum().item(), (x + 0.1).exp().tolist()]

    leafax.use_deterministic_algorithms(True)
    try:
        first, again = rounded(), rounded()
        assert first == again
        assert {run.how for run in leafax.explain()} == {"compiled", "cached"}
        leafax.explain(clear=True)
        assert leafax.arange(6).reshape(2, 3).t().tolist() == [[0, 3], [1, 4], [2, 5]]
        assert leafax.explain()[0].how == "op by op", "nothing is rounded"
    finally:
        leafax.use_deterministic_algorithms(False)
    leafax.explain(clear=True)
    (x * y - 2).tolist()
    assert leafax.explain()[0].how == "op by op"


def test_the_order_of_its_tensors_makes_no_other_program() -> None:
    plans = []
    for _ in range(2):  # a view is computed earlier where what reads it is not known yet
        x = leafax.ones(3, 6)
        y = x * 2
        a, b = leafax.sigmoid(y[:, :3]), y[:, 3:]
        product = a[:, None] * b[:, None]
        leafax.synchronize()
        plans.append(leafax._runtime.cut.plans[-1][1])
        assert product.tolist() == (a * b)[:, None].tolist()
    assert plans[0] is plans[1]


@pytest.mark.usefixtures("all_recorded")
def test_what_nobody_reads_is_not_computed_op_by_op() -> None:
    x = leafax.arange(40)
    x.tolist()
    for i in range(3):  # the gathers are dead, and checked
        y, _ = x[: 5 + i] + 1, x.index_select(0, x[:3])
        del _
        with mock.patch.object(op_by_op, "run_node", side_effect=op_by_op.run_node) as ran:
            assert y.tolist() == list(range(1, 6 + i))
        ops = [call.args[0].call.name for call in ran.call_args_list]
        assert leafax.explain()[-1].how == "op by op" and "index_select" not in ops and ops
    with pytest.raises(IndexError, match="index out of range in self"):
        y, _ = x[:9] + 1, x.index_select(0, x[39:] + 1)
        del _
        y.tolist()


def test_a_short_program_among_many_of_one_update_is_not_compiled() -> None:
    """Of trees of any size the small ones would be, one after the other."""
    w = leafax.ones(3, 3).requires_grad_()
    optimizer = leafax.optim.SGD([w], lr=1e-3)

    def step(depth: int) -> None:
        y = leafax.ones(3)
        for _ in range(depth):
            y = (w @ y).tanh()
        optimizer.zero_grad()
        y.sum().backward()
        optimizer.step()

    for depth in (40, 44, 42, 46, 3):
        step(depth)
    updates = [run.how for run in leafax.explain() if run.reason == "optimizer.step()"]
    assert "compiled" not in updates[-5:]
