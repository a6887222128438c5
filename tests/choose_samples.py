"""Choose which samples of PyTorch's database CI runs, and write `ops/op_db_samples.json`.

An entry gets a sample in each dtype that it has (float64 stands for float32), and further ones
that reach lines of `functional/ops` which those before did not. Samples are only recorded here.
Entries that have theirs keep them: to choose anew, remove them from the file. A run stops after
120 seconds; call it until it says done.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch

HERE = Path(__file__).parent
OPS = str(HERE.parent / "functional" / "ops")
MOST = 2  # further samples of an entry
LEAST = 3  # new lines that a further sample must reach
LOOK = 6  # samples that are looked at for each dtype


def lines_of(fn: Any, args: Any, kwargs: Any) -> set[tuple[str, int]]:
    """Lines of the op table that one call reaches."""
    seen: set[tuple[str, int]] = set()

    def local(frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            seen.add((frame.f_code.co_filename, frame.f_lineno))
        return local

    def watch(frame: Any, event: str, _: Any) -> Any:
        return local if frame.f_code.co_filename.startswith(OPS) else None

    sys.settrace(watch)
    try:
        fn(*args, **kwargs)
    except Exception:  # an error path is a path too
        pass
    finally:
        sys.settrace(None)
    return seen


def candidates(entry: Any, dtype: str) -> list[tuple[str, int, set[Any]]]:
    from helpers.op_samples import kwargs_of, samples, to_leafax, variants

    forms = list(variants(entry))[:1]
    found = []
    for number, sample in samples(entry, getattr(torch, dtype), LOOK):
        seen: set[Any] = set()
        for _, ours, _ in forms:
            args = to_leafax((sample.input, *sample.args), [])
            seen |= lines_of(ours, args, kwargs_of(sample))
        found.append((dtype, number, seen))
    return found


def choose(entry: Any, dtypes: tuple[str, ...]) -> list[tuple[str, int]]:
    """The samples of one entry."""
    has = [d for d in dtypes if getattr(torch, d) in entry.supported_dtypes("cpu")]
    has = [d for d in has if d != "float32" or "float64" not in has]
    if not has:
        return []
    chosen: list[tuple[str, int]] = []
    covered: set[Any] = set()
    pool = [c for d in has for c in candidates(entry, d)]
    for d in has:
        first = next((c for c in pool if c[0] == d), None)
        if first is not None:
            chosen.append(first[:2])
            covered |= first[2]
    for _ in range(MOST):
        best = max(pool, key=lambda c: len(c[2] - covered), default=None)
        if best is None or len(best[2] - covered) < LEAST:
            break
        chosen.append(best[:2])
        covered |= best[2]
    return chosen


def main() -> None:
    path = HERE / "ops" / "op_db_samples.json"
    path.exists() or path.write_text("{}")
    sys.path.insert(0, str(HERE))
    warnings.simplefilter("ignore")
    from helpers.op_db import DTYPES, ENTRIES

    begun = time.perf_counter()
    made = {k: v for k, v in json.loads(path.read_text()).items() if k in ENTRIES}
    for name, entry in ENTRIES.items():
        if name not in made and time.perf_counter() - begun < 120:
            made[name] = choose(entry, DTYPES)
    rows = [f"{json.dumps(name)}: {json.dumps(rows)}" for name, rows in sorted(made.items())]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    count = sum(map(len, made.values()))
    print("done" if len(made) == len(ENTRIES) else "more", len(made), "entries", count, "samples")


if __name__ == "__main__":
    main()
