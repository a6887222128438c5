"""`leafax.compile`: programs give the same with it and without, and are replayed where possible."""

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import leafax
import leafax.nn.functional as F
from leafax import nn

Compile = Callable[[Any], Any]


class Shown(NamedTuple):
    """Results of a program, its state at the end, and the function that it called."""

    results: Any
    state: Any
    fn: Any


def batches(n: int = 10, size: int = 4) -> list[tuple[leafax.Tensor, leafax.Tensor]]:
    rng = np.random.default_rng(0)
    return [
        (
            leafax.from_numpy(rng.normal(size=(size, 8)).astype("f")),
            leafax.from_numpy(rng.integers(0, 3, size)),
        )
        for _ in range(n)
    ]


def make_small_net() -> nn.Module:
    leafax.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 4), nn.Tanh(), nn.Identity(), nn.Dropout(0.1), nn.Linear(4, 3)
    )


def make_net() -> nn.Module:
    """Make a network with buffers that its calls write to."""
    leafax.manual_seed(0)
    return nn.Sequential(
        nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 3)
    )


def sgd(model: nn.Module) -> leafax.optim.Optimizer:
    return leafax.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def adamw(model: nn.Module) -> leafax.optim.Optimizer:
    return leafax.optim.AdamW(model.parameters(), lr=0.01)


def state_of(model: nn.Module) -> dict[str, Any]:
    return {name: value.numpy() for name, value in model.state_dict().items()}


def make_step(
    model: Any, optimizer: Any, inside: Callable[[], object] = lambda: None
) -> Callable[[Any, Any], Any]:
    """Return a training step that calls `inside` before the update."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        inside()
        optimizer.step()
        return loss.detach()

    return step


def training(
    optimizer_of: Callable[[nn.Module], Any] = sgd,
    before: Callable[[int, Any, Any], object] = lambda i, model, optimizer: None,
    inside: Callable[[Any, Any], object] = lambda model, optimizer: None,
    n: int = 10,
    make: Callable[[], nn.Module] = make_small_net,
) -> Callable[[Compile], Shown]:
    """Return a program: a loop whose step is compiled; `before` runs before, `inside` in it."""

    def program(compiled: Compile) -> Shown:
        model = make()
        optimizer = optimizer_of(model)

        step = make_step(model, optimizer, lambda: inside(model, optimizer))
        fn, losses = compiled(step), []
        for i, (x, y) in enumerate(batches(n)):
            before(i, model, optimizer)
            losses.append(fn(x, y).item())
        return Shown(losses, state_of(model), fn)

    return program


def assert_same(a: Any, b: Any) -> None:
    """Compare nested results; what ran op by op and what was compiled differ in the last bits."""
    if isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for name in a:
            assert_same(a[name], b[name])
    elif isinstance(a, (float, np.ndarray)):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)
    else:
        assert a == b


def compare(program: Callable[[Compile], Shown]) -> tuple[Any, Any]:
    """Run a program plainly and compiled; return the compiled function and what ran."""
    leafax.explain(clear=True)
    plain = program(lambda fn: fn)
    leafax.explain(clear=True)
    compiled = program(leafax.compile)
    assert_same(plain.results, compiled.results)
    assert_same(plain.state, compiled.state)
    fn = compiled.fn
    return vars(fn).get("_compiled", fn), leafax.explain(clear=True)


def replays(fn: Any) -> int:
    return sum(len(known.replays) for known in fn._signatures.values())


@pytest.mark.parametrize("optimizer", [sgd, adamw])
def test_steps_run_straight_from_the_arguments(optimizer: Any) -> None:
    fn, ran = compare(training(optimizer, n=12, make=make_net))
    assert replays(fn) == 1 and not fn.reasons
    assert all(run.reason == "leafax.compile" for run in list(ran)[-12:])
    assert all(run.how == "cached" for run in list(ran)[-8:])


def thaw(i: int, model: Any, optimizer: Any) -> None:
    if i in (0, 5):
        model[0].requires_grad_(i == 5)


def set_data(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        model[0].weight.data = leafax.full((4, 8), 0.1)


def load(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        model.load_state_dict({k: v * 0.5 for k, v in model.state_dict().items()})
    if i == 7:
        optimizer.load_state_dict(optimizer.state_dict())


def evaluate_sometimes(i: int, model: Any, optimizer: Any) -> None:
    model.train(i % 3 != 2)


def hook(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        model[0].weight.register_hook(lambda g: g * 2)
    if i == 8:
        model[0].register_forward_hook(lambda module, args, out: out + 1)


def drop_more(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        model[3].p = 0.5


def schedule(i: int, model: Any, optimizer: Any) -> None:
    for group in optimizer.param_groups:
        group["lr"] *= 0.8
        group["momentum"] = 0.9 - 0.01 * i


def look_between(i: int, model: Any, optimizer: Any) -> None:
    if i % 2:
        model[0].weight.norm().item()
    if i % 3 == 0:
        model.pending = model[0].weight.norm()


def forget_gradients(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        for p in model.parameters():
            p.grad = None


def replace_layer(i: int, model: Any, optimizer: Any) -> None:
    if i == 5:
        leafax.manual_seed(1)
        model[4] = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3))
        optimizer.add_param_group({"params": list(model[4].parameters())})


@pytest.mark.parametrize(
    "before",
    [
        thaw, set_data, load, evaluate_sometimes, hook, drop_more, schedule, look_between,
        forget_gradients, replace_layer,
    ],
)  # fmt: skip
def test_nothing_that_changes_between_calls_is_missed(before: Any) -> None:
    fn, _ = compare(training(before=before, n=14))
    assert replays(fn) >= 1 or before is look_between


def test_a_view_that_is_held_sees_the_update() -> None:
    held: list[Any] = []

    def hold(i: int, model: Any, optimizer: Any) -> None:
        if i == 5:
            held.append(model[0].weight.detach())
        if i == 7:
            assert held.pop().equal(model[0].weight)

    compare(training(before=hold))


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.T.detach(),
        lambda x: x[1:].data,
        lambda x: nn.Buffer(x[0].expand(3, 3)),
    ],
)
def test_a_detached_view_that_outlived_its_base_is_read(make: Any) -> None:
    """It has all of the memory to itself, yet sees it in an order of its own."""
    view = make(leafax.arange(9.0).reshape(3, 3) * 2)
    want = view.numpy().copy()

    @leafax.compile
    def add(x: Any) -> Any:
        return x + view[:2]

    for k in range(4):
        np.testing.assert_array_equal(add(leafax.full((2, 3), float(k))).numpy(), want[:2] + k)
    view[0, 0] = -1.0
    want[:, 0] = view.numpy()[:, 0]
    np.testing.assert_array_equal(add(leafax.ones(2, 3)).numpy(), want[:2] + 1)


def test_a_learning_rate_that_changes_compiles_nothing() -> None:
    fn, ran = compare(training(before=schedule, n=14))
    assert replays(fn) == 1
    assert all(run.how == "cached" for run in list(ran)[-6:])


def test_gradients_are_clipped_inside() -> None:
    fn, _ = compare(
        training(inside=lambda model, opt: nn.utils.clip_grad_norm_(model.parameters(), 0.5))
    )
    assert replays(fn) == 1


def test_gradients_that_nobody_can_see_are_no_outputs() -> None:
    def program(compiled: Compile) -> Shown:
        model = make_net()
        optimizer = sgd(model)

        def step(x: Any, y: Any) -> dict[str, Any]:
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            return {"loss": loss.detach(), "n": 3}

        fn = compiled(step)
        told = [fn(x, y) for x, y in batches()]
        assert all(p.grad is None for p in model.parameters())
        return Shown([(t["loss"].item(), t["n"]) for t in told], state_of(model), fn)

    fn, ran = compare(program)
    assert replays(fn) == 1
    # The loss, parameters and their momenta, the norm's three statistics, the generator.
    assert ran[-1].outputs == 1 + 2 * 6 + 3 + 1


def test_gradients_accumulate_over_calls() -> None:
    def program(compiled: Compile) -> Shown:
        model = make_small_net()
        optimizer = sgd(model)

        def accumulate(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y) / 2
            loss.backward()
            return loss.detach()

        fn, losses = compiled(accumulate), []
        for i, (x, y) in enumerate(batches(16)):
            losses.append(fn(x, y).item())
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
        return Shown(losses, state_of(model), fn)

    fn, _ = compare(program)
    assert replays(fn) == 2  # without gradients before, and with


def test_each_shape_has_a_replay_of_its_own() -> None:
    def program(compiled: Compile) -> Shown:
        model = make_small_net()
        optimizer = sgd(model)
        data, labels = (leafax.cat(parts) for parts in zip(*batches(16), strict=True))

        fn, losses = compiled(make_step(model, optimizer)), []
        for i in range(0, 64, 4):  # views of the data, and some of it computed
            n = 3 if i % 16 == 12 else 4
            losses.append(fn(data[i : i + n] * 2, labels[i : i + n]).item())
        return Shown(losses, state_of(model), fn)

    fn, _ = compare(program)
    assert [len(known.replays) for known in fn._signatures.values()] == [1, 1]


def test_two_optimizers_in_one_step() -> None:
    def program(compiled: Compile) -> Shown:
        leafax.manual_seed(0)
        g, d = nn.Linear(4, 8), nn.Linear(8, 1)
        of_g = leafax.optim.Adam(g.parameters(), lr=0.01)
        of_d = leafax.optim.Adam(d.parameters(), lr=0.02)
        bce = F.binary_cross_entropy_with_logits

        def step(x: Any) -> tuple[Any, Any]:
            of_d.zero_grad()
            fake = g(leafax.randn(4, 4))
            real = bce(d(x), leafax.ones(4, 1))
            loss_d = real + bce(d(fake.detach()), leafax.zeros(4, 1))
            loss_d.backward()
            of_d.step()
            of_g.zero_grad()
            loss_g = bce(d(fake), leafax.ones(4, 1))
            loss_g.backward()
            of_g.step()
            return loss_d.detach(), loss_g.detach()

        fn = compiled(step)
        losses = [[loss.item() for loss in fn(x)] for x, _ in batches()]
        return Shown(losses, [state_of(g), state_of(d)], fn)

    fn, ran = compare(program)
    assert replays(fn) == 1 and ran[-1].reason == "leafax.compile"


def test_autocast_and_a_scaler_inside() -> None:
    def program(compiled: Compile) -> Shown:
        model = make_small_net()
        optimizer = sgd(model)
        scaler = leafax.amp.GradScaler("cpu", init_scale=8.0)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            with leafax.autocast("cpu", dtype=leafax.bfloat16):
                loss = F.cross_entropy(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            return loss.detach()

        fn = compiled(step)
        return Shown([fn(x, y).item() for x, y in batches()], scaler.get_scale(), fn)

    assert replays(compare(program)[0]) == 1


def test_optax_inside() -> None:
    optax = pytest.importorskip("optax")
    fn, _ = compare(
        training(lambda model: leafax.optim.Optax(list(model.parameters()), optax.adam(1e-2)))
    )
    assert replays(fn) == 1


# ---------------------------------------------------------------- calls that cannot be replayed


def counting() -> Callable[[Compile], Shown]:
    counts = {"n": 0}

    def count(model: Any, optimizer: Any) -> None:
        counts["n"] += 1

    return training(inside=count)


def appending() -> Callable[[Compile], Shown]:
    norms: list[Any] = []
    return training(inside=lambda model, optimizer: norms.append(model[0].weight.detach()))


def drawing() -> Callable[[Compile], Shown]:
    def scale(model: Any, optimizer: Any) -> None:
        model[0].weight.grad.mul_(random.random())

    def program(compiled: Compile) -> Shown:
        random.seed(0)
        return training(inside=scale)(compiled)

    return program


def looking() -> Callable[[Compile], Shown]:
    return training(inside=lambda model, optimizer: model[0].weight.grad.sum().item())


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (counting, "`counts['n']` was 14 and is 15"),
        (appending, "`norms[14]` is new"),
        (drawing, "it computes with a number of Python that changes: "),
        (looking, "a value was looked at by item() at "),
    ],
)
def test_a_reason_is_told_where_a_call_runs_plainly(made: Any, reason: str) -> None:
    fn, ran = compare(made())
    assert replays(fn) == 0
    assert [told.startswith(reason) for told in fn.reasons] == [True], fn.reasons
    assert f"leafax.compile: calls of `{fn.__qualname__}` cannot be replayed: {reason}" in str(ran)


def test_fullgraph_raises_instead() -> None:
    with pytest.raises(RuntimeError, match=r"cannot be replayed: a value was looked at by item"):
        looking()(lambda fn: leafax.compile(fn, fullgraph=True))


def test_numpy_arguments_run_plainly() -> None:
    fn = leafax.compile(lambda x: leafax.from_numpy(x) * 2)
    for i in range(4):
        assert fn(np.array([1.0 + i])).tolist() == [2.0 + 2 * i]
    assert fn.reasons == ["an argument is neither a tensor nor hashable: pass a tensor"]


def test_an_error_passes_and_the_next_call_works() -> None:
    flag = [False]

    @leafax.compile
    def fn(x: Any) -> Any:
        if x.shape[0] == 3:
            raise KeyError("three")
        return x * 2

    for n in (2, 2, 2, 3, 2):
        if n == 3:
            with pytest.raises(KeyError, match="three"):
                fn(leafax.ones(n))
        else:
            assert fn(leafax.ones(n)).tolist() == [2.0] * n
    assert not flag[0]


def test_labels_out_of_range_raise_at_the_next_look() -> None:
    table = leafax.ones(3, 2)
    fn = leafax.compile(lambda i: F.embedding(i, table).sum())
    for _ in range(3):
        assert fn(leafax.tensor([0, 2])).item() == 4
    assert replays(fn) == 1
    with pytest.raises(IndexError, match="out of range"):
        fn(leafax.tensor([0, 3])).item()
    assert fn(leafax.tensor([1, 2])).item() == 4


# ---------------------------------------------------------------- functions and models


def test_a_model_is_one_step_of_the_program_that_goes_on() -> None:
    def program(compiled: Compile) -> Shown:
        model = make_net()
        optimizer, fn, losses = sgd(model), compiled(model), []
        for i, (x, y) in enumerate(batches(12)):
            if i == 6:
                model[3].p = 0.3
            optimizer.zero_grad()
            loss = F.cross_entropy(fn(x * 2), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert loss.grad_fn.name() == "NllLossBackward0"
        return Shown(losses, state_of(model), fn)

    fn, ran = compare(program)
    assert replays(fn) == 2
    assert [run.reason for run in ran[-11:]] == ["optimizer.step()"] * 11


def test_a_model_that_is_called_twice_in_a_program() -> None:
    def program(compiled: Compile) -> Shown:
        leafax.manual_seed(0)
        model = nn.Linear(8, 8)
        optimizer, fn, losses = sgd(model), compiled(model), []
        for x, _ in batches(12):
            optimizer.zero_grad()
            loss = fn(fn(x)).square().mean() + fn(x[:2]).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return Shown(losses, state_of(model), fn)

    fn, _ = compare(program)
    assert replays(fn) == 3


def test_inference_is_replayed() -> None:
    def program(compiled: Compile) -> Shown:
        fn = compiled(make_net().eval())
        with leafax.no_grad():
            found = [fn(x).argmax(1).tolist() for x, _ in batches()]
        return Shown(found, None, fn)

    fn, _ = compare(program)
    assert replays(fn) == 1


def test_an_argument_is_written_to() -> None:
    def program(compiled: Compile) -> Shown:
        fn, x, seen = compiled(lambda x: x.add_(1)), leafax.zeros(3), []
        for _ in range(8):
            y = fn(x)
            seen.append((x.tolist(), y is x, x._version))
        return Shown(seen, None, fn)

    assert replays(compare(program)[0]) == 1


def test_one_tensor_in_two_places_is_another_signature() -> None:
    fn = leafax.compile(lambda x, y: x - y)
    a, b = leafax.ones(2), leafax.zeros(2)
    for _ in range(4):
        assert fn(a, a).tolist() == [0, 0]
    for _ in range(4):
        assert fn(a, b).tolist() == [1, 1]


def test_methods_compile_for_each_object() -> None:
    class Trainer:
        def __init__(self, scale: float) -> None:
            self.weight, self.scale = leafax.ones(2, requires_grad=True), scale

        @leafax.compile
        def loss(self, x: Any) -> Any:
            with leafax.no_grad():
                return (self.weight * x).sum() * self.scale

    one, two = Trainer(1.0), Trainer(2.0)
    for _ in range(4):
        assert one.loss(leafax.ones(2)).item() == 2.0
        assert two.loss(leafax.ones(2)).item() == 4.0
    one.scale = 3.0
    assert one.loss(leafax.ones(2)).item() == 6.0


def test_a_compiled_module_is_the_module_otherwise() -> None:
    model = make_net()
    compiled = leafax.compile(model)
    assert list(compiled.state_dict()) == [f"_orig_mod.{name}" for name in model.state_dict()]
    compiled.eval()
    assert not model.training
    compiled.note = 3
    assert model.note == 3 and len(compiled) == 5
    assert isinstance(compiled, leafax._dynamo.OptimizedModule)
    assert leafax.compile(compiled) is compiled
    x = leafax.ones(2, 8)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert other(x).equal(compiled(x)) and other._orig_mod is not model
    model.compile()
    assert model(x).equal(compiled(x))


def test_options_are_pytorchs() -> None:
    def fn(x: Any) -> Any:
        return x

    assert leafax.compile(fn, disable=True) is fn
    decorated = leafax.compile(mode="max-autotune", dynamic=True, backend="eager")(fn)
    assert decorated.__name__ == "fn"
    with pytest.raises(RuntimeError, match="Either mode or options can be specified, but both"):
        leafax.compile(fn, mode="default", options={})


def test_transforms_and_other_compiled_calls_see_through() -> None:
    inner = leafax.compile(lambda x: x * 2)
    outer = leafax.compile(lambda x: inner(x) + 1)
    for _ in range(4):
        assert outer(leafax.ones(2)).tolist() == [3, 3]
    assert leafax.func.vmap(inner)(leafax.ones(3, 2)).tolist() == [[2, 2]] * 3
    assert leafax.func.grad(lambda x: inner(x).sum())(leafax.ones(2)).tolist() == [2, 2]


# ---------------------------------------------------------------- checked and saved


def test_checked_calls_are_compared() -> None:
    plain = training()(lambda fn: fn)
    checked = training()(lambda fn: leafax.compile(fn, check=True))
    assert_same(plain.results, checked.results)
    assert_same(plain.state, checked.state)
    assert replays(checked.fn) == 1


def test_a_check_leaves_out_what_is_not_as_it_was() -> None:
    """A call is not compared with a replay for other gradients than there are."""
    weight = leafax.ones(2, requires_grad=True)

    def accumulate(x: Any) -> Any:
        loss = (weight * x).sum()
        loss.backward()
        return loss.detach()

    fn = leafax.compile(accumulate, check=True)
    for begins in (True, True, True, False, False, True):
        if begins:
            weight.grad = None
        before = 0.0 if weight.grad is None else weight.grad[0].item()
        assert fn(leafax.ones(2)).item() == 2
        assert weight.grad.tolist() == [before + 1] * 2


def test_a_check_finds_a_number_that_nobody_saw() -> None:
    hidden = np.array([2.0])  # what NumPy holds is not looked at
    fn = leafax.compile(lambda x: x * float(hidden[0]), check=True)
    for _ in range(3):
        assert fn(leafax.ones(2)).tolist() == [2, 2]
    hidden[0] = 3.0
    with pytest.raises(RuntimeError, match=r"`result 0` differs by up to 1 where `.*` is replayed"):
        fn(leafax.ones(2))


def test_a_saved_step_goes_on_without_its_python(tmp_path: Any) -> None:
    def program(compiled: Compile) -> Any:
        model = make_small_net()
        optimizer = adamw(model)

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return {"loss": loss.detach()}

        return model, compiled(step)

    data = batches(10)
    model, step = program(leafax.compile)
    for x, y in data[:6]:
        step(x, y)
    step.save(tmp_path / "step", *data[0])
    loaded = leafax.load_compiled(tmp_path / "step")
    for x, y in data[6:]:
        assert_same(loaded(x, y)["loss"].item(), step(x, y)["loss"].item())
    after = loaded.state_dict()
    assert_same(after["model.4.weight"].numpy(), model[4].weight.detach().numpy())


def test_what_cannot_be_saved_says_why(tmp_path: Any) -> None:
    model = leafax.compile(nn.Linear(2, 2))._compiled
    with pytest.raises(RuntimeError, match="`Linear` is not replayed for such arguments"):
        model.save(tmp_path / "model", leafax.ones(1, 2))
    writing = leafax.compile(lambda x: x.add_(1))
    for _ in range(3):
        writing(x := leafax.ones(2))
    with pytest.raises(TypeError, match="returns new tensors, and nothing else"):
        writing.save(tmp_path / "writing", x)
    (tmp_path / "other").write_text("no zip")
    with pytest.raises(ValueError, match="no file that a compiled call was saved in"):
        leafax.load_compiled(tmp_path / "other")


SCALE = 2.0
weight = leafax.ones(2)  # no part of what the function below reads


def scaled(x: Any, holder: Any) -> Any:
    return x * SCALE * holder.weight


def test_globals_are_read_and_attributes_of_their_names_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fn, holder = leafax.compile(scaled), nn.Module()
    holder.weight = leafax.full((2,), 3.0)
    for k in range(5):
        monkeypatch.setitem(globals(), "weight", leafax.full((2,), float(k)))
        assert fn(leafax.ones(2), holder).tolist() == [6, 6]
    assert replays(fn) == 1
    monkeypatch.setitem(globals(), "SCALE", 4.0)
    assert fn(leafax.ones(2), holder).tolist() == [12, 12]
    holder.weight = leafax.ones(2)
    assert fn(leafax.ones(2), holder).tolist() == [4, 4]


def test_code_can_ask_if_it_is_compiled() -> None:
    asked = []

    @leafax.compile
    def fn(x: Any) -> Any:
        asked.append(leafax.compiler.is_compiling())
        return x * 2

    fn(leafax.ones(2))
    assert asked == [True] and not leafax.compiler.is_compiling()


def test_a_flax_model_with_frozen_parts_inside() -> None:
    jax, linen = pytest.importorskip("jax"), pytest.importorskip("flax.linen")
    from leafax.adapters import linen as adapter

    class Net(linen.Module):  # type: ignore[name-defined,misc]
        @linen.compact
        def __call__(self, x: Any) -> Any:
            x = linen.BatchNorm(use_running_average=False)(linen.Dense(4)(x))
            return linen.Dense(3)(linen.Dropout(0.1, deterministic=False)(x))

    def program(compiled: Compile) -> Shown:
        leafax.manual_seed(0)
        keys = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
        model = adapter.Model(Net(), Net().init(keys, np.ones((4, 8), "f")))
        model.freeze("Dense_0.**")
        optimizer = leafax.optim.Adam(model.parameters(), lr=0.01)

        fn = compiled(make_step(model, optimizer))
        losses = [fn(x, y).item() for x, y in batches()]
        return Shown(losses, [p.detach().numpy() for p in model.parameters()], fn)

    fn, ran = compare(program)
    assert replays(fn) == 1 and ran.compiles <= 1


@pytest.mark.parametrize("whole", [True, False])
def test_an_nnx_model_inside_or_alone(whole: bool) -> None:
    nnx = pytest.importorskip("flax.nnx")
    from leafax.adapters import nnx as adapter

    class Net(nnx.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            rngs = nnx.Rngs(0)
            self.first, self.norm = nnx.Linear(8, 4, rngs=rngs), nnx.BatchNorm(4, rngs=rngs)
            self.drop, self.last = nnx.Dropout(0.1, rngs=rngs), nnx.Linear(4, 3, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.last(self.drop(self.norm(self.first(x))))

    def program(compiled: Compile) -> Shown:
        leafax.manual_seed(0)
        model = adapter.Model(Net())
        optimizer = leafax.optim.Adam(model.parameters(), lr=0.01)
        called = model if whole else compiled(model)

        step = make_step(called, optimizer)
        fn = compiled(step) if whole else step
        losses = [fn(x, y).item() for x, y in batches()]
        state = [p.detach().numpy() for p in model.parameters()]
        return Shown(losses, state, fn if whole else called)

    fn, ran = compare(program)
    assert replays(fn) == 1 and ran.compiles <= 1
