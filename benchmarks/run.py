"""Time leafax, hand-written `jax.jit` and torch eager in turns, in one run.

    python benchmarks/run.py                 # everything, writes benchmarks/results.md
    python benchmarks/run.py mlp gpt         # some of it, prints only

Contenders take turns step by step, so that a noisy machine is noisy for all; what is quoted is
the median of the paired ratios. Losses are compared as well: a fast wrong step is no result.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import handwritten  # noqa: E402
import jax  # noqa: E402
import lowerings  # noqa: E402
import numpy as np  # noqa: E402
from programs import leafax_finetune_head, leafax_programs  # noqa: E402

import leafax  # noqa: E402

WARM = 5


class Contender(NamedTuple):
    """A step to be timed; `run(i)` returns the loss as a float once all is computed."""

    name: str
    run: Callable[[int], float]


def handwritten_contender(make: Callable[[], Any], **options: Any) -> Contender:
    step, state, batch = make(**options)
    held = [state]

    def run(i: int) -> float:
        held[0], loss = step(held[0], batch(i))
        jax.block_until_ready(held[0])
        return float(loss)

    return Contender("jax.jit", run)


def imperative_contender(name: str, make: Callable[[], Any]) -> Contender:
    step, state, batch = make()
    held = [state]

    def run(i: int) -> float:
        held[0], loss = step(held[0], batch(i))
        return float(loss.item())

    return Contender(name, run)


def contenders(program: str) -> list[Contender]:
    """leafax first, then the hand-written step, then torch where there is one."""
    if program == "finetune":
        return [
            imperative_contender("leafax", leafax_finetune_head),
            handwritten_contender(handwritten.make_finetune_head),
        ]
    made = [
        imperative_contender("leafax", getattr(leafax_programs(), f"make_{program}")),
        handwritten_contender(getattr(handwritten, f"make_{program}")),
    ]
    if importlib.util.find_spec("torch"):
        import torch_eager

        made.append(imperative_contender("torch", getattr(torch_eager, f"make_{program}")))
    return made


def measure(program: str, steps: int) -> list[str]:
    """Rows of the results table for one program."""
    runners = contenders(program)
    times: dict[str, list[float]] = {c.name: [] for c in runners}
    losses: dict[str, list[float]] = {c.name: [] for c in runners}
    first: dict[str, float] = {}
    compiles = 0
    for i in range(WARM + steps):
        if i == WARM:
            leafax.explain(clear=True)
        # Who follows torch meets its threads still spinning: let each follow each.
        for c in runners[i % len(runners) :] + runners[: i % len(runners)]:
            start = time.perf_counter()
            losses[c.name].append(c.run(i))
            took = time.perf_counter() - start
            first.setdefault(c.name, took)
            if i >= WARM:
                times[c.name].append(took)
    compiles = leafax.explain().compiles
    programs = len(leafax.explain()) / steps
    rows = []
    for c in runners:
        ours = times["leafax"]
        ratio = statistics.median(a / b for a, b in zip(ours, times[c.name], strict=True))
        worst = max(
            abs(a - b) / abs(b)
            for a, b in zip(losses["leafax"][:10], losses[c.name][:10], strict=True)
        )
        rows.append(
            f"| {program} | {c.name} | {statistics.median(times[c.name]) * 1e3:.2f} | "
            f"{min(times[c.name]) * 1e3:.2f} | {ratio:.3f} | {first[c.name]:.2f} | {worst:.1e} |"
        )
    rows.append(f"| | | | | | | {programs:.0f} program a step, {compiles} compiles |")
    return rows


def measure_recording(repeats: int = 30) -> list[str]:
    """The cost of a known op, and of a chain of 1000 tiny ops."""

    def chain(t: Any) -> Callable[[], Any]:
        x = t.ones(4).requires_grad_()

        def run() -> Any:
            y = x
            for _ in range(500):
                y = y * 1.01
                y = y + 0.1
            y.sum().backward()
            grad = x.grad
            x.grad = None
            return grad

        return run

    def forward(t: Any) -> Callable[[], Any]:
        x = t.ones(4)

        def run() -> Any:
            y = x
            for _ in range(500):
                y = y * 1.01
                y = y + 0.1
            return y

        return run

    libraries: dict[str, Any] = {"leafax": leafax}
    if importlib.util.find_spec("torch"):
        import torch

        libraries["torch"] = torch
    rows = []
    for label, make in (("forward", forward), ("forward and backward", chain)):
        runs = {name: make(t) for name, t in libraries.items()}
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for i in range(WARM + repeats):
            for name, run in runs.items():
                start = time.perf_counter()
                out = run()
                recorded = time.perf_counter() - start
                out.tolist()
                if i >= WARM:
                    times[name].append((recorded, time.perf_counter() - start))
        for name in runs:
            recorded = statistics.median(t[0] for t in times[name])
            whole = statistics.median(t[1] for t in times[name])
            rows.append(f"| {label} | {name} | {recorded * 1e3:.2f} | {whole * 1e3:.2f} |")
    return rows


def measure_memory() -> list[str]:
    """XLA's temporary memory of the frozen fine-tuning step, ours and the hand-written one."""
    from leafax import _run

    ours = imperative_contender("leafax", leafax_finetune_head)
    for i in range(3):
        ours.run(i)
    plan = next(p for run, p in reversed(_run._plans) if run.reason == "optimizer.step()")
    avals = [e.aval.struct() for e in plan.program.entries if hasattr(e, "aval")]
    mine = plan.lowered(avals).compile().memory_analysis().temp_size_in_bytes
    step, state, batch = handwritten.make_finetune_head()
    lowered = step.func.lower(*step.args, state, batch(0))
    theirs = lowered.compile().memory_analysis().temp_size_in_bytes
    return [
        f"| leafax | {mine / 2**20:.2f} |",
        f"| jax.jit | {theirs / 2**20:.2f} |",
        f"| ratio | {mine / theirs:.3f} |",
    ]


def header() -> list[str]:
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True
    ).stdout.strip()
    return [
        "# Results",
        "",
        "Written by `python benchmarks/run.py`. Ratios are leafax over the other, medians of "
        "pairs timed in turns in one run; below 1 leafax is faster.",
        "",
        f"Commit {commit or 'unknown'}, jax {jax.__version__} on {jax.default_backend()}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} when it began, numpy {np.__version__}.",
        "",
    ]


STEPS = {"mlp": 200, "gpt": 20, "finetune": 40}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "programs", nargs="*", help="mlp, gpt, finetune, recording, memory, lowerings"
    )
    parser.add_argument("--steps", type=int, help="timed steps of each program")
    given = parser.parse_args()
    chosen = given.programs or [*STEPS, "recording", "memory", "lowerings"]
    lines = header()
    lines += [
        "## Training steps", "",
        "Milliseconds a step, the loss read every step.", "",
        "| program | | median | min | leafax / it | first step, s | losses differ by |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for program in [p for p in chosen if p in STEPS]:
        lines += measure(program, given.steps or STEPS[program])
    if "recording" in chosen:
        lines += [
            "", "## A chain of 1000 tiny ops", "",
            "Milliseconds; 1.00 is 1 us an op.", "",
            "| | | until recorded | until the value is there |",
            "| --- | --- | --- | --- |", *measure_recording(),
        ]  # fmt: skip
    if "memory" in chosen:
        lines += [
            "", "## Temporary memory of frozen fine-tuning", "",
            "| | MiB |", "| --- | --- |", *measure_memory(),
        ]  # fmt: skip
    if "lowerings" in chosen:
        lines += [
            "", "## Convolutions on a CPU", "",
            "Milliseconds, forward and both gradients, batch 16, float32: XLA's convolution, and "
            "what leafax chooses.", "",
            "| | XLA | leafax | ratio |", "| --- | --- | --- | --- |", *lowerings.measure(),
        ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if not given.programs:
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()
