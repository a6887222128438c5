"""The costs of each way of freezing: EfficientNet-Lite0 with its weights and a new head.

    python benchmarks/freezing.py              # all recipes, writes benchmarks/freezing.md
    python benchmarks/freezing.py --rounds 10 best leafax

The recipes of docs/freezing.md, written by hand around one `jax.jit`, and leafax; each once as it
is and once with the norm of the gradients logged. All of them normalise by the pretrained
statistics, so that they compute the same losses. Memory is XLA's temporary memory of the compiled
step.

Recipes take turns (`turns.py`), those that compute the whole backward pass among themselves. What
is reported is the median over rounds of the ratio of two turns of one round, and its quartiles.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import handwritten as hand  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402
from models.efficientnet_lite import EfficientNetLite0, load_pretrained  # noqa: E402
from turns import ratios, take_turns  # noqa: E402

import leafax  # noqa: E402
import leafax.nn.functional as F  # noqa: E402
from leafax.adapters import linen  # noqa: E402

WARM = 3  # steps before all else: they compile
BATCHES = 8


@functools.cache
def batch(i: int) -> Any:
    """The batch of a step: made once, since that is no part of the step."""
    return hand.finetune_batch(i)


class Recipe(NamedTuple):
    """A training step to be measured.

    Attributes:
      run: takes the step's number, returns the loss once all is computed.
      memory: bytes of temporary memory; called last.
      state: bytes of optimizer state; called after a step.
    """

    name: str
    run: Callable[[int], float]
    memory: Callable[[], int]
    state: Callable[[], int]


def by_hand(name: str, transform: Any, *, head_only: bool = False, norm: bool = False) -> Recipe:
    """A hand-written step with this transformation.

    Args:
      transform: from the parameters to the optax transformation.
      head_only: differentiate only the head.
      norm: also return the norm of the gradients.
    """
    model, variables = hand._lite0(False)
    params, stats = variables["params"], variables["batch_stats"]
    given = {"classifier": params["classifier"]} if head_only else params
    frozen = {k: x for k, x in params.items() if head_only and k != "classifier"}
    tx = transform(given)

    def loss_of(given: Any, frozen: Any, stats: Any, batch: Any) -> Any:
        variables = {"params": {**frozen, **given}, "batch_stats": stats}
        return hand._cross_entropy(model.apply(variables, batch[0]), batch[1])

    def step(state: Any, frozen: Any, stats: Any, batch: Any) -> Any:
        given, opt_state = state
        loss, grads = jax.value_and_grad(loss_of)(given, frozen, stats, batch)
        updates, opt_state = tx.update(grads, opt_state, given)
        logged = optax.tree.norm(grads) if norm else jnp.zeros(())
        return (optax.apply_updates(given, updates), opt_state), (loss, logged)

    jitted = jax.jit(step, donate_argnums=0)
    held = [jax.tree.map(jnp.array, (given, tx.init(given)))]
    frozen, stats = jax.device_put((frozen, stats))

    def run(i: int) -> float:
        held[0], (loss, logged) = jitted(held[0], frozen, stats, batch(i))
        jax.block_until_ready(held[0])
        float(logged)
        return float(loss)

    def memory() -> int:
        lowered = jitted.lower(held[0], frozen, stats, batch(0))
        return int(lowered.compile().memory_analysis().temp_size_in_bytes)

    def state() -> int:
        return sum(x.nbytes for x in jax.tree.leaves(held[0][1]))

    return Recipe(name, run, memory, state)


def leafax_recipe(name: str, *, train_all: bool = False, norm: bool = False) -> Recipe:
    """The same as a leafax user writes it."""
    from leafax._runtime import cut

    classes = hand.FINETUNE_CLASSES
    model = linen.Model(EfficientNetLite0(classes), load_pretrained(classes)).eval()
    if not train_all:
        model.freeze("backbone", stats=True)
    optimizer = leafax.optim.Adam(model.parameters(), lr=hand.FINETUNE_RATE)

    def run(i: int) -> float:
        images, labels = batch(i)
        optimizer.zero_grad()
        loss = F.cross_entropy(model(leafax.from_numpy(images)), leafax.from_numpy(labels).long())
        loss.backward()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        logged = leafax.nn.utils.get_total_norm(grads) if norm else None
        del grads
        optimizer.step()
        if logged is not None:
            logged.item()
        return float(loss.item())

    def memory() -> int:
        run(0)
        plan = next(p for r, p in reversed(cut.plans) if r.reason == "optimizer.step()")
        avals = [e.aval.struct() for e in plan.program.entries if hasattr(e, "aval")]
        return int(plan.lowered(avals).compile().memory_analysis().temp_size_in_bytes)

    def state() -> int:
        held = optimizer.state_dict()["state"].values()
        return sum(t.nbytes for s in held for t in s.values())

    return Recipe(name, run, memory, state)


def _mask(params: Any, head: bool) -> Any:
    """True at the head (or at all else)."""
    return {k: (k == "classifier") is head for k in params}


def adam(params: Any) -> Any:
    return optax.adam(hand.FINETUNE_RATE)


def popular(params: Any) -> Any:
    zero = optax.masked(optax.set_to_zero(), _mask(params, False))
    return optax.chain(optax.adam(hand.FINETUNE_RATE), zero)


def partition(params: Any) -> Any:
    parts = {"train": optax.adam(hand.FINETUNE_RATE), "freeze": optax.set_to_zero()}
    labels = {k: "train" if k == "classifier" else "freeze" for k in params}
    return optax.partition(parts, labels)


MAKERS: dict[str, Callable[[str, bool], Recipe]] = {
    "everything": lambda name, norm: by_hand(name, adam, norm=norm),
    "popular": lambda name, norm: by_hand(name, popular, norm=norm),
    "partition": lambda name, norm: by_hand(name, partition, norm=norm),
    "best": lambda name, norm: by_hand(name, adam, head_only=True, norm=norm),
    "leafax": lambda name, norm: leafax_recipe(name, norm=norm),
    "leafax-everything": lambda name, norm: leafax_recipe(name, train_all=True, norm=norm),
}
TITLES = {
    "everything": "train everything",
    "popular": "`chain(adam, masked(set_to_zero, frozen))`",
    "partition": "`optax.partition` adam / set_to_zero",
    "best": "only the head differentiated, by hand",
    "leafax": 'leafax, `model.freeze("backbone", stats=True)`',
    "leafax-everything": "leafax, everything",
}


# Whom a recipe is compared with.
REFERENCE = {"leafax-everything": "everything", "everything": "everything"}


def heavy(name: str, norm: bool) -> bool:
    """Tell whether a step computes the backward pass of the whole network."""
    return name not in ("best", "leafax", "partition") or (name == "partition" and norm)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipes", nargs="*", help=", ".join(MAKERS))
    parser.add_argument("--rounds", type=int, default=32, help="a quarter of them for heavy ones")
    parser.add_argument("--steps", type=int, default=6, help="timed in a turn; half for heavy ones")
    options = parser.parse_args()
    lines = [
        "| recipe | norm logged | ms a step | of by hand | quartiles | temporary MiB | state MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for norm in (False, True):
        lines += measured(options.recipes or list(MAKERS), norm, options.rounds, options.steps)
    text = "\n".join(lines) + "\n"
    print(text)
    if not options.recipes:
        title = (
            "# What freezing costs\n\nWritten by `python benchmarks/freezing.py`. Ratios are of "
            "turns of one round: with the head alone differentiated by hand, with everything "
            "trained by hand for leafax training everything.\n\n"
        )
        (HERE / "freezing.md").write_text(title + text)


def measured(names: list[str], norm: bool, rounds: int, steps: int) -> list[str]:
    """Rows of the table."""
    recipes = {name: MAKERS[name](name, norm) for name in names}
    agree({name: [r.run(i) for i in range(WARM)] for name, r in recipes.items()})
    light = [r for name, r in recipes.items() if not heavy(name, norm)]
    whole = [r for name, r in recipes.items() if heavy(name, norm)]
    if whole and "best" in recipes:
        whole.append(recipes["best"])
    turns = take_turns(_runs(light), rounds, steps)
    among_whole = take_turns(_runs(whole), max(rounds // 4, 3), max(steps // 2, 1))
    rows = []
    for name, r in recipes.items():
        mine = among_whole if heavy(name, norm) else turns
        base = REFERENCE.get(name, "best")
        times = mine[name]
        low, middle, high = ratios(times, mine.get(base, []))
        rows.append(
            f"| {TITLES[name]} | {'yes' if norm else 'no'} | "
            f"{statistics.median(times) * 1e3:.1f} | {middle:.3f} | {low:.3f} to {high:.3f} | "
            f"{r.memory() / 2**20:.1f} | {r.state() / 2**20:.2f} |"
        )
    return rows


def _runs(recipes: list[Recipe]) -> dict[str, Callable[[int], float]]:
    return {r.name: lambda i, r=r: r.run(i % BATCHES) for r in recipes}  # type: ignore[misc]


def agree(losses: dict[str, list[float]]) -> None:
    """Fail where recipes that freeze the same compute other losses."""
    frozen = {name: x for name, x in losses.items() if "everything" not in name}
    for name, mine in frozen.items():
        first = next(iter(frozen.values()))
        worst = max(abs(x - y) for x, y in zip(mine, first, strict=True))
        assert worst < 1e-2, f"{name} computes other losses than {next(iter(frozen))}: {worst}"


if __name__ == "__main__":
    main()
