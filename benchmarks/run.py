"""Time leafax, hand-written `jax.jit` and torch eager in turns, in one run.

    python benchmarks/run.py                 # everything, writes benchmarks/results.md
    python benchmarks/run.py mlp gpt         # some of it, prints only
    python benchmarks/run.py --device cuda   # on an accelerator: see devices.py, results-cuda.md

Contenders take turns (`turns.py`), so that a noisy machine is noisy for all; what is quoted is the
median of the ratios of their turns. Batches are NumPy arrays made beforehand; a step begins by
taking its own. `mlp-tensors` has them as tensors (arrays of JAX) before, as data loaders give them.
Losses are compared as well: a fast wrong step is no result.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]

import calls  # noqa: E402
import changing  # noqa: E402
import devices  # noqa: E402
import episodes  # noqa: E402
import first_steps  # noqa: E402
import handwritten  # noqa: E402
import idioms  # noqa: E402
import jax  # noqa: E402
import layers_by_hand  # noqa: E402
import lowerings  # noqa: E402
import mix  # noqa: E402
import numpy as np  # noqa: E402
import recording  # noqa: E402
import weight_gradients  # noqa: E402
from programs import leafax_finetune_head, leafax_programs  # noqa: E402
from turns import UNTIMED, ratios, take_turns  # noqa: E402

import leafax  # noqa: E402

LAYERS = ("resnet", "encoder")  # models of `nn`, of `layers_torch.py`
WARM = 5
KEPT = 32  # batches that are tensors already
WARM_CHAIN = 50  # a chain of 2000 ops runs op by op until that has cost a part of compiling it
COMPILED = "leafax.compile"
TENSORS = "-tensors"  # ends the name of a program whose batches are tensors already


class Contender(NamedTuple):
    """A step to be timed; `run(i)` returns the loss as a float once all is computed."""

    name: str
    run: Callable[[int], float]


def handwritten_contender(make: Callable[[], Any], keep: bool = False) -> Contender:
    step, state, batch = make()
    if keep:
        arrays = batch
        batch = devices.kept(lambda i: jax.device_put(arrays(i)), KEPT)
    held = [state]

    def run(i: int) -> float:
        held[0], loss = step(held[0], batch(i))
        jax.block_until_ready(held[0])
        return float(loss)

    return Contender("jax.jit", run)


def imperative_contender(name: str, make: Callable[[], Any], keep: bool = False) -> Contender:
    step, state, batch = make()
    batch = devices.kept(batch, KEPT) if keep else batch
    held = [state]

    def run(i: int) -> float:
        held[0], loss = step(held[0], batch(i))
        return float(loss.item())

    return Contender(name, run)


def compiled_contender(make: Callable[[], Any], keep: bool = False) -> Contender:
    """The same program, its step given to `leafax.compile`."""
    step, state, batch = make()
    batch = devices.kept(batch, KEPT) if keep else batch
    compiled = leafax.compile(lambda given: step(state, given)[1])
    return Contender(COMPILED, lambda i: float(compiled(batch(i)).item()))


def contenders(program: str) -> list[Contender]:
    """leafax first, then the hand-written step, then torch where there is one."""
    if program in LAYERS:
        return layer_contenders(program)
    keep, program = program.endswith(TENSORS), program.removesuffix(TENSORS)
    if program == "finetune":
        return [
            imperative_contender("leafax", leafax_finetune_head),
            compiled_contender(leafax_finetune_head),
            handwritten_contender(handwritten.make_finetune_head),
        ]
    ours = getattr(leafax_programs(), f"make_{program}")
    made = [
        imperative_contender("leafax", ours, keep),
        compiled_contender(ours, keep),
        handwritten_contender(getattr(handwritten, f"make_{program}"), keep),
    ]
    if importlib.util.find_spec("torch"):
        import torch_eager

        made.append(imperative_contender("torch", getattr(torch_eager, f"make_{program}"), keep))
    return made


def layer_contenders(program: str) -> list[Contender]:
    """Modules of leafax first, then its functions, the hand-written steps, and torch's modules."""
    ours = leafax_programs("layers_torch")
    by_hand = getattr(layers_by_hand, f"make_{program}")
    made = [
        imperative_contender("leafax", getattr(ours, f"make_{program}")),
        compiled_contender(getattr(ours, f"make_{program}")),
        imperative_contender("leafax, functions", getattr(ours, f"make_{program}_functions")),
        handwritten_contender(by_hand),
    ]
    if importlib.util.find_spec("torch"):
        import layers_torch

        made.append(imperative_contender("torch", getattr(layers_torch, f"make_{program}")))
    return made


def measure(program: str, rounds: int, steps: int) -> list[str]:
    """Rows of the results table for one program."""
    name, by_hand = f"{program.removesuffix(TENSORS)}_batch", handwritten
    if program in LAYERS:
        by_hand = layers_by_hand
    make_batch = getattr(by_hand, name)
    made_before = functools.cache(make_batch)
    setattr(by_hand, name, made_before)
    try:
        if not program.endswith(TENSORS):
            for i in range(WARM + rounds * (UNTIMED + steps)):
                made_before(i)
        return time_program(program, rounds, steps)
    finally:
        setattr(by_hand, name, make_batch)  # other tables have batches of other sizes


def time_program(program: str, rounds: int, steps: int) -> list[str]:
    """Rows of the results table for one program, whose batches are made."""
    runners = contenders(program)
    losses: dict[str, list[float]] = {c.name: [] for c in runners}
    first: dict[str, float] = {}
    for i in range(WARM):
        for c in runners:
            start = time.perf_counter()
            losses[c.name].append(c.run(i))
            first.setdefault(c.name, time.perf_counter() - start)
    leafax.explain(clear=True)
    times = take_turns({c.name: c.run for c in runners}, rounds, steps, first=WARM)
    compiles, made = leafax.explain().compiles, rounds * (UNTIMED + steps)
    ours = sum(c.name.startswith("leafax") for c in runners)
    programs = len(leafax.explain()) / made / ours
    rows = []
    for c in runners:
        low, ratio, high = ratios(times["leafax"], times[c.name])
        pairs = zip(losses["leafax"], losses[c.name], strict=True)
        worst = max(abs(a - b) / abs(b) for a, b in pairs)
        rows.append(
            f"| {program} | {c.name} | {statistics.median(times[c.name]) * 1e3:.2f} | "
            f"{min(times[c.name]) * 1e3:.2f} | {ratio:.3f} | {low:.3f} to {high:.3f} | "
            f"{first[c.name]:.2f} | {worst:.1e} |"
        )
    low, ratio, high = ratios(times[COMPILED], times["jax.jit"])
    told = f"{COMPILED} / jax.jit {ratio:.3f} | {low:.3f} to {high:.3f}"
    rows.append(f"| | | | {told} | | | {programs:.0f} program a step, {compiles} compiles |")
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
        for i in range(WARM_CHAIN + repeats):
            for name, run in runs.items():
                start = time.perf_counter()
                out = run()
                recorded = time.perf_counter() - start
                out.tolist()
                if i >= WARM_CHAIN:
                    times[name].append((recorded, time.perf_counter() - start))
        for name in runs:
            recorded = statistics.median(t[0] for t in times[name])
            whole = statistics.median(t[1] for t in times[name])
            rows.append(f"| {label} | {name} | {recorded * 1e3:.2f} | {whole * 1e3:.2f} |")
    return rows


def measure_memory() -> list[str]:
    """XLA's temporary memory of the frozen fine-tuning step, ours and the hand-written one."""
    from leafax._runtime import cut

    ours = imperative_contender("leafax", leafax_finetune_head)
    for i in range(3):
        ours.run(i)
    plan = next(p for run, p in reversed(cut.plans) if run.reason == "optimizer.step()")
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
    return [
        "# Results",
        "",
        "Written by `python benchmarks/run.py`. Ratios are leafax over the other, medians of "
        "pairs timed in turns in one run; below 1 leafax is faster.",
        "",
        f"Commit {devices.commit()}, jax {jax.__version__} on {jax.default_backend()}, "
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load "
        f"{os.getloadavg()[0]:.1f} when it began, numpy {np.__version__}.",
        "",
    ]


# Rounds, timed steps of a turn.
TURNS = {
    "mlp": (40, 10), f"mlp{TENSORS}": (40, 10), "gpt": (15, 2), "finetune": (60, 8),
    "resnet": (20, 3), "encoder": (20, 3),
}  # fmt: skip


#: Other tables: title, what is said of it, its head, and what lists its rows.
TABLES: dict[str, tuple[str, str, list[str], Callable[[], list[str]]]] = {
    "mix": (
        "Host cost of real mixes of calls",
        "Milliseconds of models so small that Python decides: until the loss is there, and until "
        "the step's call returns.",
        mix.HEAD, mix.rows,
    ),
    "first": (
        "First steps",
        "Seconds of the first three steps, each in a process of its own, and how many programs "
        "were compiled in them.",
        first_steps.HEAD, first_steps.rows,
    ),
    "episodes": (
        "Loops whose length changes",
        "Each turn has another length.",
        episodes.HEAD, episodes.rows,
    ),
    "changing": (
        "Loops around a model whose programs are long, or never the same twice",
        "Flax models called many times a step; by hand they are written in JAX.",
        changing.HEAD, changing.rows,
    ),
    "kinds": (
        "Recorded calls by kind, and the phases of a step of 300 parameters",
        "Microseconds of Python, and of torch eager with its arrays.",
        recording.HEAD, recording.rows,
    ),
    "idioms": (
        "Idioms of data scripts",
        "Microseconds an iteration.",
        ["| | leafax | torch | ratio |", "| --- | --- | --- | --- |"], idioms.rows,
    ),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "programs",
        nargs="*",
        help=f"{', '.join((*TURNS, *TABLES))}, recording, calls, memory, lowerings, weights",
    )
    parser.add_argument("--rounds", type=int, help="turns that each contender has")
    parser.add_argument("--device", choices=("cpu", "cuda", "tpu"), help="measure this device")
    parser.add_argument("--precision", choices=("highest", "high"), default="high")
    parser.add_argument("--size", choices=tuple(devices.SIZES), default="full")
    parser.add_argument("--steps", type=int, default=30, help="timed steps on the device")
    given = parser.parse_args()
    if given.device:
        chosen = given.programs or devices.PROGRAMS
        text = devices.report(chosen, given.device, given.precision, given.size, given.steps)
        print(text)
        if not given.programs and given.size == "full":
            (HERE / f"results-{given.device}.md").write_text(text)
        return
    chosen = given.programs or [
        *TURNS, "recording", "calls", *TABLES, "memory", "lowerings", "weights",
    ]  # fmt: skip
    lines = header()
    lines += [
        "## Training steps", "",
        "Milliseconds a step, the loss read every step.", "",
        "| program | | median | min | leafax / it | quartiles | first step, s | losses differ by |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]  # fmt: skip
    for program in [p for p in chosen if p in TURNS]:
        rounds, steps = TURNS[program]
        lines += measure(program, given.rounds or rounds, steps)
    if "recording" in chosen:
        lines += [
            "", "## A chain of 1000 tiny ops", "",
            "Milliseconds; 1.00 is 1 us an op.", "",
            "| | | until recorded | until the value is there |",
            "| --- | --- | --- | --- |", *measure_recording(),
        ]  # fmt: skip
    if "calls" in chosen:
        lines += [
            "", "## A call of a Flax model of 300 parameters", "",
            "Microseconds of Python within a training step.", "",
            "| | call |", "| --- | --- |", *calls.measure(),
        ]  # fmt: skip
    for name in [name for name in TABLES if name in chosen]:
        title, text, head, rows = TABLES[name]
        lines += ["", f"## {title}", "", text, "", *head, *rows()]
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
            "", "## Linear layers on a CPU", "",
            "Milliseconds, backward through a ReLU and update of the weight, float32: XLA's "
            "weight gradient, and with its operand turned where leafax does that.", "",
            "| | | XLA | leafax | ratio |", "| --- | --- | --- | --- | --- |",
            *lowerings.measure_products(),
        ]  # fmt: skip
    if "weights" in chosen:
        lines += [
            "", "## Gradients of the weights of 3x3 convolutions on a CPU", "",
            "Milliseconds, batch 16, stride 1, float32; leafax takes XLA's.", "",
            "| | XLA | nine products | columns | channels last | torch |",
            "| --- | --- | --- | --- | --- | --- |", *weight_gradients.measure(),
        ]  # fmt: skip
    text = "\n".join(lines) + "\n"
    print(text)
    if not given.programs:
        (HERE / "results.md").write_text(text)


if __name__ == "__main__":
    main()
