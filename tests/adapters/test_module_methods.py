"""Methods of `nn.Module` on Flax models: moving, casting, and the parts by name."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from flax import linen, nnx

import leafax
from leafax.adapters import linen as linen_adapter
from leafax.adapters import nnx as nnx_adapter


class Linen(linen.Module):
    @linen.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        x = linen.BatchNorm(use_running_average=not train, name="norm")(x)
        return linen.Dense(2, name="out")(linen.relu(linen.Dense(4, name="first")(x)))


class Nnx(nnx.Module):
    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.first, self.norm = nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)
        self.rest = nnx.List([nnx.Dropout(0.5, rngs=rngs), nnx.Linear(4, 2, rngs=rngs)])

    def __call__(self, x: Any) -> Any:
        return self.rest[1](self.rest[0](self.norm(nnx.relu(self.first(x)))))


MODELS: dict[str, Callable[[], Any]] = {
    "linen": lambda: linen_adapter.Model.from_batch(Linen(), leafax.ones(1, 3)),
    "nnx": lambda: nnx_adapter.Model(Nnx()),
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> Any:
    return MODELS[request.param]()


def dtypes(model: Any) -> set[Any]:
    floats = (t for t in (*model.parameters(), *model.buffers()) if t.is_floating_point())
    return {t.dtype for t in floats}


def test_casting_keeps_tensors_gradients_and_the_optimizers_place(model: Any) -> None:
    optimizer = leafax.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = leafax.from_numpy(np.arange(6, dtype=np.float32).reshape(2, 3))
    model(x).square().sum().backward()
    optimizer.step()
    before = [*model.parameters()]
    values = [p.detach().clone() for p in before]
    assert model.bfloat16() is model and dtypes(model) == {leafax.bfloat16}
    assert {p.grad.dtype for p in before} == {leafax.bfloat16}
    assert all(a is b for a, b in zip(before, model.parameters(), strict=True))
    assert model.eval()(x.bfloat16()).dtype == leafax.bfloat16
    assert model.half() is model and dtypes(model) == {leafax.float16}
    assert model.to(x) is model and dtypes(model) == {leafax.float32}
    assert model.to("cpu", leafax.bfloat16).float().cpu().to(device="cpu") is model
    for p, value in zip(before, values, strict=True):
        assert p.requires_grad and p.is_leaf
        np.testing.assert_allclose(p.detach().numpy(), value.numpy(), rtol=1e-2, atol=1e-3)
    model.train()(x).square().sum().backward()
    optimizer.step()


def test_casting_refuses_what_it_cannot_do(model: Any) -> None:
    text = "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype="
    with pytest.raises(TypeError, match=text + "torch.int32"):
        model.to(leafax.int32)
    for cast in (
        model.double,
        lambda: model.to(leafax.float64),
        lambda: model.to("cpu", dtype=leafax.float64),
    ):
        with pytest.raises(RuntimeError, match="jax_enable_x64"):
            cast()
    assert dtypes(model) == {leafax.float32}
    if not leafax.cuda.is_available():
        with pytest.raises(RuntimeError, match="no device of type cuda is available to JAX"):
            model.cuda()


def test_in_64_bits_where_jax_has_them(model: Any) -> None:
    with jax.enable_x64(True):
        model.double()
        assert dtypes(model) == {leafax.float64}
        assert model(leafax.ones(2, 3, dtype=leafax.float64)).dtype == leafax.float64


def test_parts_have_names() -> None:
    model = MODELS["linen"]()
    assert [name for name, _ in model.named_modules()] == ["", "first", "norm", "out"]
    assert [name for name, _ in model.named_modules(prefix="m")][:2] == ["m", "m.first"]
    assert [name for name, _ in model.named_children()] == ["first", "norm", "out"]
    other = MODELS["nnx"]()
    names = dict(other.named_modules())
    assert {"", "first", "norm", "rest", "rest.1"} <= {*names}
    assert [n for n in names if n.startswith("rest")][:2] == ["rest", "rest.0"]  # without tensors
    assert names["rest.1"] is other.rest[1] and names[""] is other
    assert len([*other.modules()]) == len(names) and len({*other.children()}) == 3


def test_parts_are_cast_alone(model: Any) -> None:
    part = dict(model.named_children())["first"]
    part.half()
    assert model.get_parameter("first.kernel").dtype == leafax.float16
    assert model.get_parameter("norm.scale").dtype == leafax.float32


def test_functions_are_applied_from_the_inside_out(model: Any) -> None:
    seen: list[Any] = []

    def fill(part: Any) -> None:
        seen.append(part)
        with leafax.no_grad():
            for p in part.parameters(recurse=False):
                p.fill_(0.5)

    assert model.apply(fill) is model
    assert seen[-1] is model and len(seen) == len([*model.modules()])
    assert all(bool((p == 0.5).all()) for p in model.parameters())


def test_a_shared_part_is_listed_once() -> None:
    class Twice(nnx.Module):
        def __init__(self) -> None:
            self.a = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
            self.b = self.a

        def __call__(self, x: Any) -> Any:
            return self.b(self.a(x))

    names = [name for name, _ in nnx_adapter.Model(Twice()).named_modules()]
    assert names == ["", "a"]
