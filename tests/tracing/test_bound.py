"""The trie forgets what was not walked for long, and nothing breaks."""

from __future__ import annotations

import pytest

import leafax
from leafax._core.trie import local
from leafax._tracing import eviction
from leafax.functional.execution import memory_mappings


def test_the_trie_is_bounded_and_hot_loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    leafax.synchronize()
    monkeypatch.setattr(eviction, "MAX_STATES", 400)
    w = leafax.tensor([1.0], dtype=leafax.float64, requires_grad=True)
    optimizer = leafax.optim.SGD([w], lr=0.1, momentum=0.5)
    reference, velocity = 1.0, 0.0
    for i in range(40):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
        velocity = 0.5 * velocity + 2 * reference
        reference -= 0.1 * velocity
        y = w.detach()
        for _ in range(i):  # a program that never comes again
            y = y + 1
        assert y.item() == pytest.approx(reference + i, rel=1e-12)
        assert local.trie.states <= 400 + 150
    leafax.explain(clear=True)
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
    assert leafax.explain().compiles == 0


@pytest.mark.exhaustive
def test_programs_are_forgotten_before_the_process_has_no_room_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def losses(n: int) -> list[float]:
        w = leafax.full((n,), 2.0, dtype=leafax.float64, requires_grad=True)
        optimizer, found = leafax.optim.SGD([w], lr=0.5), []
        for i in range(3):
            optimizer.zero_grad()
            loss = (w[leafax.tensor([i])] * w).sum()  # with the check of an index
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    # Whatever tests before this one have left: with many programs these are forgotten already.
    monkeypatch.setattr(memory_mappings, "mappings", lambda: (0, 65_530))
    expected = losses(23)
    losses(23)  # what makes the parameter is compiled at its second run
    leafax.explain(clear=True)
    assert losses(23) == expected
    assert leafax.explain(clear=True).compiles == 0
    monkeypatch.undo()
    before = memory_mappings.mappings()[0]
    monkeypatch.setattr(memory_mappings, "_EVERY", 1)
    monkeypatch.setattr(memory_mappings, "mappings", lambda: (60_000, 65_530))
    for n in range(24, 30):
        losses(n)
    monkeypatch.undo()
    if before:  # where somebody counts them
        assert memory_mappings.mappings()[0] < before + 60, "six sizes are some twenty programs"
    leafax.explain(clear=True)
    assert losses(23) == expected, "what was forgotten is compiled again"
    assert leafax.explain(clear=True).compiles > 0


def test_where_nobody_counts_mappings_none_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_mappings, "_EVERY", 1)
    monkeypatch.setattr("builtins.open", _refuses)
    assert memory_mappings.mappings() == (0, 1)
    assert not memory_mappings.too_many()


def _refuses(*args: object) -> None:
    raise FileNotFoundError(args[0])
