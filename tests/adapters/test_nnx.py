"""nnx modules as models: equal to Flax's own numbers, submodules by attribute, replaced at will."""

import copy
import gc
import pickle
import weakref
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
    model.scale = np.ones(4, "float32")
    assert "scale" in dict(model.named_parameters()) and model.scale.requires_grad
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


class Normed(nnx.Module):
    """Statistics in a dict whose keys are no names, scales in another that has bare arrays."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.spectral = nnx.SpectralNorm(nnx.Linear(3, 4, rngs=rngs), rngs=rngs)
        self.weight = nnx.WeightNorm(nnx.Linear(4, 2, rngs=rngs), rngs=rngs)
        self.shift = jnp.ones(2)

    def __call__(self, x: Any) -> Any:
        return self.weight(self.spectral(x)) + self.shift


def test_arrays_and_variables_inside_of_plain_containers() -> None:
    module = Normed()
    model = Model(module)
    assert [n for n, _ in model.named_buffers()] == [
        "shift", "spectral.batch_stats.('kernel', 'sigma')",
        "spectral.batch_stats.('kernel', 'u')", "weight.scales.('kernel',)",
    ]  # fmt: skip
    want = nnx.value_and_grad(lambda m: (m(ROWS) ** 2).mean())(module)
    loss = (model(rows()) ** 2).mean()
    loss.backward()
    close(loss.item(), want[0])
    gradients = {".".join(map(str, k)): v for k, v in nnx.to_flat_state(want[1])}
    for name, p in model.named_parameters():
        close(p.grad.numpy(), gradients[name][...], 1e-5)
    close(model.spectral.batch_stats[("kernel", "u")].numpy(),
          module.spectral.batch_stats[("kernel", "u")][...])  # fmt: skip
    model.shift = torch.zeros(2)
    back = model.to_flax()
    assert not back.shift.any() and isinstance(back.weight.scales[("kernel",)], jax.Array)


def test_statistics_in_a_dict_are_stopped_and_move_again() -> None:
    model = Model(Normed()).freeze("spectral", stats=True)
    u = model.spectral.batch_stats[("kernel", "u")].clone()
    model(rows())
    assert (model.spectral.batch_stats[("kernel", "u")] == u).all()
    model.unfreeze("spectral")(rows())
    assert not (model.spectral.batch_stats[("kernel", "u")] == u).all()


def test_a_model_whose_only_norms_are_stopped_still_trains() -> None:
    rngs = nnx.Rngs(0)
    model = Model(nnx.Sequential(nnx.Linear(3, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)))
    model.freeze(stats=True)
    assert model.training
    model(rows())
    assert not model.layers[1].mean.any()
    model.unfreeze("layers.1")(rows())
    assert model.training and model.layers[1].mean.any()


def test_submodules_in_plain_containers_are_models() -> None:
    rngs = nnx.Rngs(0)

    class Towers(nnx.Module):
        def __init__(self) -> None:
            self.pair = nnx.data((nnx.Linear(3, 2, rngs=rngs), nnx.Linear(3, 2, rngs=rngs)))
            self.named = nnx.Dict(a=nnx.Linear(2, 2, rngs=rngs), relu=nnx.relu)

        def __call__(self, x: Any) -> Any:
            return self.named["relu"](self.named.a(self.pair[0](x) + self.pair[1](x)))

    model = Model(Towers())
    assert model.pair[1].kernel is model.get_parameter("pair.1.kernel")
    assert model.get_submodule("pair.0")(rows()).shape == (8, 2)
    assert [name for name, _ in model.named.items()] == list(model.named) == ["a", "relu"]
    assert [type(part) for part in model.named.values()][0] is Model and "a" in model.named


def test_parts_are_added_and_deleted() -> None:
    model = Model(Net())
    model.blocks.append(nnx.Linear(4, 4, rngs=nnx.Rngs(1)))
    assert "blocks.2.bias" in dict(model.named_parameters()) and len(model.blocks) == 3
    before = model.eval()(rows())
    model.blocks.insert(0, nnx.Linear(4, 4, rngs=nnx.Rngs(2)))
    assert not torch.allclose(model(rows()), before)
    assert model.blocks.pop(0).kernel.shape == (4, 4)
    assert torch.equal(model(rows()), before)
    assert len(model.blocks[1:]) == 2 and type(model.blocks[1:][0]) is Model
    del model.blocks[2]
    del model.width
    assert len(model.blocks) == 2 and not hasattr(model, "width")
    model.set_attributes(nnx.Dropout, rate=0.5)
    assert model.drop.rate == 0.5
    with pytest.raises(AttributeError, match="steem"):
        del model.steem


@pytest.mark.filterwarnings("ignore:Using 'Module.sow:DeprecationWarning")
def test_a_call_that_would_lose_what_it_sets_is_an_error() -> None:
    class Counting(nnx.Module):
        def __init__(self) -> None:
            self.layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
            self.calls, self.mode = 0, "plain"

        def __call__(self, x: Any) -> Any:
            self.calls += 1
            return self.layer(x)

        def remember(self, x: Any) -> Any:
            self.last = nnx.Variable(x)
            return self.layer(x)

        def sowing(self, x: Any) -> Any:
            self.sow(nnx.Intermediate, "seen", x)
            return self.layer(x)

        def forget(self, x: Any) -> Any:
            del self.layer.bias
            return x

    model = Model(Counting())
    with pytest.raises(
        ValueError,
        match=r"`__call__` sets the attribute `calls`, which is lost .*: make it an "
        r"`nnx.Variable`, or set it from outside, as `model.calls = ...`",
    ):
        model(rows())
    with pytest.raises(
        ValueError,
        match="`remember` makes `last`, but a call cannot change what variables the module has: "
        "do it before you make the model, and return from the call what it computes",
    ):
        model.remember(rows())
    with pytest.raises(ValueError, match="`forget` takes away `layer.bias`"):
        model.forget(rows())
    assert model.sowing(rows()).shape == (8, 2)
    model.mode = "other"
    assert model.mode == "other"


class Noisy(nnx.Module):
    """Draws from a key of its own, told by no flag."""

    def __init__(self) -> None:
        self.key = nnx.Variable(jax.random.key(0))

    def __call__(self, x: Any) -> Any:
        new, key = jax.random.split(self.key.get_value())
        self.key.set_value(new)
        return x + jax.random.normal(key, x.shape)


def test_a_key_in_a_variable_goes_on_in_evaluation() -> None:
    model, module = Model(Noisy()).eval(), Noisy()
    for _ in range(3):
        close(model(rows()).numpy(), module(ROWS))  # its own stream, as in Flax


@pytest.mark.parametrize("first", [False, True])
def test_training_draws_from_the_generator_whichever_mode_was_first(first: bool) -> None:
    model = Model(Noisy()).train(first)
    model(rows())
    model.train()
    torch.manual_seed(1)
    a = model(rows())
    torch.manual_seed(1)
    assert torch.equal(model(rows()), a)
    assert not torch.equal(model(rows()), a)


def test_random_streams_are_given_to_a_call() -> None:
    class Told(nnx.Module):
        def __init__(self) -> None:
            self.drop = nnx.Dropout(0.5)

        def __call__(self, x: Any, rngs: Any = None) -> Any:
            return self.drop(x, rngs=rngs)

    model, rngs = Model(Told()), nnx.Rngs(0)
    ones = torch.ones(64)
    assert not torch.equal(model(ones, rngs), model(ones, rngs=rngs))
    model(ones, rngs).tolist()
    torch.explain(clear=True)
    for _ in range(3):
        model(ones, rngs).tolist()
    assert torch.explain().compiles == 0
    key = jax.random.key(1)
    want = model(ones, rngs=key)
    with model.watch("drop") as seen:
        assert torch.equal(model(ones, rngs=key), want)
        assert torch.equal(seen["drop"], want)
        assert not torch.equal(model(ones, rngs=jax.random.key(2)), want)


def pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


@pytest.mark.parametrize("copied", [copy.deepcopy, pickled])
def test_copies_know_what_the_model_knew(copied: Any) -> None:
    model = Model(Net(0.5)).freeze("stem", "bn", stats=True)
    train(model, 2)
    other = copied(model)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    train(other, 2, optimizer)
    assert not other.bn.mean.any() and not other.stem.kernel.requires_grad
    assert not torch.equal(other.scale, model.scale)
    assert torch.equal(other.stem.kernel, model.stem.kernel)
    torch.manual_seed(0)
    a = other(rows())
    torch.manual_seed(0)
    assert torch.equal(other(rows()), a) and not torch.equal(other(rows()), a)
    assert other.to_flax().drop.rngs.key[...].dtype == Net(0.5).drop.rngs.key[...].dtype
    assert other.get_parameter("stem.kernel") is other.stem.kernel
    assert other.training and not other.eval().training and model.training
    other.train().unfreeze()(rows())
    assert other.bn.mean.any() and not model.bn.mean.any()
    torch.explain(clear=True)
    train(other.freeze("stem", "bn", stats=True), 1, optimizer)
    assert torch.explain().compiles == 0
    assert copied(Model(Normed())).shift.tolist() == [1.0, 1.0]
    assert copied(Model(Normed()).eval())(rows()).shape == (8, 2)


def test_a_copy_and_its_optimizer_belong_together() -> None:
    model = Model(Net())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    other, others = copy.deepcopy((model, optimizer))
    assert train(other, 3, others) == train(model, 3, optimizer)


def test_a_model_goes_with_its_last_name() -> None:
    """Flax keeps what it merged in a cycle, so arrays waited for the garbage collector."""
    model = Model(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    kernel = weakref.ref(model.kernel)
    gc.collect()
    gc.disable()
    try:
        del model
        assert kernel() is None
    finally:
        gc.enable()
    original = Model(nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    copied, x = copy.copy(original), torch.ones(1, 2)
    assert copied(x).tolist() == original(x).tolist()


class Attending(nnx.Module):
    """Attention that was told nothing of whether it trains, and a layer behind it."""

    def __init__(self) -> None:
        rngs = nnx.Rngs(0)
        self.attention = nnx.MultiHeadAttention(
            num_heads=2, in_features=4, dropout_rate=0.5, decode=False, rngs=rngs
        )
        self.out = nnx.Linear(4, 3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.out(self.attention(x))


@pytest.mark.exhaustive
def test_attention_that_was_told_nothing_trains_at_once() -> None:
    model = Model(Attending())
    x = torch.ones(1, 3, 4)
    assert model.training and not torch.equal(model(x), model(x))
    model.eval()
    assert torch.equal(model(x), model(x))
    model.train().attention = nnx.MultiHeadAttention(
        num_heads=2, in_features=4, dropout_rate=0.5, decode=False, rngs=nnx.Rngs(1)
    )
    assert not torch.equal(model(x), model(x))


def test_assignments_that_would_change_nothing_are_refused() -> None:
    model = Model(Net())
    with pytest.raises(AttributeError, match=r"call `model.train\(\)` or `model.eval\(\)`"):
        model.training = False
    with pytest.raises(AttributeError, match=r"call `model.freeze\(...\)`"):
        model.freeze = True
    with pytest.raises(TypeError, match="`Net.classifier` cannot be a linen module, got `Dense`"):
        model.classifier = linen.Dense(5)
    assert model(torch.ones(1, 3)).shape == (1, 2)


def test_parts_are_completed() -> None:
    assert {"stem", "blocks", "scale", "freeze"} <= set(dir(Model(Net())))


class Failing(nnx.Module):
    """Adds what does not fit."""

    def __init__(self) -> None:
        self.dense = nnx.Linear(3, 3, rngs=nnx.Rngs(0))

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dense(x) + jnp.ones(7)


class Outer(nnx.Module):
    def __init__(self) -> None:
        self.inner = Failing()

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.inner(x)


def test_an_error_inside_names_the_module_and_the_line() -> None:
    with pytest.raises(ValueError, match="Incompatible shapes") as caught:
        Model(Outer())(torch.ones(2, 3))
    (note,) = [n for n in caught.value.__notes__ if n.startswith("raised in")]
    line = Failing.__call__.__code__.co_firstlineno + 1
    assert note == f"raised in `inner` (Failing) of the model, at {__file__}:{line}"
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (__file__, line)


def test_variables_in_hijax_are_refused_by_name() -> None:
    with nnx.var_defaults(hijax=True):
        module = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
    with pytest.raises(TypeError, match=r"of `Linear` is a hijax variable.*hijax=False"):
        Model(module)


def test_a_module_made_in_tree_mode_is_a_model() -> None:
    with nnx.set_graph_mode(False):
        model = Model(nnx.Linear(3, 1, rngs=nnx.Rngs(0)))
        model(torch.ones(2, 3)).sum().backward()
        assert model.bias.grad.tolist() == [2.0]
