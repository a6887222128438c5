"""Calls that are one step once they were made: they do as the first did, or are made anew."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax

TURNS = 4  # the first two may each make places of the trie


def block(lib: Any) -> tuple[Any, Any]:
    """Return a transformer's block that is written out, and its forward pass."""
    nn, F = lib.nn, lib.nn.functional  # noqa: N806
    norm, qkv, out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 8)
    mask = lib.tril(lib.ones(4, 4)).view(1, 1, 4, 4)
    with lib.no_grad():
        for k, p in enumerate([*norm.parameters(), *qkv.parameters(), *out.parameters()]):
            p.copy_(lib.linspace(-1, 1, p.numel()).sin().view(p.shape) * (k + 1) / 3)

    def forward(x: Any) -> Any:
        q, k, v = qkv(norm(x)).split(8, dim=2)
        q, k, v = (t.view(2, 4, 2, 4).transpose(1, 2) for t in (q, k, v))
        scores = (q @ k.transpose(-2, -1)).masked_fill(mask[:, :, :4, :4] == 0, -1e9)
        y = F.softmax(scores, dim=-1) @ v
        y = y.transpose(1, 2).contiguous().view(2, 4, 8)
        x = F.relu(x + out(y), inplace=True)
        x = x * 2
        x += 1
        return F.cross_entropy(x.view(-1, 8), lib.arange(8))

    return [norm, qkv, out], forward


def train(lib: Any, turns: int, lower: Any = None) -> list[float]:
    """Return the losses of some steps; the forward pass under autocast if `lower` is a dtype."""
    modules, forward = block(lib)
    params = [p for m in modules for p in m.parameters()]
    optimizer = lib.optim.AdamW(params, lr=0.01)
    x = lib.linspace(-2, 2, 64).view(2, 4, 8)
    losses = []
    for _ in range(turns):
        with lib.autocast("cpu", dtype=lower or lib.bfloat16, enabled=lower is not None):
            loss = forward(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_block_trains_as_torchs_does() -> None:
    np.testing.assert_allclose(train(leafax, 6), train(torch, 6), rtol=1e-5)


def test_a_block_trains_under_autocast_as_torchs_does() -> None:
    ours, theirs = train(leafax, 6, leafax.bfloat16), train(torch, 6, torch.bfloat16)
    np.testing.assert_allclose(ours, theirs, rtol=0.02)


@pytest.mark.parametrize("lower", [None, leafax.bfloat16], ids=["plain", "autocast"])
def test_calls_that_were_made_before_record_no_op(lower: Any) -> None:
    """All but the factory of the labels are known, whatever they are made of."""
    _, forward = block(leafax)
    x = leafax.linspace(-2, 2, 64).view(2, 4, 8).clone()

    def step() -> None:
        with leafax.autocast("cpu", enabled=lower is not None):
            loss = forward(x)
        loss.backward()
        leafax.synchronize()

    for _ in range(8):
        step()
    walked: Counter[str] = Counter()

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name in ("_applied", "record", "miss"):
            walked[getattr(frame.f_locals.get("op"), "name", frame.f_code.co_name)] += 1

    with leafax.autocast("cpu", enabled=lower is not None):
        sys.setprofile(note)
        try:
            forward(x)
        finally:
            sys.setprofile(None)
    assert walked.keys() <= {"arange"}


def test_one_tensor_twice_is_not_two_that_are_alike() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        F = t.nn.functional  # noqa: N806
        w, b = (t.full((3,), k, dtype=t.float64, requires_grad=True) for k in (2.0, 3.0))
        x = t.arange(6, dtype=t.float64).view(2, 3) ** 2
        for _ in range(TURNS):
            for pair in ((w, b), (w, w), (b, w)):
                out = F.layer_norm(x * 1, (3,), *pair)
                out.sum().backward()
                log(out.detach(), *[None if p.grad is None else p.grad * 1 for p in (w, b)])
                w.grad = b.grad = None


def test_arguments_that_are_equal_are_not_the_same() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        x = t.tensor([[-1.0, 0.0], [2.0, -0.0]], requires_grad=True)
        for _ in range(TURNS):
            y = x * 1
            for number in (0.0, -0.0, 0, 1, 1.0):
                log(y.masked_fill(y > 0, number).detach().reciprocal())
            for dim in (1, True):
                try:
                    log(y.softmax(dim).detach())
                except (TypeError, RuntimeError) as error:
                    log(type(error).__name__)
            log(y.sum(0, True).detach(), y.sum((0, 1)).detach(), y.sum([0]).detach())


def test_writes_are_seen_by_versions_views_and_gradients() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        F = t.nn.functional  # noqa: N806
        x = t.linspace(-1, 1, 8, dtype=t.float64).requires_grad_()
        for _ in range(TURNS):
            y = x * 2
            a, b = y.split(4)
            z = F.relu(y * 3, inplace=True)
            z.add_(1)
            log(z._version, z.grad_fn.name(), a._base is y, b.storage_offset())
            w = z.view(2, 4).transpose(0, 1)
            w.mul_(2)
            log(z.detach(), w.detach(), w._version, w.stride())
            z.sum().backward()
            log(x.grad)
            saved = y.exp()
            saved.add_(1)
            try:
                saved.sum().backward()
            except RuntimeError as error:
                log("modified by an inplace operation" in str(error))
            try:
                a.add_(1)
            except RuntimeError as error:
                log(str(error)[:60])
            x.grad = None


def test_a_buffer_that_is_a_view_is_read_as_it_is_now() -> None:
    @same
    def program(t: Any, log: Log) -> None:
        whole = t.ones(3, 4, dtype=t.float64)
        mask = whole.view(2, 6)
        x = t.ones(2, 6, dtype=t.float64, requires_grad=True)
        for k in range(TURNS):
            out = (x * 2)[:, 1:] * mask[:, 1:]
            out.sum().backward()
            log(x.grad, out.detach(), mask._version)
            if k % 2:
                whole.mul_(2)
            x.grad = None


def test_a_weight_is_cast_once_for_all_its_uses() -> None:
    def grads(t: Any) -> Any:
        w = t.linspace(-1, 1, 16).view(4, 4).clone().requires_grad_()
        x = t.linspace(-2, 3, 8).view(2, 4)
        found = []
        for k in range(TURNS):
            with t.autocast("cpu", dtype=t.bfloat16):
                y = t.nn.functional.linear(x, w)
                if k == 2:
                    t.clear_autocast_cache()
                y = t.nn.functional.linear(y, w)
            y.float().sum().backward()
            found.append(w.grad.tolist())
            w.grad = None
        return found

    np.testing.assert_allclose(grads(leafax), grads(torch), rtol=0.02, atol=0.02)


def test_warnings_come_at_every_call() -> None:
    x = leafax.ones(2, 3, requires_grad=True)
    for _ in range(TURNS):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            leafax.nn.functional.softmax(x * 1)
        assert len(caught) == 1


def test_a_known_call_draws_numbers_of_its_own() -> None:
    """Also where others have drawn before it in the same step."""
    x = leafax.ones(2, 4, 8)

    def masks() -> list[Any]:
        weight = leafax.ones(2, 4, 8, requires_grad=True)
        found = []
        for _ in range(3):
            y = leafax.nn.functional.scaled_dot_product_attention(x, x, weight, dropout_p=0.5)
            found.append(leafax.nn.functional.dropout(weight * y, 0.5))
        leafax.synchronize()
        return [mask.tolist() for mask in found]

    for _ in range(TURNS):
        leafax.manual_seed(0)
        first = masks()
        assert first[0] != first[1] != first[2]
        leafax.manual_seed(0)
        assert masks() == first
        drawn = leafax.default_generator.get_state().view(leafax.int64)[1]
        assert drawn.item() == 6
