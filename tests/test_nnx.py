"""nnx modules as models: equal to Flax's own numbers, submodules by attribute, replaced at will."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx

import leafax as torch
from leafax.adapters.nnx import Model


class Net(nnx.Module):
    """Linear, BatchNorm, dropout, a list of layers and a bare parameter."""

    def __init__(self, rate: float = 0.0, seed: int = 0) -> None:
        rngs = nnx.Rngs(seed)
        self.stem = nnx.Linear(3, 4, rngs=rngs)
        self.bn = nnx.BatchNorm(4, momentum=0.9, rngs=rngs)
        self.drop = nnx.Dropout(rate, rngs=rngs)
        self.blocks = nnx.List([nnx.Linear(4, 4, use_bias=False, rngs=rngs) for _ in range(2)])
        self.classifier = nnx.Linear(4, 2, rngs=rngs)
        self.scale = nnx.Param(jnp.ones(4))
        self.width = 4

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.classifier(self.features(x))

    def features(self, x: jax.Array) -> jax.Array:
        x = self.drop(nnx.relu(self.bn(self.stem(x))))
        for block in self.blocks:
            x = block(x)
        return x * self.scale


ROWS: Any = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


def rows() -> Any:
    return torch.from_numpy(ROWS)


def arrays(state: Any) -> Any:
    return nnx.to_pure_dict(state)


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, tolerance, tolerance), a, b)


def train(model: Model, steps: int, optimizer: Any = None) -> list[float]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    x, losses = rows(), []
    for _ in range(steps):
        loss = (model(x) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


def test_parameters_and_buffers_have_dotted_paths() -> None:
    model = Model(Net(0.5))
    assert [n for n, _ in model.named_parameters()] == [
        "blocks.0.kernel", "blocks.1.kernel", "bn.bias", "bn.scale", "classifier.bias",
        "classifier.kernel", "scale", "stem.bias", "stem.kernel",
    ]  # fmt: skip
    names = [n for n, _ in model.named_buffers()]
    assert names == ["bn.mean", "bn.var", "drop.rngs.count", "drop.rngs.key"]
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    assert [n for n, _ in model.named_parameters(recurse=False)] == ["scale"]


def test_the_module_comes_back_without_a_copy() -> None:
    module = Net(0.5)
    before = jax.tree.leaves(nnx.state(module, nnx.Param))
    back = Model(module).to_flax()
    assert back is not module and nnx.graphdef(back) == nnx.graphdef(module)
    after = jax.tree.leaves(nnx.state(back, nnx.Param))
    assert all(map(lambda a, b: a is b, after, before))
    close(back(ROWS), module(ROWS))  # its random streams came back too


def test_the_callers_module_survives_training() -> None:
    module = Net()
    before = jax.tree.map(np.array, arrays(nnx.state(module, nnx.Param)))
    model = Model(module)
    train(model, 3)
    close(arrays(nnx.state(module, nnx.Param)), before, 0)
    assert not np.allclose(model.to_flax().scale[...], before["scale"])


def test_gradients_and_statistics_are_flaxs() -> None:
    module = Net()
    model = Model(module)
    (model(rows()) ** 2).sum().backward()

    def loss(module: Net) -> jax.Array:
        return (module(ROWS) ** 2).sum()

    wanted = nnx.grad(loss)(module)
    for name, p in model.named_parameters():
        leaf: Any = arrays(wanted)
        for step in name.split("."):
            leaf = leaf[int(step) if step.isdigit() else step]
        close(p.grad.jax(), leaf, 1e-5)
    close(model.bn.mean.numpy(), module.bn.mean[...])
    close(model.bn.var.numpy(), module.bn.var[...])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), optax.sgd(0.1, 0.9)),
        (lambda p: torch.optim.Adam(p, lr=0.01), optax.adam(0.01)),
    ],
)
def test_training_equals_a_loop_written_by_hand(ours: Any, theirs: Any) -> None:
    module = Net()
    model = Model(module)
    torch.synchronize()
    torch.explain(clear=True)
    losses = train(model, 6, ours(model.parameters()))
    assert torch.explain().compiles == 1
    optimizer = nnx.Optimizer(module, theirs, wrt=nnx.Param)

    @nnx.jit
    def step(module: Net, optimizer: Any) -> Any:
        value, grads = nnx.value_and_grad(lambda m: (m(ROWS) ** 2).mean())(module)
        optimizer.update(module, grads)
        return value

    wanted = [step(module, optimizer) for _ in losses]
    close(losses, [float(w) for w in wanted], 1e-4)
    # The mean moves with the bias before it, whose gradient is rounding noise.
    close(model.bn.var.numpy(), module.bn.var[...], 1e-4)


def test_steady_state_compiles_nothing() -> None:
    model = Model(Net(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, 2, optimizer)
    torch.explain(clear=True)
    for _ in range(3):
        model.train()
        train(model, 1, optimizer)
    model.eval().train()
    train(model, 2, optimizer)
    assert torch.explain().compiles == 0


def test_dropout_differs_from_step_to_step_and_follows_the_seed() -> None:
    model = Model(Net(0.5))
    model.scale.data = torch.ones(4)

    def outputs() -> list[Any]:
        torch.manual_seed(1)
        return [model(rows()).detach().numpy() for _ in range(3)]

    first = outputs()
    torch.explain(clear=True)
    second = outputs()
    assert torch.explain().compiles == 0
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2])
    close(first, second, 0)
    assert model.drop.rngs.count.item() == 6  # as many as there were calls


def test_eval_uses_the_statistics_and_leaves_them() -> None:
    module = Net(0.5)
    model = Model(module)
    assert model.training and model.bn.training
    model.eval()
    module.eval()  # type: ignore[no-untyped-call]
    close(model(rows()).detach().numpy(), module(ROWS), 1e-5)
    assert model.bn.mean.abs().sum() == 0 and not model.bn.training
    assert not Model(module).training  # as the module was


def test_a_part_in_eval_mode() -> None:
    model = Model(Net())
    model.bn.eval()
    model(rows())
    assert model.bn.mean.abs().sum() == 0 and model.training
    model.train()(rows())
    assert model.bn.mean.abs().sum() > 0


def test_a_flag_of_the_call_is_passed() -> None:
    class Flagged(nnx.Module):
        def __init__(self) -> None:
            self.bn = nnx.BatchNorm(3, rngs=nnx.Rngs(0))

        def __call__(self, x: jax.Array, train: bool) -> jax.Array:
            return self.bn(x, use_running_average=not train)

    model = Model(Flagged())
    model.eval()(rows())
    assert model.bn.mean.abs().sum() == 0
    model.train()(rows())
    assert model.bn.mean.abs().sum() > 0


def test_submodules_and_methods_by_attribute() -> None:
    module = Net()
    model = Model(module).eval()
    module.eval()  # type: ignore[no-untyped-call]
    assert model.classifier.kernel is model.get_parameter("classifier.kernel")
    assert model.get_submodule("blocks.1") is model.blocks[1]
    assert len(model.blocks) == 2 and [b.in_features for b in model.blocks] == [4, 4]
    assert model.width == 4
    close(model.stem(rows()).detach().numpy(), module.stem(ROWS))
    close(model.features(rows()).detach().numpy(), module.features(ROWS), 1e-5)
    with pytest.raises(AttributeError, match="`Net` has no attribute `steem`; the nearest are"):
        model.steem  # noqa: B018


def test_a_submodule_is_replaced() -> None:
    model = Model(Net())
    train(model, 1)
    old, stem = model.classifier.kernel, model.stem.kernel
    model.classifier = nnx.Linear(4, 5, rngs=nnx.Rngs(1))
    assert model(rows()).shape == (8, 5)
    assert model.classifier.kernel is not old and model.stem.kernel is stem
    assert model.get_parameter("classifier.kernel").shape == (4, 5)
    assert all(p is not old for p in model.parameters())
    model.freeze().classifier.unfreeze()
    (model(rows()) ** 2).sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is not None] == [
        "classifier.bias", "classifier.kernel",
    ]  # fmt: skip
    model.blocks[0] = nnx.Linear(4, 4, rngs=nnx.Rngs(1))
    assert "blocks.0.bias" in dict(model.named_parameters())
    model.classifier = nnx.Sequential(model.classifier, nnx.Dropout(0.5))
    model.scale = torch.zeros(4)
    assert model.eval().features(rows()).abs().sum() == 0


def test_shared_parameters_appear_once() -> None:
    class Tied(nnx.Module):
        def __init__(self) -> None:
            self.first = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
            self.second = self.first

        def __call__(self, x: jax.Array) -> jax.Array:
            return self.second(self.first(x))

    model = Model(Tied())
    assert [n for n, _ in model.named_parameters()] == ["first.bias", "first.kernel"]
    model(rows()).sum().backward()
    assert model.second.kernel is model.first.kernel
    back = model.to_flax()
    assert back.first is back.second


def test_freeze_prunes_and_stops_statistics() -> None:
    passed: list[int] = []

    @jax.custom_vjp
    def watched(x: Any) -> Any:
        return x

    def backward(_: None, gradient: Any) -> Any:
        passed.append(1)
        return (gradient,)

    watched.defvjp(lambda x: (x, None), backward)

    class Watched(Net):
        def features(self, x: jax.Array) -> jax.Array:
            return watched(super().features(x))

    model = Model(Watched()).freeze("stem", "bn", "blocks", "scale", stats=True)
    model(rows()).sum().backward()
    torch.synchronize()
    assert not passed and model.bn.mean.abs().sum() == 0
    model.eval().train()(rows())
    assert model.bn.mean.abs().sum() == 0
    model.unfreeze("bn")(rows()).sum().backward()
    assert model.bn.mean.abs().sum() > 0 and passed
    assert arrays(model.mask())["stem"] == {"bias": False, "kernel": False}
    with pytest.raises(ValueError, match="pattern `block` matches none .* nearest are `blocks`"):
        model.freeze("block")


def test_state_dict_goes_to_another_model() -> None:
    model, other = Model(Net(0.5)), Model(Net(0.5, seed=1))
    train(model, 2)
    assert other.load_state_dict(model.state_dict()) == ([], [])
    close(other.eval()(rows()).detach().numpy(), model.eval()(rows()).detach().numpy(), 0)


def test_a_linen_module_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"must be an nnx module, got `Dense`; .*adapters.linen"):
        Model(linen.Dense(3))  # type: ignore[arg-type]


class Dropping(nnx.Module):
    """Dropout in a part with parameters, and one outside of all."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.back = nnx.Sequential(nnx.Linear(4, 64, rngs=rngs), nnx.Dropout(0.5, rngs=rngs))
        self.d = nnx.Dropout(0.5, rngs=rngs)
        self.head = nnx.Linear(64, 2, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.head(self.d(self.back(x)))


@pytest.mark.parametrize("told", [False, True])
def test_dropout_of_a_frozen_part_stops_with_its_statistics(told: bool) -> None:
    model = Model(Dropping())
    if told:
        model.train()

    def zeros(name: str) -> bool:
        with model.watch(name, grad=False) as seen:
            model(torch.ones(1, 4))
        return bool((seen[name] == 0).any())

    assert zeros("back") and zeros("d")
    model.freeze("back")
    assert zeros("back"), "as in PyTorch, unless told"
    model.freeze("back", stats=True)
    assert model.training and not zeros("back") and zeros("d")
    model.unfreeze("back")
    assert zeros("back")
    model.freeze(stats=True)
    assert model.training and not zeros("d")
    assert not model.eval().training and model.train().training
    assert not zeros("back") and zeros("d") is False
    model.unfreeze()
    assert zeros("d")
