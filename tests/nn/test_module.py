"""`nn.Module`: attributes, members, text, modes and moves, as PyTorch has them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch
from helpers.module_scripts import Said, agree
from helpers.walks import nothing_left_behind

import leafax
from leafax import nn


def net(t: Any) -> Any:
    """A module with a tied child, a parameter, and buffers."""

    class Inner(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = t.nn.Parameter(t.tensor([[1.0, 2.0], [3.0, 4.0]]))
            self.register_buffer("count", t.tensor(3))
            self.register_buffer("hidden", t.zeros(2), persistent=False)
            self.register_parameter("bias", None)

        def forward(self, x: Any) -> Any:
            return x @ self.weight

        def extra_repr(self) -> str:
            return "in=2"

    class Net(t.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.scale = t.nn.Parameter(t.tensor(2.0))
            self.first = Inner()
            self.second = self.first
            self.none = None
            self.add_module("gap", None)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)) * self.scale

    return Net()


def test_members() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        for prefix in ("", "p"):
            for once in (True, False):
                for method in (m.named_parameters, m.named_buffers, m.named_modules):
                    said([n for n, _ in method(prefix=prefix, remove_duplicate=once)])
        said([n for n, _ in m.named_parameters(recurse=False)], len(list(m.buffers())))
        said([n for n, _ in m.named_children()], len(list(m.modules(remove_duplicate=False))))
        said([x for x in dir(m) if x in ("scale", "first", "gap", "train")])
        said(m, m.first, m.extra_repr() == "", m._get_name())
        said(m.get_submodule("first") is m.first, m.get_submodule("") is m)
        said(m.get_parameter("first.weight") is m.first.weight, m.get_buffer("first.count"))
        said.refused(
            lambda: m.get_submodule("first.x"), lambda: m.get_submodule("scale"),
            lambda: m.get_parameter("first.count"), lambda: m.get_buffer("first.weight"),
            lambda: m.get_buffer("nothing"), lambda: m.set_submodule("", m),
            lambda: m.set_submodule("scale", t.nn.Module()), lambda: m.set_submodule("a", 1),
            lambda: m.set_submodule("first.x", t.nn.Module(), strict=True),
            lambda: m.set_submodule("first.x", t.nn.Module()), lambda: m.first.x,
        )  # fmt: skip

    agree(script)


def test_registering() -> None:
    def script(t: Any, said: Said) -> None:
        m, p = net(t), t.nn.Parameter(t.ones(2))

        class Early(t.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self, name: str, x: Any) -> None:
                setattr(self, name, x)

        class Kept(t.nn.Module):  # type: ignore[misc, name-defined]
            pass

        said.refused(
            lambda: Early("a", p), lambda: Early("a", m), lambda: Early("a", 1),
            lambda: Early("a", t.nn.Buffer(t.ones(1))), lambda: Early("a", 1).parameters,
            lambda: Kept(1), lambda: Kept(a=1), lambda: m.register_parameter(1, p),
            lambda: m.register_parameter("a.b", p), lambda: m.register_parameter("", p),
            lambda: m.register_parameter("first", p), lambda: m.register_parameter("q", 1),
            lambda: m.register_parameter("q", t.ones(1)), lambda: m.register_buffer(1, p),
            lambda: m.register_parameter("q", t.nn.Parameter(t.ones(1), False)),
            lambda: m.register_buffer("a.b", None), lambda: m.register_buffer("", None),
            lambda: m.register_buffer("first", None), lambda: m.register_buffer("b", 1),
            lambda: m.add_module(1, m), lambda: m.add_module("a.b", None),
            lambda: m.add_module("", None), lambda: m.add_module("scale", None),
            lambda: m.add_module("x", 1), lambda: setattr(m, "scale", 1),
            lambda: setattr(m, "scale", t.ones(1)), lambda: setattr(m, "first", t.ones(1)),
            lambda: setattr(m.first, "count", "x"), lambda: delattr(m, "nothing"),
            lambda: m(t.ones(2)) and None, lambda: t.nn.Module()(1), lambda: m.train(1),
        )  # fmt: skip
        m.scale = None
        m.first.count = t.ones(1)
        m.second = None
        m.extra = t.nn.Buffer(t.ones(1), persistent=False)
        m.none = t.nn.Parameter(t.zeros(1))
        said(m, sorted(m.state_dict()), "none" in m.__dict__, sorted(m._buffers))
        said(m._non_persistent_buffers_set)
        m.extra = t.nn.Parameter(t.ones(1))
        del m.first, m.none
        said(m, sorted(m.state_dict()), m._non_persistent_buffers_set)

    agree(script)


def test_registration_hooks() -> None:
    def script(t: Any, said: Said) -> None:
        from_ = t.nn.modules.module
        handles = [
            from_.register_module_parameter_registration_hook(lambda m, n, p: said("param", n)),
            from_.register_module_buffer_registration_hook(lambda m, n, b: said("buffer", n)),
            from_.register_module_module_registration_hook(lambda m, n, c: said("module", n)),
            from_.register_module_parameter_registration_hook(
                lambda m, n, p: t.nn.Parameter(p * 0) if n == "scale" else None
            ),
        ]
        m = net(t)
        for handle in handles:
            handle.remove()
        said(m.scale, net(t).scale)

    agree(script)


def test_modes_and_moves() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        params = list(m.parameters())
        m(t.ones(1, 2)).sum().backward()
        grads = [p.grad for p in params]
        said(m.eval() is m, m.first.training, m.train().first.training)
        for move in (
            m.double, m.half, m.bfloat16, m.float, m.cpu, lambda: m.to(t.float64),
            lambda: m.to("cpu"), lambda: m.to(t.ones(1)), lambda: m.to("cpu", t.float64),
            lambda: m.type(t.float32), lambda: m.to(dtype=t.float64), lambda: m.to(t.complex64),
        ):  # fmt: skip
            said(move() is m, [p.dtype for p in params], [p.grad.dtype for p in params])
            said(*params, *[p.grad for p in params], m.first.count.dtype, m.first.hidden.dtype)
            said([a is b for a, b in zip(params, m.parameters(), strict=True)])
            said([p.grad is g for p, g in zip(params, grads, strict=True)])
            said([p.requires_grad for p in params], [type(p).__name__ for p in params])
        said.refused(lambda: m.to(t.int64), lambda: m.to(1.5, 2), lambda: m.to(nothing=1))
        m.requires_grad_(False)
        said([p.requires_grad for p in params])
        m.float().zero_grad(set_to_none=False)
        said(*[p.grad for p in params])
        m.zero_grad()
        said([p.grad for p in params], m.to_empty(device="cpu") is m, m.compile())
        said(m.apply(lambda x: said(type(x).__name__)) is m, m.scale.shape)

    agree(script)


def test_copies_and_pickles() -> None:
    def script(t: Any, said: Said) -> None:
        m = t.nn.Sequential(t.nn.Module(), t.nn.ParameterList([t.ones(2), t.zeros(1)]))
        m[0].shared = m[1][0]
        m[0].register_buffer("b", t.arange(2.0), persistent=False)
        m[1][0].tag = "t"
        m[1][1].requires_grad_(False)
        for made in (copy.deepcopy(m), pickle.loads(pickle.dumps(m)), copy.copy(m)):
            said(made, made[0].shared is made[1][0], made[1][0] is m[1][0])
            said([p.requires_grad for p in made.parameters()], *made.parameters(), *made.buffers())
            said(made[0]._non_persistent_buffers_set, getattr(made[1][0], "tag", None))
        with t.no_grad():
            copy.deepcopy(m)[1][0].add_(1)
        said(m[1][0])
        old = t.nn.Module()
        state = {k: v for k, v in old.__dict__.items() if not k.endswith("_hooks")}
        old.__dict__.clear()
        old.__setstate__({**state, "_backward_hooks": {}, "_forward_hooks": {}})
        said(sorted(old.__dict__))

    agree(script)


def test_super_init_and_overridden_buffers() -> None:
    def script(t: Any, said: Said) -> None:
        class Other:
            def __init__(self, x: int, *, y: int) -> None:
                said("other", x, y)

        class Both(t.nn.Module, Other):  # type: ignore[misc, name-defined]
            call_super_init = True

        Both(1, y=2)

        class Mine(t.nn.Module):  # type: ignore[misc, name-defined]
            def register_buffer(self, name: str, tensor: Any) -> None:
                said("mine", name)
                super().register_buffer(name, tensor)

        m = Mine()
        m.a = t.nn.Buffer(t.ones(1))
        said.refused(lambda: setattr(m, "b", t.nn.Buffer(t.ones(1), persistent=False)))
        said(m.a)

    agree(script)


def test_functional_call() -> None:
    def script(t: Any, said: Said) -> None:
        m = net(t)
        call = t.func.functional_call
        weight = t.ones(2, 2, requires_grad=True)
        out = call(m, {"first.weight": weight}, t.ones(1, 2))
        out.sum().backward()
        said(out, weight.grad, m.first.weight.grad, m.first.weight)
        said(call(m, {"first.weight": weight}, (t.ones(1, 2),), tie_weights=False))
        said.refused(
            lambda: call(m, {"first.weight": weight}, t.ones(1, 2), strict=True),
            lambda: call(m, {"x": weight}, t.ones(1, 2), strict=True),
            lambda: call(m, {"first.weight": weight, "second.weight": t.ones(2, 2)}, t.ones(1, 2)),
        )
        said(*m.parameters())

    agree(script)


def test_parameters_record_as_tensors_do() -> None:
    """One class more is no reason for the recorder's slow path."""
    from leafax._dispatch import record  # type: ignore[attr-defined]

    assert record._parameter_class is nn.Parameter
    w = nn.Parameter(leafax.ones(2))
    assert type(w * 2) is leafax.Tensor and type(w.detach()) is leafax.Tensor
    assert not isinstance(w * 2, nn.Parameter)


def test_weights_are_cast_and_loaded_without_spoiling_memories(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from leafax._autograd.memo import replay_after_cut  # type: ignore[attr-defined]

    replays = []
    replay = replay_after_cut.replay

    def noted(*args: Any) -> None:
        replays.append(1)
        replay(*args)

    monkeypatch.setattr(replay_after_cut, "replay", noted)
    m = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)).double()
    m.load_state_dict(copy.deepcopy(m).state_dict())
    optimizer = leafax.optim.SGD(m.parameters(), lr=0.1)
    x = leafax.ones(4, 2, dtype=leafax.float64)
    with nothing_left_behind():
        for _ in range(5):
            loss = m(x).square().mean()
            optimizer.zero_grad()
            loss.item()
            loss.backward()
            optimizer.step()
    assert len(replays) >= 3


@pytest.mark.parametrize("lib", [torch, leafax])
def test_data_set_between_forward_and_backward(lib: Any) -> None:
    """The gradient reads what the weight holds by then, remembered pass or not."""
    w = lib.nn.Parameter(lib.tensor([2.0]))
    x = lib.tensor([3.0], requires_grad=True)
    for value in (5.0, 7.0):
        y = (w * x).sum()
        y.item()
        w.data = lib.tensor([value])
        x.grad = None
        y.backward()
        assert x.grad.tolist() == [value]


def test_stateless_is_found_by_its_old_name() -> None:
    def script(t: Any, said: Said) -> None:
        from importlib import import_module

        stateless = import_module(f"{t.__name__}.nn.utils.stateless")
        m = t.nn.Module()
        m.w = t.nn.Parameter(t.ones(2))
        m.forward = lambda x: m.w * x
        said(stateless.functional_call(m, {"w": t.full((2,), 3.0)}, t.ones(2)), m.w)

    agree(script)
