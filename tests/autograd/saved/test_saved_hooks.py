"""Hooks on saved tensors against torch; `save` and `load`; hooks on several gradients."""

from __future__ import annotations

import gc
import io
import os
import uuid
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def test_what_is_packed_and_unpacked() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)

        def pack(t: Any) -> Any:
            log("pack", [round(v, 3) for v in t.tolist()], t.requires_grad, t.is_leaf)
            return t.detach() * 2

        def unpack(t: Any) -> Any:
            log("unpack", [round(v, 3) for v in t.tolist()])
            return t * 5

        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x * x
            z = y.exp() + y
        w = z * z
        w.sum().backward()
        log.gradients(x.grad)


@pytest.mark.parametrize(
    "name", ["exp", "sigmoid", "tanh", "sqrt", "rsqrt", "reciprocal", "relu", "sin", "log"]
)
def test_the_unpacked_value_is_what_backward_uses(name: str) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks
        x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
        with hooks(lambda t: t.detach() * 1.25, lambda t: t):
            y = getattr(x, name)()
        y.sum().backward()
        log.gradients(x.grad)
        log(y.grad_fn.name())


def test_matmul_and_inplace_under_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        count = []

        def pack(t: Any) -> Any:
            count.append(tuple(t.shape))
            return t.detach().clone()

        w = torch.ones(3, 2, requires_grad=True)
        x = torch.arange(6.0).reshape(2, 3)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = x @ w
            with torch.no_grad():
                (y * y).exp()
            y = y.mul(y)
        log(count)
        y.sum().backward()
        log.gradients(w.grad)


def test_inner_hooks_win_and_scopes_end() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks
        x = torch.ones(2, requires_grad=True)
        with hooks(lambda t: t.detach() * 2, lambda t: t):
            a = x * x
            with hooks(lambda t: t.detach() * 10, lambda t: t):
                b = x * x
            c = x * x
        try:
            with hooks(lambda t: 1 / 0, lambda t: t):
                x * x
        except ZeroDivisionError:
            log("raised")
        d = x * x
        (a + b + c + d).sum().backward()
        log.gradients(x.grad)


def test_errors() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        hooks = torch.autograd.graph.saved_tensors_hooks
        x = torch.ones(2, requires_grad=True)

        def use(pack: Any, unpack: Any) -> None:
            with hooks(pack, unpack):
                y = (x.clone() * 2).exp()
            y.sum().backward()

        log.attempt(use, lambda t: t.detach(), lambda t: 3)
        log.attempt(use, lambda t: t.detach(), lambda t: None)
        with log.catch() as _, torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
            with hooks(lambda t: t, lambda t: t):
                pass
        with hooks(lambda t: t.detach(), lambda t: t):
            y = (x * x).sum()
        y.backward()
        log.attempt(y.backward)


def test_second_derivative_through_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t):
            y = x * x * x
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        g.sum().backward()
        log.gradients(g.detach(), x.grad)


def test_function_under_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x.detach() ** 2

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return 2 * ctx.saved_tensors[0] * g

        x = torch.tensor([1.0, 2.0], requires_grad=True)
        hooks = torch.autograd.graph.saved_tensors_hooks
        with hooks(lambda t: t.detach().numpy(), lambda a: torch.from_numpy(a) * 3):
            y = Square.apply(x)
        y.sum().backward()
        log.gradients(x.grad)


def test_save_on_cpu() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        with torch.autograd.graph.save_on_cpu():
            y = (x * x).exp()
        y.sum().backward()
        log.gradients(x.grad)


def test_raw_saved_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x.pow(2)
        saved = y.grad_fn._raw_saved_self
        saved.register_hooks(lambda t: t.detach() * 3, lambda t: t)
        log(y.grad_fn._saved_self.detach())
        log.attempt(saved.register_hooks, lambda t: t, lambda t: t)
        y.sum().backward()
        log.gradients(x.grad)
        log.attempt(saved.register_hooks, lambda t: t, lambda t: t)
        z = x.exp()
        z.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach() * 2, lambda t: t)
        z.sum().backward()
        log.gradients(x.grad)
        w = x * x
        log.attempt(
            w.grad_fn._raw_saved_self.register_hooks, lambda t: t.detach().mul_(2), lambda t: t
        )


class SelfDeletingTempFile:
    def __init__(self, folder: Path) -> None:
        self.name = os.path.join(folder, str(uuid.uuid4()))

    def __del__(self) -> None:
        os.remove(self.name)


def test_the_disk_example(tmp_path: Path) -> None:
    sizes: list[int] = []

    @same
    def program(torch: Any, log: Log) -> Any:
        def pack(x: Any) -> Any:
            if x.numel() < 1000:
                return x.detach()
            file = SelfDeletingTempFile(tmp_path)
            torch.save(x.detach(), file.name)
            sizes.append(os.path.getsize(file.name))
            return file

        def unpack(x: Any) -> Any:
            return x if isinstance(x, torch.Tensor) else torch.load(x.name)

        a = torch.linspace(0.0, 1.0, 2000, requires_grad=True)
        b = torch.linspace(0.0, 1.0, 10, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = (a * a).exp().sum() + (b * b).sum()
        log(len(os.listdir(tmp_path)))
        y.backward()
        log.gradients(a.grad, b.grad)
        del y
        log(len(os.listdir(tmp_path)))

    assert sizes and min(sizes) > 8000


def test_what_was_packed_is_released() -> None:
    x = leafax.ones(1000, requires_grad=True)
    with leafax.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), leafax.from_numpy):
        h = x * 2
        y = h * h
    arrays = weakref.ref(h)
    del h
    gc.collect()
    assert arrays() is None
    y.sum().backward()
    assert x.grad.tolist() == [8.0] * 1000


def test_multi_grad_hooks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        register = torch.autograd.graph.register_multi_grad_hook
        t = torch.ones(2, requires_grad=True)
        u = torch.ones(2, requires_grad=True)
        v = torch.ones(2, requires_grad=True)
        o, p = t * 2, u * 3

        def called(grads: Any) -> None:
            grads = grads if isinstance(grads, (list, tuple)) else [grads]
            log([None if g is None else g.tolist() for g in grads])

        for mode in ("all", "any"):
            with register((o, p, v), called, mode=mode):
                (o.sum() + p.sum()).backward(retain_graph=True)
                o.sum().backward(retain_graph=True)
        log.attempt(register, (o,), print, mode="some")


def test_save_and_load() -> None:
    w = leafax.arange(3.0).requires_grad_()
    made = OrderedDict(
        w=w, half=leafax.ones(2, dtype=leafax.bfloat16), empty=leafax.zeros(0, 3),
        state={0: {"step": leafax.tensor(3), "lr": 0.1}}, sizes=(w.shape, [1, None, True, 2.5]),
        kind=leafax.int64, same=w, number=1 + 2j,
    )  # fmt: skip
    file = io.BytesIO()
    leafax.save(made, file)
    file.seek(0)
    got = leafax.load(file)
    assert type(got) is OrderedDict and list(got) == list(made)
    assert got["w"].requires_grad and got["same"] is got["w"]
    assert got["half"].dtype is leafax.bfloat16 and got["empty"].shape == (0, 3)
    assert got["state"][0]["step"].dtype is leafax.int64 and got["state"][0]["lr"] == 0.1
    assert got["sizes"] == made["sizes"] and got["kind"] is leafax.int64
    assert got["number"] == 1 + 2j
    assert np.array_equal(got["w"].detach().numpy(), w.detach().numpy())


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, y, i: y.__setitem__(i, 0.5),
        lambda torch, y, i: y[1:].__setitem__(i, 0.5),
        lambda torch, y, i: y[i],
        lambda torch, y, i: y.index_select(0, i),
        lambda torch, y, i: y.index_fill_(0, i, 2.0),
        lambda torch, y, i: torch.gather(y, 0, i[None]),
    ],
)
def test_indices_that_come_back_as_floats(call: Any) -> None:
    @same
    def program(torch: Any, see: Any) -> None:
        y = torch.ones(2, 3, dtype=torch.float64, requires_grad=True) * 2
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            out = call(torch, y, torch.tensor([0]))
        with see.catch():
            (y if out is None else out).sum().backward()


def test_a_pass_that_ends_at_a_packed_node_unpacks() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        def unpack(t: Any) -> Any:
            log("unpack")
            return t

        for name in ("exp", "sin", "reciprocal", "sum"):
            x = torch.tensor([0.5, 0.25], requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
                y = getattr(x, name)()
            torch.autograd.backward([y.sum(), (y * x).sum()], inputs=[y])
            log(name, y.grad.tolist())


@pytest.mark.parametrize("kind", ["kept", "detached", "on cpu", "copied"])
@pytest.mark.parametrize("observed", [False, True])
def test_writes_to_a_result_reach_what_hooks_hold_of_it(kind: str, observed: bool) -> None:
    """No copy was made, so backward reads what was written; PyTorch's documentation warns of it."""

    @same
    def program(torch: Any, log: Log) -> Any:
        graph = torch.autograd.graph
        hooks = {
            "kept": lambda: graph.saved_tensors_hooks(lambda t: t, lambda t: t),
            "detached": lambda: graph.saved_tensors_hooks(lambda t: t.detach(), lambda t: t),
            "on cpu": graph.save_on_cpu,
            "copied": lambda: graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t),
        }[kind]
        x = torch.tensor([1.0, 2.0, -0.5], dtype=torch.float64, requires_grad=True)
        with hooks():
            y = x.sigmoid()
            values, _ = (y * 2).max(0)
        if observed:
            log(y.tolist())
        y.add_(1)
        log(y, y._version)
        (y.sum() + values).backward()
        log(x.grad)
        with hooks():
            z = x.exp()
        z[0] = 2.0
        z.sum().backward()
        log(x.grad, z)
