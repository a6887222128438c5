"""Host cost of real mixes of calls: models so small that Python decides how long a step takes.

    python benchmarks/mix.py                 # all of them
    python benchmarks/mix.py lstm gpt        # some

Contenders take turns. `dispatched` is the time until the step's call returns: all of its Python
and, with torch eager, its arrays; `step` is that until the loss is there.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [p for p in (str(HERE), str(HERE.parent / "examples")) if p not in sys.path]

import jax  # noqa: E402
from programs import leafax_programs  # noqa: E402
from turns import ratios, take_turns  # noqa: E402

import leafax  # noqa: E402

WARM = 6
ROUNDS, STEPS = 12, 4


class Mix(NamedTuple):
    """A program that is written in torch and by hand, and the sizes that it has here.

    Attributes:
      torch, by_hand: names of its modules.
      make: of its function in both.
      sizes: of the module by hand.
    """

    torch: str
    by_hand: str
    make: str
    sizes: dict[str, Any]


MIXES = {
    "gpt": Mix(
        "torch_eager", "handwritten", "make_gpt",
        {"GPT_LAYERS": 12, "GPT_WIDTH": 32, "GPT_HEADS": 4, "GPT_BATCH": 2, "GPT_TOKENS": 32,
         "GPT_VOCABULARY": 64},
    ),
    "encoder": Mix(
        "layers_torch", "layers_by_hand", "make_encoder",
        {"ENCODER_LAYERS": 12, "ENCODER_WIDTH": 32, "ENCODER_HEADS": 4, "ENCODER_INNER": 64,
         "ENCODER_BATCH": 2, "ENCODER_TOKENS": 16},
    ),
    "resnet": Mix(
        "layers_torch", "layers_by_hand", "make_resnet",
        {"RESNET_WIDTH": 4, "RESNET_BATCH": 2, "RESNET_SIZE": 16},
    ),
    "lstm": Mix("recurrent_torch", "recurrent_by_hand", "make_lstm", {}),
}  # fmt: skip


@contextmanager
def sized(mix: Mix) -> Iterator[None]:
    """Give the module by hand the sizes of a mix, of which its users read them."""
    module = importlib.import_module(mix.by_hand)
    before = {name: getattr(module, name) for name in mix.sizes}
    vars(module).update(mix.sizes)
    try:
        yield
    finally:
        vars(module).update(before)


Step = Callable[[int], Any]  # from the number of a step to its loss, which may not be there yet


def of_library(lib: Any, mix: Mix, wrap: Callable[[Any], Any] | None = None) -> Step:
    """Return the steps of a program with leafax or torch.

    Args:
      wrap: makes another function of the one that takes a batch and returns the loss.
    """
    programs = leafax_programs(mix.torch) if lib is leafax else importlib.import_module(mix.torch)
    step, state, batch = getattr(programs, mix.make)()

    def train(inputs: Any, labels: Any) -> Any:
        return step(state, (inputs, labels))[1]

    call = train if wrap is None else wrap(train)
    return lambda i: call(*batch(i))


def by_hand(mix: Mix) -> Step:
    step, state, batch = getattr(importlib.import_module(mix.by_hand), mix.make)()
    held = [state]

    def run(i: int) -> Any:
        held[0], loss = step(held[0], batch(i))
        return loss

    return run


def autocast(lib: Any) -> Callable[[Any], Any]:
    """Return what runs a step with its forward pass in bfloat16."""

    def wrap(train: Any) -> Any:
        def call(*batch: Any) -> Any:
            with lib.autocast("cpu", dtype=lib.bfloat16):
                return train(*batch)

        return call

    return wrap


def contenders(mix: Mix) -> dict[str, Step]:
    """Return leafax's steps, those by hand, and torch's where it is installed."""
    made = {"leafax": of_library(leafax, mix)}
    compiles = getattr(leafax, "compile", None)
    if compiles is not None:
        made["leafax.compile"] = of_library(leafax, mix, compiles)
    made["leafax, autocast"] = of_library(leafax, mix, autocast(leafax))
    made["jax.jit"] = by_hand(mix)
    if importlib.util.find_spec("torch"):
        import torch

        made["torch"] = of_library(torch, mix)
        made["torch, autocast"] = of_library(torch, mix, autocast(torch))
    return made


def _value(loss: Any) -> float:
    return float(loss.item())


def measure(name: str, rounds: int = ROUNDS) -> list[str]:
    """Return the rows of one mix: median milliseconds, and ratios to the others."""
    mix = MIXES[name]
    with sized(mix):
        runs = contenders(mix)
        losses = {who: [_value(run(i)) for i in range(WARM)] for who, run in runs.items()}
        leafax.explain(clear=True)
        whole = take_turns(
            {who: lambda i, run=run: _value(run(i)) for who, run in runs.items()},
            rounds, STEPS, first=WARM,
        )  # fmt: skip
        dispatched: dict[str, list[float]] = {who: [] for who in runs}
        for i in range(rounds * STEPS):
            for who, run in runs.items():
                start = time.perf_counter()
                loss = run(i)
                dispatched[who].append(time.perf_counter() - start)
                _value(loss)
        compiles = leafax.explain().compiles
    rows = []
    for who in runs:
        low, ratio, high = ratios(whole["leafax"], whole[who])
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses["leafax"], losses[who], strict=True))
        rows.append(
            f"| {name} | {who} | {statistics.median(whole[who]) * 1e3:.2f} | "
            f"{statistics.median(dispatched[who]) * 1e3:.2f} | {ratio:.2f} | "
            f"{low:.2f} to {high:.2f} | {worst:.1e} |"
        )
    return [*rows, f"| | {compiles} compiles | | | | | |"]


HEAD = [
    "| program | | step | dispatched | leafax / it | quartiles | losses differ by |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def rows(rounds: int = ROUNDS, names: tuple[str, ...] = ()) -> list[str]:
    """List the rows of a table: milliseconds a step of each contender, and ratios."""
    return [row for name in names or MIXES for row in measure(name, rounds)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(MIXES))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns that each contender has")
    given = parser.parse_args()
    print(f"jax {jax.__version__} on {jax.default_backend()}", *HEAD, sep="\n")
    for name in given.names or MIXES:
        print("\n".join(measure(name, given.rounds)), flush=True)


if __name__ == "__main__":
    main()
