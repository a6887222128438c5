"""linen modules as models: equal to Flax's own numbers, one program a step, freezing by path."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import leafax as torch
from leafax.adapters.linen import Model


class Net(nn.Module):
    """A convolution, BatchNorm, a part assigned in `setup`, and dropout."""

    rate: float = 0.0

    def setup(self) -> None:
        self.stem = nn.Conv(4, (3, 3))
        self.bn = nn.BatchNorm(momentum=0.9)
        self.drop = nn.Dropout(self.rate)
        self.head = nn.Dense(3)

    def __call__(self, x: jax.Array, train: bool) -> jax.Array:
        return self.head(self.features(x, train))

    def features(self, x: jax.Array, train: bool) -> jax.Array:
        x = nn.relu(self.bn(self.stem(x), not train)).mean((1, 2))
        return self.drop(x, deterministic=not train)


class Compact(nn.Module):
    """No argument says whether to train."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.BatchNorm(use_running_average=False, name="bn")(nn.Dense(4, name="first")(x))
        x = nn.Dropout(0.5, deterministic=False)(x)
        return nn.Dense(2, name="second")(x)


IMAGES = np.random.default_rng(0).normal(size=(8, 6, 6, 2)).astype("float32")
LABELS = np.arange(8) % 3


def net(rate: float = 0.0) -> tuple[Net, Any]:
    module = Net(rate)
    return module, module.init(jax.random.key(0), IMAGES, False)


def compact() -> tuple[Compact, Any]:
    keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    return Compact(), Compact().init(keys, jnp.ones((2, 3)))


def close(a: Any, b: Any, tolerance: float = 1e-6) -> None:
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, tolerance, tolerance), a, b)


def gradients(model: Model) -> dict[str, Any]:
    return {n: None if p.grad is None else p.grad.jax() for n, p in model.named_parameters()}


def test_parameters_and_buffers_have_dotted_paths() -> None:
    model = Model(*net())
    assert [n for n, _ in model.named_parameters()] == [
        "bn.bias", "bn.scale", "head.bias", "head.kernel", "stem.bias", "stem.kernel",
    ]  # fmt: skip
    assert [n for n, _ in model.named_buffers()] == ["bn.mean", "bn.var"]
    assert all(p.requires_grad and p.is_leaf for p in model.parameters())
    assert not any(b.requires_grad for b in model.buffers())
    assert "6 parameters of 99 numbers, 99 trainable; 2 buffers; training" in repr(model)


def test_variables_come_back_without_a_copy() -> None:
    module, variables = net()
    model = Model(module, variables)
    back, again = model.to_flax()
    structure: Any = jax.tree.structure(again)
    assert back is module and structure == jax.tree.structure(variables)
    assert all(map(lambda a, b: a is b, jax.tree.leaves(again), jax.tree.leaves(variables)))
    model.get_parameter("head.bias").data = torch.ones(3)
    close(model.variables()["params"]["head"]["bias"], np.ones(3))


def test_the_callers_arrays_survive_training() -> None:
    module, variables = net()
    before = jax.tree.map(np.array, variables)
    train(Model(module, variables), 3)
    close(variables, before, 0)


def test_gradients_and_statistics_are_flaxs() -> None:
    module, variables = net()
    model = Model(module, variables)
    out = model(torch.from_numpy(IMAGES))
    (out * out).sum().backward()

    def loss(params: Any) -> Any:
        out, after = module.apply(
            {**variables, "params": params}, IMAGES, train=True, mutable=["batch_stats"]
        )
        return (out * out).sum(), after["batch_stats"]

    wanted, stats = jax.grad(loss, has_aux=True)(variables["params"])
    got = gradients(model)
    close(got, {n: wanted[n.split(".")[0]][n.split(".")[1]] for n in got}, 1e-5)
    close(model.variables()["batch_stats"], stats)


def train(model: Any, steps: int, optimizer: Any = None) -> list[float]:
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.from_numpy(IMAGES), torch.eye(3)[torch.from_numpy(LABELS)]
    losses = []
    for _ in range(steps):
        loss = ((model(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [loss.item() for loss in losses]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), optax.sgd(0.1, 0.9)),
        (lambda p: torch.optim.Adam(p, lr=0.01), optax.adam(0.01)),
    ],
)
def test_training_equals_a_loop_written_by_hand(ours: Any, theirs: Any) -> None:
    module, variables = net()
    model = Model(module, variables)
    torch.synchronize()
    torch.explain(clear=True)
    losses = train(model, 6, ours(model.parameters()))
    assert torch.explain().compiles <= 2  # the first step also makes the labels

    @jax.jit
    def step(params: Any, stats: Any, state: Any) -> Any:
        def loss(params: Any) -> Any:
            variables = {"params": params, "batch_stats": stats}
            out, after = module.apply(variables, IMAGES, True, mutable=["batch_stats"])
            return ((out - jnp.eye(3)[LABELS]) ** 2).mean(), after["batch_stats"]

        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = theirs.update(grads, state, params)
        return value, optax.apply_updates(params, updates), stats, state

    params, stats = variables["params"], variables["batch_stats"]
    state = theirs.init(params)
    for value in losses:
        wanted, params, stats, state = step(params, stats, state)
        close(value, wanted, 1e-5)
    # A convolution's bias before BatchNorm has a gradient of rounding noise, which Adam blows up.
    got = model.variables()["params"]
    close(got["head"], params["head"], 1e-4)
    close(got["stem"]["kernel"], params["stem"]["kernel"], 1e-4)


def test_steady_state_compiles_nothing() -> None:
    model = Model(*net(0.5))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, 2, optimizer)
    torch.explain(clear=True)
    train(model, 3, optimizer)
    model.eval().train()
    train(model, 2, optimizer)
    assert torch.explain().compiles == 0


def test_held_values_compile_nothing_more() -> None:
    module, variables = net()
    model = Model(module, variables)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.from_numpy(IMAGES)
    torch.synchronize()
    torch.explain(clear=True)
    held: list[Any] = [variables]
    for _ in range(3):
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        held += [model.state_dict(), model.variables()]
        model.load_state_dict(held[-2])
    assert [run.how for run in torch.explain()] == ["compiled", "cached", "cached"]
    close(held[2]["params"]["head"]["bias"], held[1]["head.bias"].numpy(), 0)


def test_models_of_equal_modules_share_their_programs() -> None:
    train(Model(*net()), 2)
    torch.explain(clear=True)
    train(Model(*net()), 2)
    assert torch.explain().compiles == 0


def test_dropout_differs_from_step_to_step_and_follows_the_seed() -> None:
    model = Model(*net(0.5))
    x = torch.from_numpy(IMAGES)

    def outputs() -> list[Any]:
        torch.manual_seed(1)
        return [model.features(x, True).detach().numpy() for _ in range(3)]

    first = outputs()
    torch.explain(clear=True)
    second = outputs()
    assert torch.explain().compiles == 0
    assert not np.array_equal(first[0], first[1]) and not np.array_equal(first[1], first[2])
    close(first, second, 0)
    assert (first[0] == 0).mean() > 0.2


def test_eval_uses_the_statistics_and_leaves_them() -> None:
    module, variables = net(0.5)
    model = Model(module, variables).eval()
    x = torch.from_numpy(IMAGES)
    close(model(x).detach().numpy(), module.apply(variables, IMAGES, False), 1e-5)
    close(model.variables()["batch_stats"], variables["batch_stats"], 0)
    assert not model.training and model.train().training


def test_a_flag_given_to_a_call_wins() -> None:
    model = Model(*net())
    x = torch.from_numpy(IMAGES)
    model(x, train=False), model(x, False)
    close(model.get_buffer("bn.mean").numpy(), np.zeros(4), 0)
    model.eval()(x, train=True)
    assert model.get_buffer("bn.mean").abs().sum() > 0


def test_a_module_without_a_flag_is_switched_from_outside() -> None:
    module, variables = compact()
    model = Model(module, variables)
    x = torch.arange(6.0).reshape(2, 3)
    assert not torch.equal(model(x), model(x))
    stats = model.get_buffer("bn.var").clone()
    assert not torch.equal(stats, torch.ones(4))
    model.eval()
    assert torch.equal(model(x), model(x)) and torch.equal(model.get_buffer("bn.var"), stats)


def test_freeze_and_unfreeze_by_glob_regex_and_predicate() -> None:
    def trainable(model: Model) -> list[str]:
        return [n for n, p in model.named_parameters() if p.requires_grad]

    model = Model(*net())
    assert trainable(model.freeze("stem", "bn")) == ["head.bias", "head.kernel"]
    assert model.mask()["stem"] == {"bias": False, "kernel": False}
    assert trainable(model.unfreeze("**.bias")) == [
        "bn.bias", "head.bias", "head.kernel", "stem.bias",
    ]  # fmt: skip
    assert trainable(model.freeze(re.compile("^bn"), lambda path, p: p.dim() > 1)) == [
        "head.bias", "stem.bias",
    ]  # fmt: skip
    assert trainable(model.freeze()) == [] and len(trainable(model.requires_grad_())) == 6


def test_a_pattern_that_matches_nothing_is_an_error() -> None:
    model = Model(*net())
    with pytest.raises(ValueError, match=r"pattern `steem` matches none .* nearest are `stem`"):
        model.freeze("steem")
    with pytest.raises(ValueError, match=r"pattern `bn.mean` matches none of the 6 paths"):
        model.freeze("bn.mean")
    with pytest.raises(TypeError, match="`dict` selects no parameters here: give globs"):
        model.freeze({"stem": True})


def test_a_frozen_part_has_no_backward_pass() -> None:
    passed: list[int] = []

    @jax.custom_vjp
    def watched(x: Any) -> Any:
        return x

    def backward(_: None, gradient: Any) -> Any:
        passed.append(1)
        return (gradient,)

    watched.defvjp(lambda x: (x, None), backward)

    class Watched(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            return nn.Dense(2, name="head")(watched(nn.Dense(4, name="backbone")(x)))

    x = torch.ones(3, 2)
    model = Model(Watched(), Watched().init(jax.random.key(0), jnp.ones((3, 2))))
    model.freeze("backbone")(x).sum().backward()
    torch.synchronize()
    assert not passed and model.get_parameter("backbone.kernel").grad is None
    model.unfreeze("backbone")(x).sum().backward()
    torch.synchronize()
    assert passed and model.get_parameter("backbone.kernel").grad is not None


def test_freezing_forgets_the_gradient_and_holds_no_state() -> None:
    model = Model(*net())
    optimizer = torch.optim.Adam(model.parameters())
    train(model.freeze("stem"), 2, optimizer)
    assert set(map(id, optimizer.state)) == {id(p) for p in model.parameters() if p.requires_grad}
    model.freeze("head")
    assert model.get_parameter("head.bias").grad is None


@pytest.mark.parametrize("make", [net, compact])
def test_frozen_statistics_stand_still(make: Any) -> None:
    module, variables = make()
    model = Model(module, variables).freeze("bn", stats=True)
    x = torch.from_numpy(IMAGES) if make is net else torch.ones(2, 3)
    model(x)
    close(model.variables()["batch_stats"], variables["batch_stats"], 0)
    if make is net:  # it also normalises by them
        close(model(x).detach().numpy(), module.apply(variables, IMAGES, False), 1e-5)
    model.unfreeze("bn")(x)
    assert model.get_buffer("bn.var").ne(1).any()


def test_statistics_of_frozen_parameters_move_unless_told() -> None:
    model = Model(*net()).freeze("bn")
    model(torch.from_numpy(IMAGES))
    assert model.get_buffer("bn.var").ne(1).any()


def test_parts_are_models_of_the_same_tensors() -> None:
    module, variables = net()
    model = Model(module, variables)
    assert [n for n, _ in model.head.named_parameters("head")] == ["head.bias", "head.kernel"]
    assert model.head.get_parameter("bias") is model.get_parameter("head.bias")
    model.get_submodule("stem").freeze()
    assert not model.get_parameter("stem.kernel").requires_grad
    assert model.stem.mask() == {"bias": False, "kernel": False}
    x = torch.ones(1, 4)
    close(model.head(x).detach().numpy(), nn.Dense(3).apply(
        {"params": variables["params"]["head"]}, np.ones((1, 4), "float32")
    ))  # fmt: skip


def test_a_part_in_eval_mode() -> None:
    model = Model(*net())
    model.bn.eval()
    model(torch.from_numpy(IMAGES))
    close(model.get_buffer("bn.mean").numpy(), np.zeros(4), 0)
    assert model.training and not model.bn.training
    model.bn.train()
    model(torch.from_numpy(IMAGES))
    assert model.get_buffer("bn.mean").ne(0).any()
    with pytest.raises(RuntimeError, match=r"`Net.bn` cannot train while what it is part of"):
        model.eval().bn.train()


def test_state_dict_goes_to_another_model_and_is_a_snapshot() -> None:
    module, variables = net()
    model = Model(module, variables)
    saved = model.state_dict()
    train(model, 1)
    assert not torch.equal(saved["head.kernel"], model.get_parameter("head.kernel"))
    found = model.load_state_dict({n: t.numpy() for n, t in saved.items()})
    assert found == ([], []) and model.get_parameter("head.kernel").requires_grad
    close(model.variables(), variables, 0)
    with pytest.raises(RuntimeError, match=r"Error\(s\) in loading state_dict for Net:\n\t"
                       r'Unexpected key\(s\) in state_dict: "extra". \n\tMissing key'):  # fmt: skip
        model.load_state_dict({"extra": torch.ones(1)})
    assert model.load_state_dict({}, strict=False).missing_keys == list(saved)
    with pytest.raises(RuntimeError, match=r"size mismatch for head.bias: copying a param with"
                       r" shape torch.Size\(\[4\]\) from checkpoint, the shape in"):  # fmt: skip
        model.load_state_dict({"head.bias": np.ones(4)}, strict=False)


def test_wrong_arguments_are_errors() -> None:
    module, variables = net()
    with pytest.raises(TypeError, match=r"must be a linen module, got `dict`; .*adapters.nnx"):
        Model(variables, variables)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"what `module.init` returns.*'bn'.*Wrap bare"):
        Model(module, variables["params"])
    model = Model(module, variables)
    with pytest.raises(AttributeError, match="no part or method `haed`; the nearest parts are `he"):
        model.haed  # noqa: B018
    with pytest.raises(AttributeError, match="no parameter `head.b`; the nearest are `head.bias`"):
        model.get_parameter("head.b")
    with pytest.raises(AttributeError, match="`first` is made inside a compact `__call__`"):
        Model(*compact()).first(torch.ones(1, 3))


def test_a_call_that_makes_new_variables_says_which() -> None:
    class Growing(nn.Module):
        @nn.compact
        def __call__(self, x: Any, more: bool) -> Any:
            self.variable("cache", "one", lambda: jnp.zeros(2))
            if more:
                self.variable("cache", "two", lambda: jnp.zeros(2))
            return x

    variables = Growing().init(jax.random.key(0), jnp.ones(2), False)
    model = Model(Growing(), {"params": {}, **variables})
    with pytest.raises(ValueError, match="makes a variable `cache.two`, which the model's"):
        model(torch.ones(2), True)


def test_a_call_under_no_grad_has_no_graph() -> None:
    module, variables = net()
    model = Model(module, variables).eval()
    with torch.no_grad():
        out = model(torch.from_numpy(IMAGES))
    assert out.grad_fn is None
    close(out.numpy(), module.apply(variables, IMAGES, False), 1e-5)


class Dropping(nn.Module):
    """Dropout in a part with parameters, and one outside of all."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        class Part(nn.Module):
            @nn.compact
            def __call__(self, x: jax.Array) -> jax.Array:
                return nn.Dropout(0.5, deterministic=not train)(nn.Dense(64, name="a")(x))

        x = Part(name="back")(x)
        return nn.Dense(64, name="head")(nn.Dropout(0.5, deterministic=not train, name="d")(x))


@pytest.mark.exhaustive
def test_dropout_of_a_frozen_part_stops_with_its_statistics() -> None:
    x = jnp.ones((1, 4))
    model = Model(Dropping(), Dropping().init({"params": jax.random.key(0)}, x, train=False))

    def zeros(name: str) -> bool:
        with model.watch(name, grad=False) as seen:
            model(torch.from_numpy(np.ones((1, 4), "float32")))
        return bool((seen[name] == 0).any())

    assert zeros("back") and zeros("d")
    model.freeze("back")
    assert zeros("back"), "as in PyTorch, unless told"
    model.freeze("back", stats=True)
    assert not zeros("back") and zeros("d")
    model.eval().train()
    assert not zeros("back") and zeros("d")
    model.unfreeze("back.a.bias")
    assert zeros("back")
    model.freeze(stats=True)
    assert not zeros("d")


def test_a_module_runs_once_for_a_training_step() -> None:
    runs = []

    class Counting(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            runs.append(x.shape)
            return nn.Dense(3)(x)

    model = Model.from_batch(Counting(), torch.ones(2, 4))
    runs.clear()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    assert runs == [(2, 4)]


def test_assignments_are_refused_with_what_does() -> None:
    model = Model(*net())
    with pytest.raises(AttributeError, match=r"(?s)`Net.head` cannot be assigned.*from_batch"):
        model.head = nn.Dense(5)
    with pytest.raises(AttributeError, match=r"call `model.train\(\)` or `model.eval\(\)`"):
        model.training = False
    with pytest.raises(AttributeError, match=r"get_parameter\('kernel'\).data = value"):
        model.head.kernel = torch.ones(4, 3)
    with pytest.raises(AttributeError, match=r"`Net.stem.other` cannot be assigned"):
        model.stem.other = 1


def test_parts_are_completed() -> None:
    model = Model(*net())
    assert {"stem", "bn", "head", "freeze"} <= set(dir(model))
    assert {"kernel", "bias", "freeze"} <= set(dir(model.head))


class Failing(nn.Module):
    """Adds what does not fit, if it is told so."""

    fails: bool = True

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        y: jax.Array = nn.Dense(3, name="dense")(x)
        return y + jnp.ones(7) if self.fails else y


class Outer(nn.Module):
    fails: bool = True

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        return Failing(self.fails, name="inner")(x)


def test_an_error_inside_names_the_module_and_the_line() -> None:
    variables = Outer(False).init(jax.random.key(0), jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="Incompatible shapes") as caught:
        Model(Outer(), variables)(torch.ones(2, 3))
    (note,) = [n for n in caught.value.__notes__ if n.startswith("raised in")]
    line = int(note.rpartition(":")[2])
    assert note == f"raised in `inner` (Failing) of the model, at {__file__}:{line}"
    with open(__file__) as source:
        assert "jnp.ones(7)" in source.read().splitlines()[line - 1]
    last = caught.traceback[-1]
    assert (str(last.path), last.lineno + 1) == (__file__, line)
