"""The trie forgets what was not walked for long, and nothing breaks."""

from __future__ import annotations

import pytest

import leafax
from leafax import _bound
from leafax._trace import local


def test_the_trie_is_bounded_and_hot_loops_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    leafax.synchronize()
    monkeypatch.setattr(_bound, "MAX_STATES", 400)
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
        assert local.states <= 400 + 150
    leafax.explain(clear=True)
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
    assert leafax.explain().compiles == 0
