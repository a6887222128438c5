"""Training steps on one accelerator: `python benchmarks/run.py --device cuda` (or tpu, or cpu).

Each contender runs in a process of its own, whose first step and peak of memory are its own, too.
`python benchmarks/devices.py gpt leafax cuda` measures one and prints it as JSON.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAMS = ("mlp", "gpt", "gpt, bfloat16", "convnet", "frozen convnet")
CONTENDERS = ("leafax", "leafax.compile", "jax.jit", "torch")
HEAD = [
    "| program | | steady step, ms | min, ms | leafax / it | first step, s | compiles | "
    "peak memory, MiB | last loss |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
]

#: Constants of `handwritten` and `convnet_by_hand`, for accelerators and to see that it works.
SIZES = {
    "full": {
        "MLP_WIDTHS": (784, 4096, 4096, 10), "MLP_BATCH": 1024, "GPT_LAYERS": 12,
        "GPT_WIDTH": 768, "GPT_HEADS": 12, "GPT_BATCH": 8, "GPT_TOKENS": 512,
        "GPT_VOCABULARY": 8192, "IMAGES": 128, "SIZE": 128,
    },
    "tiny": {
        "MLP_WIDTHS": (784, 64, 64, 10), "MLP_BATCH": 32, "GPT_LAYERS": 2, "GPT_WIDTH": 32,
        "GPT_HEADS": 2, "GPT_BATCH": 2, "GPT_TOKENS": 16, "GPT_VOCABULARY": 64, "IMAGES": 4,
        "SIZE": 16,
    },
}  # fmt: skip
BATCHES = 4  # are on the device before the first step
WARM = 6


def measure(program: str, name: str, device: str, precision: str, size: str, steps: int) -> Any:
    """Time one contender in this process.

    Returns:
      A dict with `first` (seconds), `times` (seconds), `compiles`, `peak` (bytes) and `loss`; None
      where the contender has no such program, or the device is not its.
    """
    sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # what is asked for is what is used
    import convnet_by_hand
    import handwritten

    for module in (handwritten, convnet_by_hand):
        for constant, value in SIZES[size].items():
            if hasattr(module, constant):
                setattr(module, constant, value)
    make = {"jax.jit": _by_hand, "torch": _in_torch}.get(name, _in_leafax)
    run = make(program, device, precision, name)
    if run is None:
        return None
    start = time.perf_counter()
    loss = run(0)
    first = time.perf_counter() - start
    for i in range(1, WARM):
        run(i)
    compiles = _compiles() if name.startswith("leafax") else None
    times = []
    for i in range(WARM, WARM + steps):
        start = time.perf_counter()
        loss = run(i)
        times.append(time.perf_counter() - start)
    if compiles is not None:
        compiles = f"{compiles}, then {_compiles() - compiles}"
    return {
        "first": first, "times": times, "compiles": compiles, "peak": _peak(name, device),
        "loss": loss,
    }  # fmt: skip


def kept(batch: Callable[[int], Any], number: int = BATCHES) -> Callable[[int], Any]:
    """Return the first batches as the library holds them, made once and used again."""
    made = [batch(i) for i in range(number)]
    return lambda i: made[i % number]


def _by_hand(program: str, device: str, precision: str, name: str) -> Any:
    import convnet_by_hand
    import handwritten
    import jax

    if "bfloat16" in program:
        return None
    jax.config.update("jax_default_device", jax.devices(device)[0])
    jax.config.update(
        "jax_default_matmul_precision", "tensorfloat32" if precision == "high" else "highest"
    )
    module = convnet_by_hand if "convnet" in program else handwritten
    step, state, batch = getattr(module, _maker(program))()
    batch, held = kept(lambda i: jax.device_put(batch(i))), [state]

    def run(i: int) -> float:
        held[0], loss = step(held[0], batch(i))
        jax.block_until_ready(held[0])
        return float(loss)

    return run


def _maker(program: str) -> str:
    return "make_" + {"frozen convnet": "frozen", "gpt, bfloat16": "gpt"}.get(program, program)


def _in_leafax(program: str, device: str, precision: str, name: str) -> Any:
    from programs import leafax_programs

    import leafax

    step, state, made = _imperative(leafax, leafax_programs, program, device, precision)
    leafax.explain(clear=True)
    if name == "leafax.compile":
        compiled = leafax.compile(lambda given: step(state, given)[1])
        return lambda i: compiled(made(i)).item()
    return lambda i: step(state, made(i))[1].item()


def _in_torch(program: str, device: str, precision: str, name: str) -> Any:
    if not importlib.util.find_spec("torch"):
        return None
    import torch

    if device != "cpu" and not (device == "cuda" and torch.cuda.is_available()):
        return None
    step, state, made = _imperative(torch, importlib.import_module, program, device, precision)
    return lambda i: step(state, made(i))[1].item()


def _imperative(
    library: Any, programs: Callable[[str], Any], program: str, device: str, precision: str
) -> tuple[Any, Any, Callable[[int], Any]]:
    """Return the step, the state and the batches of a program in torch, or in leafax as torch."""
    library.set_default_device(device)
    library.set_float32_matmul_precision(precision)
    library.backends.cudnn.allow_tf32 = precision == "high"
    module = programs("convnet_torch" if "convnet" in program else "torch_eager")
    step, state, batch = getattr(module, _maker(program))()
    step = _under_autocast(step, library, device) if "bfloat16" in program else step
    return step, state, kept(lambda i: [x.to(device) for x in batch(i)])


def _under_autocast(step: Any, library: Any, device: str) -> Any:
    def cast(state: Any, batch: Any) -> Any:
        with library.autocast(device, dtype=library.bfloat16):
            return step(state, batch)

    return cast


def _compiles() -> int:
    import leafax

    return int(leafax.explain().compiles)


def _peak(name: str, device: str) -> int | None:
    """Return the most bytes that the contender had on the device; on a CPU, of its process."""
    if device == "cpu":
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if name == "torch":
        import torch

        return int(torch.cuda.max_memory_allocated())
    import jax

    stats = jax.devices(device)[0].memory_stats()
    return stats and stats.get("peak_bytes_in_use")


def rows(program: str, device: str, precision: str, size: str, steps: int) -> list[str]:
    """List the rows of the table for one program."""
    found = {}
    for name in CONTENDERS:
        given = [program, name, device, precision, size, str(steps)]
        process = subprocess.run(
            [sys.executable, str(HERE / "devices.py"), *given], capture_output=True, text=True
        )
        if process.returncode:
            found[name] = (process.stderr.strip().splitlines() or ["failed"])[-1][:120]
        else:
            found[name] = json.loads(process.stdout.splitlines()[-1])
    lines = []
    ours = found["leafax"]
    for name, it in found.items():
        if it is None:
            continue
        if isinstance(it, str):
            lines.append(f"| {program} | {name} | {it} | | | | | | |")
            continue
        median = statistics.median(it["times"])
        ratio = f"{statistics.median(ours['times']) / median:.3f}" if type(ours) is dict else ""
        peak = "" if it["peak"] is None else f"{it['peak'] / 2**20:.0f}"
        lines.append(
            f"| {program} | {name} | {median * 1e3:.2f} | {min(it['times']) * 1e3:.2f} | {ratio} | "
            f"{it['first']:.2f} | {it['compiles'] or ''} | {peak} | {it['loss']:.4f} |"
        )
    return lines


def commit() -> str:
    """Return the number of the commit that is measured."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    told = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
    return told.stdout.strip() or "unknown"


def report(chosen: list[str], device: str, precision: str, size: str, steps: int) -> str:
    """Return the whole file of results."""
    code = (
        "import jax, sys; d = jax.devices(sys.argv[1])[0]; "
        "print(f'jax {jax.__version__} on {d.device_kind}')"
    )
    about = subprocess.run(
        [sys.executable, "-c", code, device], capture_output=True, text=True, check=True
    )
    sizes = ", ".join(f"{k.lower()} {v}" for k, v in SIZES[size].items())
    where = "process" if device == "cpu" else "device"
    lines = [
        f"# Results on {device}", "",
        f"Written by `python benchmarks/run.py --device {device}`. Each contender has a process of "
        "its own; the loss is read every step; batches are on the device before. Ratios below 1: "
        f"leafax is faster. Compiles are those of the first {WARM} steps, then of all others; "
        f"memory is the peak of the {where}.", "",
        f"Commit {commit()}, {about.stdout.strip()}, Python "
        f"{platform.python_version()}, float32 precision {precision!r}, {steps} steps; {sizes}.",
        "", *HEAD,
    ]  # fmt: skip
    for program in chosen:
        lines += rows(program, device, precision, size, steps)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    *names, count = sys.argv[1:]
    print(json.dumps(measure(*names, int(count))))  # type: ignore[call-arg, arg-type]
