"""Cases found once in a second round of training scripts."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_gradients_assigned_to_what_requires_none_are_used(name: str) -> None:
    """Evolution strategies and `func.grad` make gradients without a graph."""

    @same
    def program(lib: Any, log: Log) -> None:
        theta = lib.linspace(-1, 1, 4)
        w = lib.ones(3, requires_grad=True)
        optimizer = getattr(lib.optim, name)([theta, w], lr=0.125)
        for i in range(3):
            optimizer.zero_grad()
            (w * w).sum().backward()
            theta.grad = theta * (i + 1)
            theta.grad += 1
            log.gradients(lib.nn.utils.clip_grad_norm_([theta, w], 1.5))
            lib.nn.utils.clip_grad_value_(theta, 0.75)
            optimizer.step()
        log(theta, w, theta.requires_grad)


def test_optax_uses_gradients_that_were_assigned() -> None:
    import optax

    theta = leafax.ones(2)
    optimizer = leafax.optim.Optax([theta], optax.sgd(0.5))
    theta.grad = leafax.ones(2)
    optimizer.step()
    assert theta.tolist() == [0.5, 0.5]


def test_leftover_gradients_of_what_is_frozen_are_not_used() -> None:
    """However they are scaled meanwhile: a loop over all that have a gradient changes nothing."""
    w = leafax.ones(2, requires_grad=True)
    optimizer = leafax.optim.SGD([w], 0.5)
    w.sum().backward()
    w.requires_grad_(False)
    w.grad *= 2
    optimizer.step()
    assert w.tolist() == [1.0, 1.0]
    w.grad = leafax.ones(2)
    w.requires_grad_().requires_grad_(False)  # it trained in between
    optimizer.step()
    assert w.tolist() == [1.0, 1.0]


def test_arrays_and_scalars_of_numpy_are_saved_as_they_are() -> None:
    """The state of NumPy's generator and a mean of scores are part of many checkpoints."""

    @same
    def program(lib: Any, log: Log) -> None:
        table = np.arange(6.0).reshape(2, 3).T
        kept = {
            "w": lib.ones(2), "state": np.random.RandomState(0).get_state(), "table": table,
            "again": [table, table[:0], np.array(["a", "bc"]), np.array(3, np.int8)],
            "mean": np.float64(0.1), np.int64(3): np.float32(2.5), "flag": np.bool_(True),
            "name": np.str_("x"), "empty": np.str_(""), "day": np.datetime64("2026-01-02"),
            "z": np.complex64(1j),
        }  # fmt: skip
        file = io.BytesIO()
        lib.save(kept, file)
        file.seek(0)
        back = lib.load(file, weights_only=False)
        log(*[str((type(k), k, type(v), v)) for k, v in back.items() if k != "w"])
        log(back["again"][0] is back["table"], back["table"].dtype.str, back["w"])
        back["table"][0] = 7  # arrays can be written to
        log(str(back["again"][0].sum()))


@pytest.mark.parametrize("view", ["int", "slice", "narrow", "of a sum"])
def test_what_was_freed_is_walked_again_at_another_index(view: str) -> None:
    """An index that changes becomes an input of the program, and no node saves an index."""
    for k in (0, 1, 2, 1, 0, 2):

        @same
        def program(lib: Any, see: Log, k: int = k) -> None:
            b = lib.tensor([[1.0, 2.0, -0.5], [0.75, -1.5, 0.125]], requires_grad=True)
            if view == "int":
                x = b[0, k]
            elif view == "slice":
                x = b[:, k : k + 1]
            elif view == "narrow":
                x = b.narrow(1, k, 1)
            else:
                x = b[:, k].sum().expand(2, 2)
            see(lib.autograd.grad(x.sum(), b)[0])
            x.tolist()
            see(lib.autograd.grad((x * x).sum(), b)[0])
            with see.catch():
                (x * x).sum().backward()
            see(b.grad)
