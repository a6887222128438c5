"""Inference tensors in and out of their mode, and threads that share a graph."""

from __future__ import annotations

import io
from copy import copy as shallow
from typing import Any

import pytest
from helpers.sameness import Log, same
from helpers.tensors import numbers
from helpers.threads import in_threads


def test_inference_tensors_in_their_mode() -> None:
    def program(lib: Any, see: Any) -> None:
        with lib.inference_mode():
            for requires_grad in (True, False):
                for change in (
                    lambda x: x.add_(2), lambda x: x.transpose_(0, 1), lambda x: x.resize_(1, 2),
                    lambda x: x.copy_(lib.ones(2, 3)), lambda x: x.view(-1), lambda x: x * x,
                ):  # fmt: skip
                    x = lib.ones(2, 3, requires_grad=requires_grad)
                    see.attempt(change, x)
                    see(x, lib.is_inference(x))

    same(program)


def test_inference_tensors_in_normal_mode() -> None:
    def program(lib: Any, see: Any) -> None:
        for requires_grad in (True, False):
            with lib.inference_mode():
                x = lib.ones(2, 3, requires_grad=requires_grad)
            normal = lib.ones(2, 3, requires_grad=requires_grad)
            see(x * x, x.view(-1), x + normal)
            see.attempt(lambda x=x, y=normal: x * y)
            see.attempt(lambda x=x, y=normal: y.clone().mul_(x))
            see.attempt(lambda x=x: x._version)
            if not requires_grad:  # PyTorch writes, and raises then
                with lib.inference_mode():
                    x = lib.ones(2, 3)
                see.attempt(x.add_, 1)
                see.attempt(x.t_)
                see.attempt(x.resize_, 1, 2)
                see.attempt(x.resize_, 1, 2)
                see(x)

    same(program)


def test_what_is_loaded_in_inference_mode_is_an_inference_tensor() -> None:
    @same
    def program(lib: Any, see: Any) -> None:
        for mode in (True, False):
            with lib.inference_mode(mode):
                file = io.BytesIO()
                lib.save({"w": lib.ones(2, requires_grad=True), "n": [lib.arange(3)]}, file)
                file.seek(0)
                see(lib.load(file))


def test_leaves_among_inference_tensors() -> None:
    """Autograd is not asked of them: not by writes, but by the writes that copies are made by."""

    def program(lib: Any, see: Any) -> None:
        def leaf() -> Any:
            with lib.inference_mode():
                return lib.ones(2, 3, requires_grad=True)

        for change in (
            lambda x: x.t_(), lambda x: x.squeeze_(), lambda x: x.normal_(), lambda x: x.random_(),
            lambda x: x.bernoulli_(0.5), lambda x: x.resize_(3), lambda x: x.set_(),
            lambda x: x.exp_(), lambda x: x.add_(1), lambda x: x.set_(lib.ones(2)),
        ):  # fmt: skip
            see.attempt(change, leaf())
        for copy in (lambda x: x.clone(), lambda x: x.double(), lambda x: x.to(lib.float64)):
            x = leaf()
            y = copy(x)
            see(y.requires_grad, y.grad_fn.name(), y.is_inference(), y.dtype)
            (y * y).sum().backward()
            see.gradients(x.grad)

    same(program)


def test_normal_tensors_written_and_viewed_in_inference_mode() -> None:
    def program(lib: Any, see: Any) -> None:
        for requires_grad in (True, False):
            for change in (lambda x: x.add_(2), lambda x: x.t_()):
                x = numbers(lib, 2, 3, requires_grad=requires_grad).clone()
                with lib.inference_mode():
                    view = x.view(-1)
                    change(x)
                    see(x)
                see.attempt(lambda view=view: view.grad_fn)
                see.attempt(view.add_, 1)
            saved = x * x
            with lib.inference_mode():
                x.add_(1)
            if requires_grad:
                see.attempt(saved.sum().backward)

    same(program)


def test_threads_add_to_one_gradient() -> None:
    def program(lib: Any, see: Any) -> None:
        x = lib.ones(5, requires_grad=True)
        in_threads(10, lambda _: ((x + 3) * (x + 4) * 0.5).sum().backward())
        see.gradients(x.grad)
        y = x + x**2
        in_threads(5, lambda _: (y + y**2).sum().backward(retain_graph=True))
        see.gradients(x.grad)
        hits: list[Any] = []
        other = lib.ones(5, requires_grad=True)
        lib.autograd.graph.register_multi_grad_hook(
            (x, other, y), lambda grads: hits.append([g is not None for g in grads])
        )
        out = (x * other).sum()
        in_threads(4, lambda _: out.backward(inputs=(x, other), retain_graph=True))
        see(hits)

    same(program)


def test_set_multithreading_enabled() -> None:
    def program(lib: Any, see: Any) -> None:
        enabled = lib.autograd.is_multithreading_enabled
        with lib.autograd.set_multithreading_enabled(False):
            see(enabled())
            lib.autograd.set_multithreading_enabled(True)
            see(enabled())
        see(enabled())
        lib.autograd.grad_mode.set_multithreading_enabled(False)
        see(enabled())
        lib.autograd.set_multithreading_enabled(True)

    same(program)


MISFITS = (
    "F.conv1d(i(1, 1, 1), p(1, 1, 2))", "F.conv1d(i(1, 2, 5), p(1, 1, 2))",
    "F.conv2d(i(1, 1, 1, 1), p(1, 1, 2, 2))", "F.conv_transpose1d(i(1, 2, 5), p(1, 1, 2))",
    "F.conv1d(i(2), p(1, 1, 2))", "i(2, 3) @ p(2, 3)", "F.linear(i(2, 3), p(2, 4))",
    "torch.prelu(i(2, 3), p(2))", "F.group_norm(i(2, 3), 2, p(3))",
    "torch.cdist(i(2, 3), p(2, 4))", "F.nll_loss(p(2, 3), i(3).long())",
    "F.cross_entropy(p(2, 3), i(3).long())", "F.layer_norm(p(2, 3), (4,), i(4))",
    "F.scaled_dot_product_attention(i(1, 2, 3), p(1, 2, 4), i(1, 2, 3))",
)  # fmt: skip


@pytest.mark.parametrize("call", MISFITS)
def test_which_error_comes_first(call: str) -> None:
    """An inference tensor that would be saved and shapes that do not fit."""

    def program(lib: Any, see: Any) -> None:
        def i(*shape: int) -> Any:
            with lib.inference_mode():
                return lib.ones(*shape)

        space = {"torch": lib, "F": lib.nn.functional, "i": i}
        space["p"] = lambda *shape: lib.ones(*shape).requires_grad_()
        see.attempt(lambda: eval(call, space))

    same(program)


@pytest.mark.parametrize("at", [0, (0, 0), slice(None)])
def test_a_refused_write_of_complex_numbers_has_warned(at: Any) -> None:
    """PyTorch writes before it refuses."""

    def program(lib: Any, see: Any) -> None:
        with lib.inference_mode():
            x = lib.ones(2, 2)
        see.attempt(lambda: x.__setitem__(at, lib.tensor(2 + 1j)))
        see(x)

    same(program)  # and the warnings


def _twice(lib: Any) -> Any:
    class Twice(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    return Twice


WITH_GRAD: dict[str, Any] = {
    "write": lambda lib, t: t.mul_(2), "item": lambda lib, t: t.__setitem__(0, 1.0),
    "out": lambda lib, t: lib.add(t, 1, out=t), "view in place": lambda lib, t: t.unsqueeze_(0),
    "to a view": lambda lib, t: t[0].mul_(2), "drawn": lambda lib, t: t.fill_(2.0),
    "numpy": lambda lib, t: t.numpy().tolist(), "op": lambda lib, t: t * 2,
    "Function": lambda lib, t: _twice(lib).apply(t),
    "checkpoint": lambda lib, t: lib.utils.checkpoint.checkpoint(
        lambda x: x * 2, t, use_reentrant=False
    ),
}  # fmt: skip


@pytest.mark.parametrize("made", ["leaf", "not a leaf", "view", "inference"])
@pytest.mark.parametrize("name", WITH_GRAD)
def test_gradients_are_enabled_inside_of_inference_mode(name: str, made: str) -> None:
    def program(lib: Any, log: Log) -> None:
        leaf = lib.ones(2, requires_grad=True)
        t = {"leaf": leaf, "not a leaf": leaf * 1, "view": (leaf * 1)[:]}.get(made)
        with lib.inference_mode():
            t = lib.ones(2) if t is None else t
            with lib.enable_grad():
                log(lib.is_grad_enabled(), lib.is_inference_mode_enabled())
                log.attempt(WITH_GRAD[name], lib, t)
        with log.catch():
            log(t)

    same(program)


def test_parts_of_inference_tensors_by_strides_are_no_views() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        with lib.inference_mode():
            x = lib.arange(6.0).view(2, 3)
            part = x.view(-1).chunk(2)[1].as_strided((2,), (1,), 3)
            part.add_(1)
            log(part._is_view(), part, x, x.as_strided((2,), (2,)))
        for y in (x.view(-1), x[1:], x.t(), x.as_strided((4,), (1,), 1)):  # outside of their mode
            part = y.as_strided((2,), (1,), 3)
            log(part)
            log.attempt(part.add_, 1)


def test_copies_of_inference_tensors_have_an_edge_for_what_is_new() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        with lib.inference_mode():
            t = lib.ones(2, 3, requires_grad=True)
        for copy in (t.clone(), t.double(), t.to(lib.float32, copy=True), t.clone().clone()):
            log(copy)
        (t.clone() * t.double() * 2).sum().backward()
        log.gradients(t.grad)


def test_inference_tensors_are_not_packed() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        c = lib.ones(3, requires_grad=True)
        with lib.inference_mode():
            x = c.sigmoid()
        for fn in (lib.mul, lib.maximum, lib.div, lib.atan2, lib.dot, lib.outer, lib.add):
            with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                log.attempt(fn, c, x)


def test_autograd_is_not_asked_of_inference_tensors_alone_by_out() -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        b = lib.ones(2, requires_grad=True)
        with lib.inference_mode():
            x = shallow(b)
        log.attempt(lib.exp, x, out=x)
        log.attempt(lib.exp, b, out=x)
        log.attempt(lib.exp, lib.ones(2), out=x)
        log.attempt(lib.exp, x, out=lib.ones(2))


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_gradients_that_are_inference_tensors_are_not_clipped(max_norm: float) -> None:
    @same
    def program(lib: Any, log: Log) -> None:
        c, d = lib.ones(3, requires_grad=True), lib.ones(3, requires_grad=True)
        with lib.inference_mode():
            lib.autograd.backward((c,), (lib.ones_like(c),))
        utils = lib.nn.utils
        log.attempt(utils.clip_grad_norm_, [c, d], max_norm)
        log.attempt(utils.clip_grad_value_, [c], max_norm)
        log.attempt(utils.clip_grads_with_norm_, [c], max_norm, lib.tensor(1.0))
        log(c.grad)


def test_numbers_that_became_inputs_are_no_tensors_to_autograd() -> None:
    """An inference tensor that requires grad is recorded with none of them, outside of the mode."""

    @same
    def program(torch: Any, log: Log) -> Any:
        with torch.inference_mode():
            x = torch.ones(2, 3, requires_grad=True)
        for n in (2, 3, 4, 5):
            for fn in (lambda: x**n, lambda: x * n, lambda: x + n, lambda: x.clamp(max=n)):  # noqa: B023
                with log.catch():
                    y = fn()
                    log(y, y.requires_grad, y.is_inference())


def test_what_was_overwritten_is_shown_as_it_was_saved() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        b = torch.tensor([[1.0, 2.0], [0.75, -1.5]], requires_grad=True)
        d = b * 2
        d.cumprod_(0)
        for mode in (torch.no_grad(), torch.inference_mode()):
            with mode:
                kept = d.grad_fn._saved_self
            log(kept.is_inference(), kept.requires_grad, kept.grad_fn, kept.tolist())
