"""`func.functional_call` and `func.functionalize` against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from helpers.sameness import Log, same

import leafax
import leafax.func


class Plain:
    """As much of a module as `functional_call` asks for."""

    def __init__(self) -> None:
        for name in ("_parameters", "_buffers", "_modules"):
            object.__setattr__(self, name, {})

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, Plain):
            self._modules[name] = value
        elif name in self._buffers:
            self._buffers[name] = value
        elif isinstance(value, leafax.Tensor):
            self._parameters[name] = value
        else:
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        for places in (self._parameters, self._buffers, self._modules):
            if name in places:
                return places[name]
        raise AttributeError(name)

    def register_buffer(self, name: str, value: Any) -> None:
        self._buffers[name] = value

    def _named(self, kind: str, prefix: str = "") -> Any:
        yield from ((prefix + name, t) for name, t in getattr(self, kind).items())
        for name, m in self._modules.items():
            yield from m._named(kind, prefix + name + ".")

    def named_parameters(self, remove_duplicate: bool = True) -> Any:
        return self._named("_parameters")

    def named_buffers(self, remove_duplicate: bool = True) -> Any:
        return self._named("_buffers")

    def _get_name(self) -> str:
        return type(self).__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)


def net(lib: Any) -> Any:
    is_torch = lib is torch
    base: Any = torch.nn.Module if is_torch else Plain
    wrap: Any = torch.nn.Parameter if is_torch else (lambda t: t.requires_grad_())

    class Scale(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = wrap(lib.tensor([1.0, 2.0]))
            self.register_buffer("calls", lib.zeros(1))

        def forward(self, x: Any, shift: Any = 0) -> Any:
            self.calls = self.calls + 1
            return x * self.weight + shift

    class Net(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = Scale(), Scale()
            self.b.weight = self.a.weight
            self.bias = wrap(lib.tensor([0.5]))

        def forward(self, x: Any, shift: Any = 0) -> Any:
            return self.b(self.a(x, shift)) + self.bias

    return Net()


def test_functional_call() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        call = torch.func.functional_call
        m = net(torch)
        x = torch.tensor([3.0, 4.0])
        w = torch.tensor([2.0, 0.5], requires_grad=True)
        bias, calls = torch.tensor([1.0]), torch.tensor([5.0])
        given = {"a.weight": w, "a.calls": calls}
        y = call(m, given, x)
        log(y, given["a.calls"], m.a.calls, m.a.weight, m.b.calls)
        y.sum().backward()
        log.gradients(w.grad)
        log(m.a.weight.grad, m.bias.grad)
        log.gradients(call(m, ({"bias": bias}, given), (x,), {"shift": 2}).detach())
        grads = torch.func.grad(lambda p: call(m, p, x).sum())({"bias": bias, "a.weight": w})
        log.gradients(grads["bias"], grads["a.weight"].detach())
        log.attempt(call, m, ({"bias": bias}, {"bias": bias}), x)
        log.attempt(call, m, [bias], x)
        log.attempt(call, m, 3, x)
        log.attempt(call, m, {"a.weight": w, "b.weight": w * 1}, x)
        log(call(m, {"a.weight": w.detach(), "b.weight": w.detach() * 2}, x, tie_weights=False))
        log.attempt(lambda: call(m, {"bias": bias, "c": w}, x, strict=True))
        log.attempt(lambda: call(m, {"c": w}, x))
        with log.catch():
            call(m, {"bias": bias}, None)
        log(m.bias)


@pytest.mark.parametrize("name", ["bias", "a.weight", "a.factor", "", "a."])
@pytest.mark.parametrize("value", [None, "3.0", "x", "w"])
def test_what_is_no_tensor_is_refused(name: str, value: str | None) -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        m = net(torch)
        m.a.factor = 2.0
        x = torch.tensor([3.0, 4.0])
        new = eval(value or "None", {"x": x, "w": "a word"})
        log.attempt(torch.func.functional_call, m, {name: new}, x)
        log(m.a.weight, m.bias, m.a.factor)


def test_without_tied_weights_modules_may_form_a_circle() -> None:
    @same
    def program(torch: Any, log: Log) -> Any:
        m = net(torch)
        m.a.outer = m
        given = {"a.outer.a.weight": torch.tensor([2.0, 3.0])}
        call = torch.func.functional_call
        log(call(m, given, torch.tensor([3.0, 4.0]), tie_weights=False))


def test_of_a_flax_model() -> None:
    from flax import nnx

    from leafax.adapters.nnx import Model

    model = Model(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    x = leafax.ones(3, 2)
    kernel = leafax.zeros(2, 2, requires_grad=True)
    y = leafax.func.functional_call(model, {"kernel": kernel}, x)
    y.sum().backward()
    assert np.array_equal(kernel.grad, np.full((2, 2), 3.0))
    each = leafax.func.vmap(
        lambda k: leafax.func.functional_call(model, {"kernel": k}, x), in_dims=0
    )(leafax.ones(4, 2, 2))
    assert each.shape == (4, 3, 2)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'weight'"):
        leafax.func.functional_call(model, {"weight": kernel}, x, strict=True)


def test_functionalize() -> None:
    # What a tensor in there prints is not compared: PyTorch's is a `FunctionalTensor(...)` without
    # history and versions, whose captured neighbours refuse writes.
    @same
    def program(torch: Any, log: Log) -> Any:
        functionalize = torch.func.functionalize
        x = torch.ones(2, 2)

        def f(x: Any) -> Any:
            y = x.clone()
            y.add_(1)
            x.mul_(3)
            return y, x.view(4), x

        a, b, c = functionalize(f)(x)
        log.gradients(a, b, c, x)
        log(x._version, c is x, b._is_view(), b._base is x)
        log(functionalize(f, remove="mutations_and_views")(x)[1]._is_view())
        turned = functionalize(lambda x: x[None].mT, remove="mutations_and_views")(x)
        log(turned.stride(), turned.shape)
        log(functionalize(lambda x: x)(x) is x, functionalize(lambda x: 3)(x))
        log.attempt(functionalize, f, remove="all")
        for change in (
            lambda x: x.t_(), lambda x: x.resize_(3, 2), lambda x: x.resize_(2).mul_(2),
            lambda x: (x.t_(), x.add_(1)),
        ):  # fmt: skip
            z = torch.arange(6.0).reshape(2, 3)
            functionalize(lambda x, change=change: (change(x), x * 1)[1])(z)
            log(z.tolist(), z.stride())
        functionalize(lambda d: d["a"].add_(1))({"a": x})
        log.gradients(x)
        log.gradients(torch.func.vmap(functionalize(lambda x: x.clone().add_(1)))(x))
        log.gradients(functionalize(torch.func.vmap(lambda x: x.clone().add_(1)))(x))
        log.gradients(functionalize(torch.func.grad(lambda x: x.clone().mul_(x).sum()))(x))
        w = torch.ones(2, requires_grad=True)
        functionalize(lambda x: (x * w).add_(1).view(2) * x)(w).sum().backward()
        log.gradients(w.grad)
