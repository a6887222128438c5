"""Reading data at rest beside the program, while a graph is being recorded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import leafax


@pytest.fixture(autouse=True)
def nothing_pending() -> None:
    leafax.synchronize()
    leafax.explain(clear=True)


def cuts() -> list[str]:
    return [run.reason for run in leafax.explain() if not run.reason.endswith("of data")]


def sentence(lib: Any, words: list[int]) -> list[Any]:
    """A recurrent net over tokens that are taken one by one; its losses and gradients."""
    rng = np.random.default_rng(0)
    embed, turn = (
        lib.tensor(0.3 * rng.normal(size=s), requires_grad=True) for s in ((9, 4), (4, 9))
    )
    tokens = lib.tensor(words)
    h, loss = lib.zeros(4, dtype=lib.float64), 0
    for i in range(len(words) - 1):
        h = (embed[tokens[i]] + h).tanh()
        loss = loss - (h @ turn).log_softmax(0)[tokens[i + 1]]
    printed = loss.item()
    loss.backward()
    return [printed, embed.grad.tolist(), turn.grad.tolist()]


def test_tokens_are_looked_at_without_a_cut() -> None:
    words = [3, 1, 4, 1, 5, 8, 2, 6]
    for ours, theirs in zip(sentence(leafax, words), sentence(torch, words), strict=True):
        np.testing.assert_allclose(ours, theirs, 1e-12, 1e-14)
    # A token at rest takes no program at all.
    assert [run.reason for run in leafax.explain()] == ["item()", "tolist()"]


@pytest.mark.usefixtures("all_recorded")
def test_a_sentence_that_is_taken_apart_is_looked_at_once() -> None:
    """Its tokens are outputs of one op; at a hundred tokens each took a hundredfold."""
    words = leafax.tensor([3, 1, 4, 1, 5]) + 0  # not at rest
    total = leafax.zeros(9, requires_grad=True) * 2
    for n, word in enumerate(words):
        total = total + int(word)
        array = word.numpy()
        array += 10  # a copy
        assert word.tolist() == words[n].item() and word.jax().dtype == np.int64
    assert total[0].item() == 14
    looked = [run.outputs for run in leafax.explain() if run.reason.endswith("of data")]
    assert looked == [5] + [1] * 5  # `words[n]` is a view of its own


LOOKS: dict[str, Any] = {
    "element": lambda lib, x: x[1, 2].item(), "part": lambda lib, x: x[1].t().tolist(),
    "bool": lambda lib, x: bool((x > 4).any()), "count": lambda lib, x: int((x == 3).sum()),
    "greatest": lambda lib, x: int(x.max()), "float": lambda lib, x: x.double()[0, 0].item(),
    "printed": lambda lib, x: repr(x[0]), "gathered": lambda lib, x: x[lib.tensor([1])].tolist(),
    "written": lambda lib, x: x.fill_diagonal_(7)[1, 1].item(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_what_follows_from_integers_is_looked_at(name: str) -> None:
    def look(lib: Any) -> Any:
        x = lib.arange(6).reshape(2, 3).clone()
        if lib is leafax:
            lib.synchronize()
        y = lib.ones(2, requires_grad=True).exp()
        found = LOOKS[name](lib, x)
        y.sum().backward()
        return found

    assert look(leafax) == look(torch)
    assert cuts() == (["synchronize()"] if name != "float" else ["synchronize()", "item()"])


@pytest.mark.usefixtures("all_recorded")
def test_what_is_rounded_and_what_requires_grad_cuts() -> None:
    w = leafax.ones(2, requires_grad=True)
    y = w * 3
    assert (leafax.tensor([0.1, 0.2]) * 3).tolist() == pytest.approx([0.3, 0.6])
    assert cuts() == ["tolist()"]
    (w * y).detach()[0].item()
    assert cuts() == ["tolist()", "item()"]


@pytest.mark.usefixtures("all_recorded")
def test_masks_with_another_count_each_time_cut_what_came_before_them() -> None:
    def step(count: int) -> tuple[float, list[str]]:
        leafax.explain(clear=True)
        w = leafax.arange(8.0).requires_grad_()
        y = (w / 8).exp()
        mask = leafax.arange(8) < count
        loss = y[mask].sum()
        loss.backward()
        return w.grad.sum().item(), cuts()

    for count in (3, 5, 3, 5, 2, 7):
        found, reasons = step(count)
        assert found == pytest.approx(sum(math.exp(i / 8) / 8 for i in range(count)), 1e-6)
        assert reasons == ["item()"]
    assert step(6)[1] == step(3)[1] == ["a mask with another count", "item()"]
    assert leafax.explain()[0].how == "cached"


def test_without_a_graph_there_is_a_cut() -> None:
    x = leafax.arange(4) * 2
    assert x[1].item() == 2
    assert cuts() == ["item()"]


def test_draws_that_are_looked_at_stay_what_they_are() -> None:
    leafax.manual_seed(3)
    y = leafax.ones(2, requires_grad=True).exp()
    coin, normal, die = leafax.rand(1), leafax.randn(3), leafax.randint(0, 9, (2,))
    seen = [coin.item(), normal.tolist(), die.tolist()]
    assert cuts() == []
    z = (y * coin).sum()
    z.backward()
    leafax.synchronize()
    assert [coin.item(), normal.tolist(), die.tolist()] == seen
    assert cuts() == ["synchronize()"]


def test_an_index_out_of_range_raises_where_it_is_looked_at() -> None:
    w = leafax.ones(3, requires_grad=True)
    for k in (0, 1, 3):
        y = w.exp()
        x = leafax.tensor([5, 6, 7])
        at = leafax.tensor([k])
        if k < 3:
            assert x.index_select(0, at).item() == 5 + k
            continue
        with pytest.raises(IndexError) as error:
            x.index_select(0, at).item()
        leafax.synchronize()  # once
        with pytest.raises(IndexError) as theirs:
            torch.tensor([5, 6, 7]).index_select(0, torch.tensor([k])).item()
        assert str(error.value) == str(theirs.value)
    del y


def test_draws_are_not_compiled_and_are_those_of_a_larger_program() -> None:
    def drawn() -> list[Any]:
        leafax.manual_seed(11)
        return [leafax.rand(5), leafax.randn(2, 3), leafax.randint(3, 8, (4,)), leafax.randperm(6)]

    apart = [x.tolist() for x in drawn() for _ in range(2)][::2]
    for _ in range(3):
        assert [x.tolist() for x in drawn()] == apart
    assert {run.how for run in leafax.explain()} == {"op by op"}
    leafax.explain(clear=True)
    for _ in range(3):  # the first draws at this line are a program of their own
        w = leafax.ones(3, requires_grad=True)
        together = [x.mul(1) for x in drawn()]
        (w * together[1]).cumsum(0).exp().log().sum().backward()
        leafax.synchronize()
    assert leafax.explain()[-1].how != "op by op"
    assert [x.tolist() for x in together] == apart


def test_a_long_graph_that_is_cut_runs_op_by_op_and_keeps_what_it_saved() -> None:
    def train(lib: Any, length: int) -> tuple[float, Any]:
        x = lib.linspace(-1, 1, 5, dtype=lib.float64).requires_grad_()
        y = x
        for _ in range(length):
            y = (y.softmax(0) * 2).tanh() + y.cumsum(0).sigmoid()
        loss = y.exp().sum()
        return loss.item(), lib.autograd.grad(loss, x)[0].tolist()

    for length in (30, 31, 30):
        ours, theirs = train(leafax, length), train(torch, length)
        np.testing.assert_allclose(ours[0], theirs[0], 1e-12)
        np.testing.assert_allclose(ours[1], theirs[1], 1e-9)
    runs = leafax.explain()
    assert [run.how for run in runs if run.saved] == ["op by op"] * 3


def test_numbers_that_became_inputs_are_looked_at() -> None:
    x = leafax.tensor([1.0, 2.0], requires_grad=True)
    for n in (2, 3, 4):
        y = x**n
        assert y.grad_fn._saved_exponent == n
        with leafax.autograd.graph.save_on_cpu():
            (g,) = leafax.autograd.grad((x**n).sum(), x, create_graph=True)
        assert g.tolist() == [n, n * 2.0 ** (n - 1)]
