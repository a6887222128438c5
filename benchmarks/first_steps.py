"""First steps: recording, tracing, lowering and compiling, each in a process of its own.

    python benchmarks/first_steps.py         # all programs
    python benchmarks/first_steps.py gpt     # some

What JAX and leafax have met before makes what they meet next quicker, so nothing is measured twice
in a process. Beside the seconds stands what was compiled in the first three steps: programs of
leafax (or calls of XLA's compiler, by hand), as `explain()` counts them.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = ("gpt", "encoder", "resnet", "lstm")
RUNS = 3
STEPS = 3


def one(program: str, who: str) -> dict[str, Any]:
    """Make a program's first steps in this process; return their seconds and compilations."""
    import mix

    found: list[float] = []
    compiled: list[int] = []
    chosen = mix.MIXES[program]
    with mix.sized(chosen):
        if who == "torch":
            import torch

            run = mix.of_library(torch, chosen)
        elif who == "jax.jit":
            run = mix.by_hand(chosen)
        else:
            run = mix.of_library(mix.leafax, chosen, mix.leafax.compile if "." in who else None)
        mix.leafax.explain(clear=True)
        for i in range(STEPS):
            start = time.perf_counter()
            mix._value(run(i))
            found.append(time.perf_counter() - start)
            made = mix.leafax.explain(clear=True).compilations
            kind = "yours" if who == "jax.jit" else "program"
            compiled.append(sum(c.kind.startswith(kind) for c in made))
    return {"seconds": found, "compiled": compiled}


def measure(program: str, runs: int = RUNS) -> list[str]:
    """Return the rows of one program: medians of processes that take turns."""
    contenders = ["leafax", "leafax.compile", "jax.jit"]
    if importlib.util.find_spec("torch"):
        contenders.append("torch")
    results: dict[str, list[Any]] = {who: [] for who in contenders}
    for _ in range(runs):
        for who in contenders:
            done = subprocess.run(
                [sys.executable, __file__, "--one", program, who],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            results[who].append(json.loads(done.stdout.splitlines()[-1]))
    rows = []
    first = {who: [r["seconds"][0] for r in found] for who, found in results.items()}
    for who, found in results.items():
        ratio = statistics.median(a / b for a, b in zip(first["leafax"], first[who], strict=True))
        others = [statistics.median(r["seconds"][k] for r in found) for k in range(1, STEPS)]
        compiled = " + ".join(map(str, found[-1]["compiled"])) if who != "torch" else ""
        rows.append(
            f"| {program} | {who} | {statistics.median(first[who]):.2f} | {ratio:.2f} | "
            f"{' | '.join(f'{s:.2f}' for s in others)} | {compiled} |"
        )
    return rows


HEAD = [
    "| program | | first step, s | leafax / it | second | third | compiled |",
    "| --- | --- | --- | --- | --- | --- | --- |",
]


def rows(runs: int = RUNS) -> list[str]:
    """List the rows of a table: seconds of the first three steps, and what was compiled."""
    return [row for program in PROGRAMS for row in measure(program, runs)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help=", ".join(PROGRAMS))
    parser.add_argument("--runs", type=int, default=RUNS, help="processes of each contender")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(*given.one)))
        return
    print(*HEAD, sep="\n")
    for program in given.programs or PROGRAMS:
        print("\n".join(measure(program, given.runs)), flush=True)


if __name__ == "__main__":
    main()
