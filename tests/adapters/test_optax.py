"""Optax's masking traps, that `check` finds each of them, and that `freeze` has none."""

import pickle
import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from leafax.adapters.optax import Finding, FreezeError, check, diagnose, freeze
from leafax.functional import grad, invert, partition, paths, select

Tree = Any
LR = 0.1


def parameters() -> Tree:
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), "float32")

    return {"backbone": [{"kernel": draw(4, 4), "bias": draw(4)}], "head": {"kernel": draw(4, 2)}}


MASK = {"backbone": False, "head": True}
FULL = select(parameters(), MASK)
FROZEN = invert(FULL)
NAMES = ("backbone.0.bias", "backbone.0.kernel")


def loss(params: Tree, x: jax.Array) -> Any:
    layer = params["backbone"][0]
    hidden = jnp.tanh(x @ layer["kernel"] + layer["bias"])
    return ((hidden @ params["head"]["kernel"] - 1) ** 2).sum()


X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), "float32")


def train(tx: Any, steps: int = 5, gradient: Callable[..., Tree] | None = None) -> Tree:
    gradient = gradient or jax.grad(loss)
    params = parameters()
    state = tx.init(params)
    for _ in range(steps):
        updates, state = tx.update(gradient(params, X), state, params)
        params = optax.apply_updates(params, updates)
    return params


def train_head_alone(tx: Any, steps: int = 5) -> Tree:
    params = parameters()
    state = tx.init(params["head"])
    for _ in range(steps):
        gradient = jax.grad(lambda head: loss({**params, "head": head}, X))(params["head"])  # noqa: B023
        updates, state = tx.update(gradient, state, params["head"])
        params = {**params, "head": optax.apply_updates(params["head"], updates)}
    return params


def kinds(tx: Any, params: Tree = None) -> list[str]:
    return [f.kind for f in diagnose(tx, parameters() if params is None else params, MASK)]


def assert_equal(a: Tree, b: Tree, **tolerance: float) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **{"rtol": 1e-6, **tolerance})  # type: ignore[call-overload]


# --- the traps, on the plain recipes ---


@pytest.mark.exhaustive
def test_bare_masked_climbs() -> None:
    tx = optax.masked(optax.sgd(LR), FULL)
    before, after = parameters(), train(tx, steps=1)
    gradient = jax.grad(loss)(before, X)
    assert_equal(after["backbone"], optax.apply_updates(before["backbone"], gradient["backbone"]))
    assert kinds(tx) == ["raw"]


def test_set_to_zero_before_adamw_decays() -> None:
    tx = optax.chain(
        optax.masked(optax.set_to_zero(), FROZEN), optax.adamw(LR, weight_decay=0.5)
    )  # fmt: skip
    before, after = parameters(), train(tx, steps=1)
    shrunk = jax.tree.map(lambda p: p * (1 - LR * 0.5), before["backbone"])
    assert_equal(after["backbone"], shrunk)
    assert kinds(tx) == ["decay", "state"]


def test_clip_that_counts_frozen_gradients_over_clips() -> None:
    def steep(params: Tree, x: jax.Array) -> Tree:
        gradient = jax.grad(loss)(params, x)
        return {**gradient, "backbone": jax.tree.map(lambda g: 1e4 * g, gradient["backbone"])}

    clip = optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(LR))
    plain = optax.chain(clip, optax.masked(optax.set_to_zero(), FROZEN))

    def moved(tx: Any) -> float:
        before, after = parameters()["head"]["kernel"], train(tx, 1, steep)["head"]["kernel"]
        return float(jnp.abs(after - before).max())

    assert moved(plain) < 1e-3 * moved(freeze(clip, MASK))
    assert moved(freeze(clip, MASK)) > 1e-3
    assert kinds(plain) == ["norm"]


def test_the_popular_recipe_is_right_but_holds_state() -> None:
    tx = optax.chain(optax.adam(LR), optax.masked(optax.set_to_zero(), FROZEN))
    assert kinds(tx) == ["state"]
    check(tx, parameters(), MASK)


@pytest.mark.quick(4)
@pytest.mark.parametrize(
    ("tx", "expected"),
    [
        (optax.sgd(LR), ["trained"]),
        (optax.adamw(LR), ["decay", "trained", "state"]),
        (optax.chain(optax.clip(1.0), optax.masked(optax.adam(LR), FULL)), ["trained"]),
        (optax.chain(optax.clip_by_global_norm(1.0), optax.masked(optax.adam(LR), FULL)),
         ["raw", "norm"]),
        (optax.chain(optax.clip_by_global_norm(1.0), freeze(optax.adam(LR), MASK)), ["norm"]),
        (optax.chain(freeze(optax.adam(LR), MASK), optax.add_decayed_weights(0.1)), ["decay"]),
        (optax.partition({"t": optax.adamw(LR), "f": optax.set_to_zero()},
                         jax.tree.map(lambda yes: "t" if yes else "f", FULL)), []),
        (freeze(optax.adamw(LR), MASK), []),
        (optax.masked(optax.sgd(optax.linear_schedule(0.0, LR, 10)), FULL), ["raw"]),
        (optax.sgd(optax.linear_schedule(0.0, LR, 10)), ["trained"]),
        (optax.MultiSteps(optax.masked(optax.sgd(LR), FULL), 3).gradient_transformation(),
         ["trained", "state"]),
        (optax.MultiSteps(freeze(optax.adamw(LR), MASK), 3).gradient_transformation(), ["state"]),
    ],
)  # fmt: skip
def test_diagnose(tx: Any, expected: list[str]) -> None:
    assert kinds(tx) == expected


def test_diagnose_takes_shapes_and_any_dtype() -> None:
    tx = optax.masked(optax.adam(LR), MASK)
    assert kinds(tx, jax.eval_shape(parameters)) == ["raw"]
    half = jax.tree.map(lambda p: p.astype("bfloat16"), parameters())
    assert kinds(tx, half) == ["raw"]
    assert kinds(freeze(optax.adamw(LR), MASK), half) == []
    counted = {**parameters(), "backbone": {"steps": jnp.int32(3), "w": jnp.ones(2)}}
    assert kinds(tx, counted) == ["raw"]
    assert kinds(freeze(optax.adamw(LR), MASK), counted) == []


def test_nothing_frozen_is_nothing_to_find() -> None:
    assert diagnose(optax.adamw(LR), parameters(), True) == []


def test_check_says_which_leaves_move_why_and_what_to_do() -> None:
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.masked(optax.adamw(LR), FULL))
    with pytest.raises(FreezeError) as caught:
        check(tx, parameters(), MASK)
    assert [finding.kind for finding in caught.value.findings] == ["raw", "norm"]
    assert all(finding.paths == NAMES for finding in caught.value.findings)
    assert str(caught.value) == (
        "the optimizer does not keep to the mask:\n"
        "- these frozen leaves climb, since their own gradients come out as their updates: "
        "`backbone.0.bias`, `backbone.0.kernel`. A bare `optax.masked` passes through what it "
        "leaves out. Wrap the whole optimizer: `leafax.adapters.optax.freeze(tx, mask)`\n"
        "- the updates of trainable leaves depend on the gradients of frozen ones: "
        "`backbone.0.bias`, `backbone.0.kernel`. A norm (`optax.clip_by_global_norm`) counts them, "
        "so that the rest is clipped too much. "
        "Wrap the whole optimizer: `leafax.adapters.optax.freeze(tx, mask)`"
    )


@pytest.mark.parametrize(
    ("tx", "message"),
    [
        (optax.chain(optax.masked(optax.set_to_zero(), FROZEN), optax.adamw(LR)),
         "these frozen leaves move although every gradient is zero: `backbone.0.bias`, "
         "`backbone.0.kernel`. Weight decay (or noise) comes after their gradients were set to "
         "zero, or does not know the mask. Wrap the whole optimizer"),
        (optax.sgd(LR), "these frozen leaves are updated as if they were trainable: `backbone.0.b"),
    ],
)  # fmt: skip
def test_check_messages(tx: Any, message: str) -> None:
    with pytest.raises(FreezeError, match=re.escape(message)):
        check(tx, parameters(), MASK)


def test_errors_are_pickled() -> None:
    finding = Finding("raw", ("w",), "w climbs")
    error = pickle.loads(pickle.dumps(FreezeError([finding])))
    assert error.findings == [finding] and finding.message in str(error)


def test_long_lists_are_cut() -> None:
    params = {"frozen": [jnp.ones(2)] * 8, "head": jnp.ones(2)}
    with pytest.raises(FreezeError, match=r"`frozen\.4` and 3 more\. "):
        check(optax.sgd(LR), params, "head")


# --- freeze ---

OPTIMIZERS: dict[str, Any] = {
    "sgd": optax.sgd(LR, momentum=0.9, nesterov=True),
    "adam": optax.adam(LR),
    "adamw": optax.adamw(LR, weight_decay=0.5),
    "lion": optax.lion(LR, weight_decay=0.5),
    "lamb": optax.lamb(LR, weight_decay=0.5),
    "adafactor": optax.adafactor(LR, weight_decay_rate=0.1),
    "clip, adamw": optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(LR)),
    "adam, clip": optax.chain(optax.adam(LR), optax.clip_by_global_norm(0.01)),
    "decay first": optax.chain(optax.add_decayed_weights(0.5), optax.clip_by_global_norm(0.1),
                               optax.sgd(LR)),
    "schedule": optax.adamw(optax.linear_schedule(0.0, LR, 3)),
    "hyperparameters": optax.inject_hyperparams(optax.adamw)(learning_rate=LR),
}  # fmt: skip


@pytest.mark.quick(7)
@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("gradient", ["of all", "of the head"])
def test_freeze_is_training_the_head_alone(name: str, gradient: str) -> None:
    tx = OPTIMIZERS[name]
    fn = grad(loss, MASK) if gradient == "of the head" else jax.grad(loss)
    assert_equal(train(freeze(tx, MASK), gradient=fn), train_head_alone(tx), rtol=1e-5)
    assert diagnose(freeze(tx, MASK), parameters(), MASK) == []


@pytest.mark.parametrize(
    "mask", [MASK, FULL, "head", ["head.*"], re.compile("^head"), lambda path, leaf: "head" in path]
)
def test_freeze_takes_every_kind_of_mask(mask: Any) -> None:
    tx = freeze(optax.adamw(LR), mask)
    state = tx.init(parameters())
    assert sum(x.size for x in jax.tree.leaves(state)) == 2 * 8 + 1
    assert_equal(train(tx), train_head_alone(optax.adamw(LR)))
    check(tx, parameters(), mask)


def test_freeze_without_parameters() -> None:
    tx = freeze(optax.sgd(LR), "head")
    state = tx.init(parameters())
    gradient = jax.grad(loss)(parameters(), X)
    expected, _ = tx.update(gradient, state, parameters())
    assert_equal(tx.update(gradient, state)[0], expected)
    pruned, _ = tx.update(partition(gradient, MASK)[0], state)
    assert_equal(optax.apply_updates(parameters(), pruned), train(tx, steps=1))


def test_freeze_keeps_dtypes_and_structure() -> None:
    params = {"a": jnp.ones(2, "bfloat16"), "n": jnp.int32(1), "none": None, "head": jnp.ones(2)}
    tx = freeze(optax.adamw(LR), "head")
    updates, _ = tx.update(params, tx.init(params), params)
    assert jax.tree.map(lambda x: x.dtype, updates) == jax.tree.map(lambda x: x.dtype, params)
    assert paths(updates) == paths(params)


def test_freeze_passes_extra_arguments() -> None:
    plateau = optax.chain(optax.sgd(LR), optax.contrib.reduce_on_plateau(patience=1))
    tx = freeze(plateau, MASK)
    params = parameters()
    updates, _ = tx.update(params, tx.init(params), params, value=jnp.float32(1))
    assert_equal(updates["head"], jax.tree.map(lambda g: -LR * g, params["head"]))


def test_freeze_in_nnx_state() -> None:
    class Net(nnx.Module):
        def __init__(self) -> None:
            self.body = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
            self.head = nnx.Linear(2, 2, rngs=nnx.Rngs(1))

    params = nnx.state(Net(), nnx.Param)
    tx = freeze(optax.adamw(LR), "head")
    updates, _ = tx.update(params, tx.init(params), params)
    assert not np.any(updates["body"]["kernel"][...])
    assert np.all(updates["head"]["kernel"][...])
    assert kinds(optax.masked(optax.sgd(LR), select(parameters(), MASK))) == ["raw"]
    check(tx, params, "head")


def test_a_step_compiles_once_and_frozen_gradients_are_not_computed() -> None:
    tx = freeze(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(LR)), MASK)
    traces = 0

    def step(params: Tree, state: Tree, gradient: Callable[..., Tree]) -> Tree:
        nonlocal traces
        traces += 1
        updates, state = tx.update(gradient(params, X), state, params)
        return optax.apply_updates(params, updates), state

    jitted = jax.jit(step, static_argnums=2)
    params, state = parameters(), tx.init(parameters())
    flops = []
    for fn in (grad(loss, MASK), jax.grad(loss)):
        traces = 0
        for _ in range(3):
            params, state = jitted(params, state, fn)
        assert traces == 1
        analysis: Any = jitted.lower(params, state, fn).compile().cost_analysis()
        flops.append(analysis["flops"])
    # XLA drops what only frozen leaves would have used: both steps cost the same.
    assert flops[0] == flops[1]


def test_freeze_messages() -> None:
    params = parameters()
    with pytest.raises(ValueError, match="pattern `hed` matches none of the 3 paths"):
        freeze(optax.sgd(LR), "hed").init(params)
    tx = freeze(optax.sgd(LR), MASK)
    with pytest.raises(ValueError, match=re.escape(
        "no gradient for the trainable leaf `head.kernel` (1 in all): differentiate with the mask "
        "that is given to `freeze`, or leave it out of the mask"
    )):  # fmt: skip
        tx.update(grad(loss, "backbone")(params, X), tx.init(params), params)
