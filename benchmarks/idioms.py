"""Time the idioms of data scripts and Python environments: small tensors that Python works with.

    python benchmarks/idioms.py              # all of them
    python benchmarks/idioms.py X[k] cat     # those with these words in their names

None of them trains anything: a tensor is filled number by number, grows by a row, is looked at.
leafax and torch take turns; each turn makes its data anew and of another length, as a script meets
it once. The quickest turns are compared: whatever else the machine does makes none quicker.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import leafax

ROUNDS = 30
UNTIMED = 4  # turns at the beginning: what is met for the first time is worked out


class Idiom(NamedTuple):
    """Lines of a script.

    Attributes:
      name: as one writes them.
      times: how often a turn does it, and a little more; 1 of what is done once.
      run: makes a turn with a library and a length; returns what it comes to.
    """

    name: str
    times: int
    run: Callable[[Any, Any, int], Any]


def _made(t: Any, rng: Any, *shape: int) -> Any:
    return t.tensor(rng.standard_normal(shape).astype("float32"))


def fill_with_numbers(t: Any, rng: Any, n: int) -> Any:
    x = t.zeros(n)
    for k in range(n):
        x[k] = 1.0 + k
    return x


def fill_and_look(t: Any, rng: Any, n: int) -> Any:
    x, found = t.zeros(n), 0.0
    for k in range(n):
        x[k] = 1.0 + k
        found += x[k // 2].item()
    return found


def fill_with_tensors(t: Any, rng: Any, n: int) -> Any:
    x = t.zeros(n, 4)
    for k in range(n):
        x[k] = t.tensor([k, 1.0, 2.0, 3.0])
    return x


def count_pairs(t: Any, rng: Any, n: int) -> Any:
    counts = t.zeros((n, 27), dtype=t.int32)
    for i, j in rng.integers(0, 27, (n, 2)).tolist():
        counts[i, j] += 1
    return counts


def grow(t: Any, rng: Any, n: int) -> Any:
    x, new = t.zeros(1, 3), t.tensor([[1.0, 2.0, 3.0]])
    for _ in range(n):
        x = t.cat((x, new))
    return x


def look_at_means(t: Any, rng: Any, n: int) -> Any:
    x = _made(t, rng, 10 * n)
    return [x[a : a + 64].mean().item() for a in rng.integers(0, n, n).tolist()]


def discount(t: Any, rng: Any, n: int) -> Any:
    rewards, r, found = rng.standard_normal(n).tolist(), t.tensor(0.0), []
    for reward in rewards:
        r = reward + 0.99 * r
        found.append(r)
    return t.stack(found)


def read_one_by_one(t: Any, rng: Any, n: int) -> Any:
    return [float(v) for v in _made(t, rng, n)]


def read_items(t: Any, rng: Any, n: int) -> Any:
    x = _made(t, rng, n)
    return [x[k].item() for k in range(n)]


def compare(t: Any, rng: Any, n: int) -> Any:
    found = 0
    for x in [t.tensor(v) for v in rng.uniform(0, 10, n).tolist()]:
        if x > 5:
            found += 1
    return found


def take_batch(t: Any, rng: Any, n: int) -> Any:
    data = t.from_numpy(rng.integers(0, 65, 10000 + n))
    ix = t.randint(len(data) - 65, (16,))
    x = t.stack([data[i : i + 64] for i in ix])
    y = t.stack([data[i + 1 : i + 1 + 64] for i in ix])
    return int((x[:, 1:] - y[:, :-1]).abs().sum())


IDIOMS = [
    Idiom("X[k] = 1.0", 200, fill_with_numbers),
    Idiom("X[k] = 1.0, then X[j].item()", 100, fill_and_look),
    Idiom("X[k] = tensor", 100, fill_with_tensors),
    Idiom("N[i, j] += 1", 100, count_pairs),
    Idiom("x = cat((x, new))", 50, grow),
    Idiom("x[a:a+64].mean().item()", 50, look_at_means),
    Idiom("r = reward + 0.99 * r, then stack", 50, discount),
    Idiom("for v in t: float(v)", 200, read_one_by_one),
    Idiom("X[k].item()", 200, read_items),
    Idiom("if x > 5", 50, compare),
    Idiom("a batch: stack([data[i:i+64] for i in ix]) twice", 1, take_batch),
]


def _turn(idiom: Idiom, library: Any, seed: int) -> tuple[float, Any]:
    rng = np.random.default_rng(seed)
    count = idiom.times + 3 * seed  # a length that no turn had before
    start = time.perf_counter()
    made = idiom.run(library, rng, count)
    if hasattr(made, "tolist"):
        made = made.tolist()
    return (time.perf_counter() - start) / (count if idiom.times > 1 else 1), made


def measure(idiom: Idiom, rounds: int = ROUNDS) -> tuple[float, float]:
    """Return microseconds an iteration with leafax and with torch; NaN where that is missing.

    Raises:
      AssertionError: if the two come to something else.
    """
    libraries = [leafax]
    if importlib.util.find_spec("torch"):
        import torch

        libraries.append(torch)
    best = [float("inf")] * len(libraries)
    for seed in range(UNTIMED + rounds):
        found = []
        for k, library in enumerate(libraries):
            taken, made = _turn(idiom, library, seed)
            found.append(made)
            if seed >= UNTIMED:
                best[k] = min(best[k], taken * 1e6)
        for made in found[1:]:
            np.testing.assert_allclose(found[0], made, rtol=1e-4, atol=1e-5)
    return best[0], best[1] if len(best) > 1 else float("nan")


def rows(rounds: int = ROUNDS, words: tuple[str, ...] = ()) -> list[str]:
    """List the rows of a table: microseconds an iteration, leafax and torch, and their ratio."""
    made = []
    for idiom in IDIOMS:
        if not words or any(word in idiom.name for word in words):
            ours, theirs = measure(idiom, rounds)
            made.append(f"| `{idiom.name}` | {ours:.1f} | {theirs:.1f} | {ours / theirs:.1f} |")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of those to measure")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns that each library has")
    given = parser.parse_args()
    print("| us an iteration | leafax | torch | ratio |")
    print("| --- | --- | --- | --- |")
    for row in rows(given.rounds, tuple(given.words)):
        print(row, flush=True)


if __name__ == "__main__":
    main()
