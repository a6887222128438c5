"""Run PyTorch's sample database through leafax and write the table of coverage.

python tests/coverage_ops.py [--dtype float64] [--limit 6] [--results FILE] [name ...]
python tests/coverage_ops.py --table docs/op_coverage.md [--results FILE]

A run stops after `--seconds` and goes on with the next entry when it is called again; entries
that are named run again. Compiling for speed would take most of the time, so it is turned off.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
DTYPES = ("float64", "float32", "bfloat16", "int64", "complex64")
LIMITS = {"float64": 6, "int64": 4}  # of samples of different kinds; 3 in other dtypes
CAP = 25.0  # seconds an entry may take with one dtype


def run(
    results: dict[str, Any], dtype: str, names: list[str], seconds: float, limit: int, path: Path
) -> None:
    """Run what is not in `results` yet, and what is named."""
    import jax
    import torch

    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from op_samples import samples, variants, wrong
        from test_op_db import in_scope, key

    start = time.perf_counter()
    found = results.setdefault(dtype, {})
    for n, entry in enumerate(in_scope(getattr(torch, dtype))):
        name = key(entry)
        if names and name not in names and "failed" not in names or not names and name in found:
            continue
        if "failed" in names and not (found.get(name) or {"bad": True})["bad"]:
            continue
        if time.perf_counter() - start > seconds:
            print("more", end=" ")
            break
        begun, count, bad = time.perf_counter(), 0, []
        forms = list(variants(entry))
        if not forms:
            bad.append("missing")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for number, sample in samples(entry, getattr(torch, dtype), limit):
                if not forms or time.perf_counter() - begun > CAP:
                    break
                count += 1
                bad += list(wrong(entry, forms, number, sample, getattr(torch, dtype)))
        found[name] = {"samples": count, "bad": bad[:4]}
        if bad:
            print(name, *bad[:2], sep="\n    ", flush=True)
        path.write_text(json.dumps(results))
        if n % 40 == 39:
            jax.clear_caches()
    failing = sum(bool(v["bad"]) for v in found.values())
    total = sum(v["samples"] for v in found.values())
    print(f"{dtype}: {len(found)} entries, {failing} fail, {total} samples")


def table(results: dict[str, Any]) -> str:
    """The table of coverage as Markdown."""
    from test_op_db import reason

    ran = [d for d in DTYPES if results.get(d)]
    lines = [
        "# The op table against PyTorch's sample database",
        "",
        "Written by `python tests/coverage_ops.py --table`; do not edit. Each entry of `op_db`",
        "(torch 2.13) runs as function, as method and in place, with samples that differ in the",
        "ranks, dtypes, names or kinds of their arguments (at most 6 in float64, 4 in int64, 3 in",
        "others; `--limit` takes more). Compared are values, dtypes, shapes, `requires_grad`, and",
        "gradients for a random cotangent.",
        "Out of scope: jiterator, sparse, quantised and private (`_...`, `torch.ops...`) entries.",
        "",
        "| dtype | entries | pass | samples | per cent |",
        "|---|---|---|---|---|",
    ]
    for d in ran:
        rows = results[d].values()
        passing = sum(not v["bad"] for v in rows)
        samples = sum(v["samples"] for v in rows)
        lines.append(
            f"| {d} | {len(rows)} | {passing} | {samples} | {100 * passing / len(rows):.1f} |"
        )
    lines += ["", "## What does not agree", ""]
    for d in ran:
        for name, v in sorted(results[d].items()):
            if v["bad"]:
                why = reason(name, d) or v["bad"][0].split("[")[0]
                lines.append(f"- `{name}` ({d}): {why}")
    lines += [
        "",
        "## Every entry",
        "",
        "Samples that ran; `-` where PyTorch has no such dtype.",
        "",
    ]
    lines += ["| entry | " + " | ".join(ran) + " |", "|---" * (len(ran) + 1) + "|"]
    for name in sorted({n for d in ran for n in results[d]}):
        cells = []
        for d in ran:
            v = results[d].get(name)
            cells.append("-" if v is None else f"{v['samples']}" if not v["bad"] else "**differs**")
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help='entries, or "failed"')
    parser.add_argument("--dtype", default="float64", choices=DTYPES)
    parser.add_argument("--limit", type=int, help="samples of an entry that differ in kind")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--results", type=Path, default=Path("op_db_results.json"))
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    if args.table:
        args.table.write_text(table(results))
    else:
        limit = args.limit or LIMITS.get(args.dtype, 3)
        run(results, args.dtype, args.names, args.seconds, limit, args.results)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
