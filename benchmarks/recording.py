"""Python's cost of a recorded call by its kind, and of the phases of a step of 300 parameters.

    python benchmarks/recording.py

Arrays are so small that they cost nothing. A step makes a chain of calls of one kind and their
backward pass, as often as it takes until nothing is learnt any more; what is timed is the chain.
torch eager computes meanwhile, leafax records: both is what the line costs before the next one.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import leafax
from leafax.functional.execution.plan import Plan

CALLS = 40  # of one kind in a step
WARM, STEPS = 12, 40
WIDTH, LAYERS = 8, 150

clock = time.perf_counter
Call = Callable[[Any, int], Any]


def kinds(t: Any) -> dict[str, Call]:
    """Return a call of each kind: it takes a tensor `(2, 4, WIDTH)` and gives one of that shape."""
    nn, F = t.nn, t.nn.functional  # noqa: N806
    factor, shape = t.ones(2, 4, WIDTH), (2, 4, WIDTH)
    linear = nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(CALLS)])
    norm = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(CALLS)])
    attention = nn.ModuleList(
        [nn.MultiheadAttention(WIDTH, 2, batch_first=True) for _ in range(CALLS)]
    )
    nothing, used = nn.Identity(), nn.Linear(WIDTH, WIDTH)
    return {
        "operator, `x * y`": lambda x, i: x * factor,
        "view, `x.view(2, 4, 8)`": lambda x, i: x.view(2, 4, WIDTH),
        "view of a view, `x.transpose(0, 1)`": lambda x, i: x.transpose(0, 1),
        "index, `x[:, :4]`": lambda x, i: x[:, :4],
        "`x.split(4, dim=1)`": lambda x, i: x.split(4, dim=1)[0],
        "keyword call, `F.softmax(x, dim=-1)`": lambda x, i: F.softmax(x, dim=-1),
        "function, `x.masked_fill(m, 0.5)`": lambda x, i: x.masked_fill(factor == 0, 0.5),
        "in place, `x.add_(y)`": lambda x, i: x.add_(factor),
        "product, `x @ y`": lambda x, i: x @ factor.transpose(1, 2) @ factor,
        "module that does nothing": lambda x, i: nothing(x),
        "`nn.Linear`, the same again": lambda x, i: used(x),
        "`nn.Linear`, its parameters enter": lambda x, i: linear[i](x),
        "`nn.LayerNorm`, its parameters enter": lambda x, i: norm[i](x),
        "`F.layer_norm` without any": lambda x, i: F.layer_norm(x, shape[2:]),
        "`nn.MultiheadAttention`": lambda x, i: attention[i](x, x, x, need_weights=False)[0],
    }


def time_kind(t: Any, name: str, mode: Callable[[], Any]) -> float:
    """Return the microseconds that one call of a kind takes, the median over steps."""
    call, taken = kinds(t)[name], []
    x = t.ones(2, 4, WIDTH, requires_grad=True)
    for _ in range(WARM + STEPS):
        y = x * 1.5
        with mode():
            start = clock()
            for i in range(CALLS):
                y = call(y, i)
            taken.append(clock() - start)
        loss = y.float().sum()
        loss.backward()
        loss.item()
    return statistics.median(taken[WARM:]) / CALLS * 1e6


def time_phases(t: Any) -> dict[str, float]:
    """Return the microseconds of a step's phases, for 300 parameters and AdamW."""
    model = t.nn.Sequential(*[t.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-3)
    x = t.ones(2, WIDTH)
    steps: list[list[float]] = []
    with noted_dispatches() as dispatches:
        for _ in range(WARM + STEPS):
            dispatches.clear()
            times = [clock()]
            loss = model(x).sum()
            times.append(clock())
            optimizer.zero_grad()
            times.append(clock())
            loss.backward()
            times.append(clock())
            optimizer.step()
            end = clock()
            times += [*dispatches[:2], end] if dispatches else [end] * 3
            loss.item()
            steps.append([b - a for a, b in zip(times, times[1:], strict=False)])
    names = ("forward", "zero_grad", "backward", "update until dispatch", "dispatch", "afterwards")
    medians = [statistics.median(phase) * 1e6 for phase in zip(*steps[WARM:], strict=True)]
    return dict(zip(names, medians, strict=True))


@contextmanager
def noted_dispatches() -> Iterator[list[float]]:
    """Note when leafax's programs are handed to JAX, and when that returns."""
    found: list[float] = []
    run = Plan.run

    def noted(self: Plan, *args: Any, **kwargs: Any) -> Any:
        found.append(clock())
        out = run(self, *args, **kwargs)
        found.append(clock())
        return out

    Plan.run = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        Plan.run = run  # type: ignore[method-assign]


def libraries() -> dict[str, Any]:
    found: dict[str, Any] = {"leafax": leafax}
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        found["torch"] = torch
    return found


@contextmanager
def plainly() -> Iterator[None]:
    """Run the block as it is."""
    yield


def rows() -> list[str]:
    """List the rows of a table: microseconds, plain and under autocast, of leafax and torch."""
    made = []
    for name in kinds(leafax):
        cells = []
        for lib in libraries().values():
            cells.append(time_kind(lib, name, plainly))
            cells.append(time_kind(lib, name, partial(lib.autocast, "cpu", dtype=lib.bfloat16)))
        made.append(f"| {name} | " + " | ".join(f"{x:.1f}" for x in cells) + " |")
    phases = [time_phases(lib) for lib in libraries().values()]
    for name in phases[0]:
        texts = [f"{phase[name]:.0f} | " for phase in phases]
        made.append(f"| 300 parameters: {name} | " + " | ".join(texts) + "|")
    return made


HEAD = [
    "| us | leafax | autocast | torch | autocast |",
    "| --- | --- | --- | --- | --- |",
]

if __name__ == "__main__":
    print(*HEAD, sep="\n")
    for row in rows():
        print(row)
