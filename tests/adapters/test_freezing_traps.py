"""Silent mistakes of today's freezing recipes, which leafax does not make: docs/freezing.md.

Each trap is a property that must hold. It fails on the plain recipe and holds on leafax, with the
same module, data and optimizer; both are asserted, so the proof keeps running.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx

import leafax as torch
from leafax.adapters import linen
from leafax.adapters import nnx as nnx_models

RNG = np.random.default_rng(0)
X = RNG.normal(size=(16, 4)).astype("float32")
Y = RNG.normal(size=(16, 2)).astype("float32")
LR = 0.05


class Net(nn.Module):
    """A pretrained part with BatchNorm, and a head."""

    @nn.compact
    def __call__(self, x: Any, train: bool = True) -> Any:
        x = nn.Dense(8, name="backbone")(x)
        x = nn.tanh(nn.BatchNorm(not train, name="bn")(x))
        return nn.Dense(2, name="head")(x)


def variables() -> Any:
    return Net().init(jax.random.key(0), X)


class Run(NamedTuple):
    """The results of a run of a recipe.

    Attributes:
      before, after: the variables.
      state: numbers in the optimizer's state.
      norms: what was logged as the norm of the gradients.
      updates: how far the head moved in each step.
    """

    before: Any
    after: Any
    state: int
    norms: list[float]
    moved: list[float]
    losses: list[float]


MASK = {"backbone": False, "bn": False, "head": True}


def loss_of(params: Any, stats: Any, scale: float) -> Any:
    out, new = Net().apply({"params": params, **stats}, X, mutable=["batch_stats"])
    return scale * ((out - Y) ** 2).mean(), new


def plain(
    tx: Any,
    steps: int = 3,
    scale: float = 1.0,
    switch: Callable[[int, Any, Any], Any] | None = None,
) -> Run:
    """The loop of every tutorial: differentiate all, let the transformation freeze."""
    before = variables()
    params, stats = before["params"], {"batch_stats": before["batch_stats"]}
    state = tx.init(params)
    norms, moved, losses = [], [], []
    gradient = jax.jit(jax.value_and_grad(loss_of, has_aux=True), static_argnums=2)
    for i in range(steps):
        if switch is not None:
            tx, state = switch(i, params, (tx, state))
        (loss, stats), grads = gradient(params, stats, scale)
        norms.append(float(optax.tree.norm(grads)))
        updates, state = tx.update(grads, state, params)
        moved.append(float(optax.tree.norm(updates["head"])))
        params = optax.apply_updates(params, updates)
        losses.append(float(loss))
    held = sum(x.size for x in jax.tree.leaves(state))
    return Run(before, {"params": params, **stats}, held, norms, moved, losses)


def ours(
    make: Callable[[Any], Any], steps: int = 3, scale: float = 1.0, stats: bool = True,
    clip: float | None = None, switch: Callable[[int, Any], None] | None = None,
) -> Run:  # fmt: skip
    """The same with leafax: freeze, and the loop of PyTorch."""
    model = linen.Model(Net(), variables())
    before = jax.tree.map(np.array, model.variables())
    model.freeze("backbone", "bn", stats=stats)
    optimizer = make(model.parameters())
    norms, moved, losses = [], [], []
    for i in range(steps):
        if switch is not None:
            switch(i, model)
        held = {n: p.detach().numpy().copy() for n, p in model.head.named_parameters()}
        optimizer.zero_grad()
        loss = scale * ((model(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean()
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), clip or 1e30).item())
        optimizer.step()
        pairs = [(p.detach().numpy(), held[n]) for n, p in model.head.named_parameters()]
        moved.append(float(np.sqrt(sum(((a - b) ** 2).sum() for a, b in pairs))))
        losses.append(loss.item())
    state = optimizer.state_dict()["state"].values()
    tensors = [t for h in state for t in (h.values() if isinstance(h, dict) else [h])]
    return Run(before, model.variables(), sum(t.numel() for t in tensors), norms, moved, losses)


def moved_frozen(run: Run) -> bool:
    pairs = zip(
        jax.tree.leaves({k: run.before["params"][k] for k in ("backbone", "bn")}),
        jax.tree.leaves({k: run.after["params"][k] for k in ("backbone", "bn")}),
        strict=True,
    )
    return any(not np.array_equal(a, b) for a, b in pairs)


def adamw(p: Any) -> Any:
    return torch.optim.AdamW(p, lr=LR, weight_decay=0.5)


def sgd(p: Any) -> Any:
    return torch.optim.SGD(p, lr=LR)


FROZEN = jax.tree.map(lambda t: not t, MASK)


class Trap(NamedTuple):
    """A property, the plain recipe that lacks it, and leafax's."""

    holds: Callable[[Run], bool]
    plain: Callable[[], Run]
    ours: Callable[[], Run]


TRAPS: dict[str, Trap] = {
    "a bare optax.masked climbs": Trap(
        lambda run: not moved_frozen(run),
        lambda: plain(optax.masked(optax.sgd(LR), MASK)),
        lambda: ours(sgd),
    ),
    "set_to_zero before adamw decays": Trap(
        lambda run: not moved_frozen(run),
        lambda: plain(
            optax.chain(
                optax.masked(optax.set_to_zero(), FROZEN), optax.adamw(LR, weight_decay=0.5)
            )
        ),
        lambda: ours(adamw),
    ),
    "zeroed gradients keep optimizer state": Trap(
        lambda run: run.state <= 3 * 18 + 4,  # two moments of the head, and counts
        lambda: plain(optax.chain(optax.adam(LR), optax.masked(optax.set_to_zero(), FROZEN))),
        lambda: ours(adamw),
    ),
    "the logged norm counts what is frozen": Trap(
        lambda run: bool(np.isclose(run.norms[0], head_norm(), rtol=1e-3)),
        lambda: plain(
            optax.partition({True: optax.sgd(LR), False: optax.set_to_zero()}, MASK)
        ),
        lambda: ours(sgd, stats=False),
    ),
    "a clip that counts frozen gradients clips the rest too much": Trap(
        lambda run: bool(np.isclose(run.moved[0], LR * 1.0, rtol=1e-3)),
        lambda: plain(
            optax.chain(
                optax.clip_by_global_norm(1.0), optax.sgd(LR),
                optax.masked(optax.set_to_zero(), FROZEN),
            ),
            scale=100.0,
        ),
        lambda: ours(sgd, scale=100.0, clip=1.0, stats=False),
    ),
    "the statistics of a frozen BatchNorm move": Trap(
        lambda run: jax.tree.all(
            jax.tree.map(np.array_equal, run.before["batch_stats"], run.after["batch_stats"])
        ),
        lambda: plain(optax.partition({True: optax.sgd(LR), False: optax.set_to_zero()}, MASK)),
        lambda: ours(sgd),
    ),
}  # fmt: skip


@functools.cache
def head_norm() -> float:
    """The norm of the head's gradients alone, by the batch's statistics."""
    v = variables()

    def of_head(head: Any) -> Any:
        return loss_of({**v["params"], "head": head}, {"batch_stats": v["batch_stats"]}, 1.0)[0]

    return float(optax.tree.norm(jax.grad(of_head)(v["params"]["head"])))


@pytest.mark.parametrize("name", TRAPS)
def test_the_plain_recipe_falls_into_it_and_leafax_does_not(name: str) -> None:
    trap = TRAPS[name]
    assert not trap.holds(trap.plain()), "the plain recipe has it no more: see the docs"
    assert trap.holds(trap.ours())


def carried(steps: int, thaw: int) -> list[float]:
    """Losses where the head's Adam state is carried and the thawed part's is fresh."""
    v = variables()
    params, stats = v["params"], {"batch_stats": v["batch_stats"]}
    tx, states, losses = optax.adam(LR), {}, []
    for i in range(steps):
        names = ["head"] if i < thaw else ["head", "backbone"]
        some = {n: params[n] for n in names}
        gradient = jax.value_and_grad(
            lambda s: loss_of({**params, **s}, stats, 1.0), has_aux=True  # noqa: B023
        )  # fmt: skip
        (loss, stats), grads = gradient(some)
        for n in names:
            state = states.get(n) or tx.init(params[n])
            updates, states[n] = tx.update(grads[n], state, params[n])
            params = {**params, n: optax.apply_updates(params[n], updates)}
        losses.append(float(loss))
    return losses


@pytest.mark.exhaustive
def test_thawing_resets_or_corrupts_the_optimizer() -> None:
    """A new `init` forgets the head's moments; one that is made for all from the start has an old
    step count for the thawed part's fresh moments."""
    wanted = carried(8, 4)
    both = {"backbone": True, "bn": False, "head": True}

    def partitioned(mask: Any) -> Any:
        return optax.partition({True: optax.adam(LR), False: optax.set_to_zero()}, mask)

    def begin_anew(i: int, params: Any, now: Any) -> Any:
        return (partitioned(both), partitioned(both).init(params)) if i == 4 else now

    def zero_until_thawed(i: int, params: Any, now: Any) -> Any:
        # The popular one: Adam for all, and updates set to zero while they are frozen.
        mask = jax.tree.map(lambda t: not t, both if i >= 4 else MASK)
        tx = optax.chain(optax.masked(optax.set_to_zero(), mask), optax.adam(LR))
        return tx, (optax.masked(optax.set_to_zero(), mask).init(params), now[1][1])

    start = optax.chain(optax.masked(optax.set_to_zero(), FROZEN), optax.adam(LR))
    for tx, switch in ((partitioned(MASK), begin_anew), (start, zero_until_thawed)):
        assert not np.allclose(plain(tx, 8, switch=switch).losses, wanted, rtol=1e-4)

    def thaw(i: int, model: Any) -> None:
        if i == 4:
            model.unfreeze("backbone")

    for make in (
        lambda p: torch.optim.Adam(p, lr=LR), lambda p: torch.optim.Optax(p, optax.adam(LR)),
    ):  # fmt: skip
        run = ours(make, 8, stats=False, switch=thaw)
        np.testing.assert_allclose(run.losses, wanted, rtol=1e-4)


def test_a_misspelt_pattern_freezes_nothing_without_a_word() -> None:
    mask = jax.tree_util.tree_map_with_path(
        lambda path, _: "bakcbone" not in jax.tree_util.keystr(path), variables()["params"]
    )
    assert all(jax.tree.leaves(mask)), "all of it trains, and nobody says so"
    with pytest.raises(ValueError, match="pattern `bakcbone` matches none .* are `backbone`"):
        linen.Model(Net(), variables()).freeze("bakcbone")


def test_an_nnx_optimizer_never_hears_of_a_thaw() -> None:
    class Small(nnx.Module):
        def __init__(self) -> None:
            self.back = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
            self.head = nnx.Linear(4, 2, rngs=nnx.Rngs(1))
            self.frozen = True

        def __call__(self, x: Any) -> Any:
            return self.head(self.back(x))

    def wrt(path: Any, value: Any) -> bool:
        return isinstance(value, nnx.Param) and not ("back" in path and module.frozen)

    module = Small()
    before = np.array(module.back.kernel)
    optimizer = nnx.Optimizer(module, optax.adam(LR), wrt=wrt)
    module.frozen = False  # thawed
    with pytest.raises(Exception):  # noqa: B017, PT011  # its state has no place for the thawed
        grads = nnx.grad(lambda m: (m(X) ** 2).mean(), argnums=nnx.DiffState(0, wrt))(module)
        optimizer.update(module, grads)

    model = nnx_models.Model(Small()).freeze("back")
    adam = torch.optim.Adam(model.parameters(), lr=LR)
    for _ in range(2):
        adam.zero_grad()
        (model(torch.from_numpy(X)) ** 2).mean().backward()
        adam.step()
        model.unfreeze("back")
    assert not np.array_equal(model.get_parameter("back.kernel").detach().numpy(), before)


def test_an_average_of_everything_holds_what_never_changes() -> None:
    params = variables()["params"]
    everything = sum(x.size for x in jax.tree.leaves(optax.ema(0.9).init(params).ema))
    model = linen.Model(Net(), variables()).freeze("backbone", "bn")
    average = torch.optim.swa_utils.AveragedModel(model)
    trained = sum(p.numel() for p in average.parameters())
    assert (trained, everything) == (18, 18 + 40 + 16)


def test_frozen_gradients_are_computed_where_they_are_zeroed() -> None:
    """The compiled backward pass: with zeroed updates the backbone's kernel gradient is in it."""
    tx = optax.chain(optax.adam(LR), optax.masked(optax.set_to_zero(), FROZEN))
    v = variables()
    state = tx.init(v["params"])

    def step(params: Any, state: Any) -> Any:
        stats = {"batch_stats": v["batch_stats"]}
        grads = jax.grad(lambda p: loss_of(p, stats, 1.0)[0])(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    flops: Any = jax.jit(step).lower(v["params"], state).compile().cost_analysis()
    model = linen.Model(Net(), v).freeze("backbone", "bn")
    loss = ((model(torch.from_numpy(X)) - torch.from_numpy(Y)) ** 2).mean()
    loss.backward()
    head = list(model.head.parameters())
    program = torch.functional.lower([loss, *(p.grad for p in head)], [*model.parameters()])
    assert program.cost()["flops"] < 0.7 * flops["flops"]
    assert jnp.isfinite(loss.item())
