"""Run PyTorch's sample database through leafax and write the table of coverage.

python tests/coverage_ops.py [--dtype float64] [--all | --limit 6] [--results FILE] [name ...]
python tests/coverage_ops.py --table docs/op_coverage.md [--results FILE]

A run stops after `--seconds` and goes on when it is called again: with the next entry, then, with
a larger `--cap`, with the samples that entries had no time for. Entries that are named run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DTYPES = ("float64", "float32", "bfloat16", "int64", "complex64")
MORE = ("float16", "complex128")
CHUNK = 40  # samples that are compiled together
MOST = 4_000_000  # elements of their inputs
LIMITS = {"float64": 6, "int64": 4}  # of samples of different kinds; 3 in other dtypes


def run(results: dict[str, Any], path: Path, args: argparse.Namespace) -> None:
    """Run what is not in `results` yet, what had no time, and what is named."""
    import jax
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from helpers.cheap_programs import compiled_cheaply
    from helpers.op_db import in_scope, key

    end = time.perf_counter() + args.seconds
    found = results.setdefault(args.dtype, {})
    entries = {key(e): e for e in in_scope(getattr(torch, args.dtype))}
    todo = [name for name in entries if wanted(name, found.get(name), args)]
    for n, name in enumerate(todo):
        if time.perf_counter() > end:
            print(f"more ({len(todo) - n} entries)", end=" ")
            break
        before = found.get(name) if args.all and not args.names else None
        with compiled_cheaply():
            found[name] = run_entry(entries[name], getattr(torch, args.dtype), before, args)
        if found[name]["bad"]:
            print(name, *found[name]["bad"][:2], sep="\n    ", flush=True)
        path.write_text(json.dumps(results))
        if n % 40 == 39:
            jax.clear_caches()
    failing = sum(bool(v["bad"]) for v in found.values())
    ran, of = (sum(v[k] for v in found.values()) for k in ("samples", "of"))
    print(f"{args.dtype}: {len(found)} entries, {failing} fail, {ran} of {of} samples")


def wanted(name: str, row: dict[str, Any] | None, args: argparse.Namespace) -> bool:
    """Tell whether the entry is to run."""
    if args.names:
        failed = "failed" in args.names and (row is None or bool(row["bad"]))
        return name in args.names or failed
    return row is None or (args.all and row["samples"] < row["of"] and row["s"] < args.cap)


def run_entry(
    entry: Any, dtype: Any, before: dict[str, Any] | None, args: argparse.Namespace
) -> dict[str, Any]:
    """Run the entry's samples; return how many ran, of how many, and the faults.

    With `before`, of an earlier run of all samples, it goes on after those that ran.
    """
    from helpers.op_runs import Case, batch
    from helpers.op_samples import every_sample, samples, variants

    everything = list(enumerate(every_sample(entry, dtype)))
    empty = {"samples": 0, "of": len(everything), "bad": [], "wrong": 0, "s": 0.0}
    row = before or empty
    bad, begun = list(row["bad"]), time.perf_counter() - row["s"]
    forms = list(variants(entry))
    if not forms:
        return {**empty, "bad": ["missing"]}
    todo = everything[row["samples"] :] if args.all else list(samples(entry, dtype, args.limit))
    for chunk in chunks(todo):
        if time.perf_counter() - begun > args.cap:
            break
        for _, here in batch(entry, forms, [Case(dtype, *numbered) for numbered in chunk]):
            row["samples"] += 1
            row["wrong"] += bool(here)
            bad += here
    return {**row, "bad": bad[:4], "s": round(time.perf_counter() - begun, 1)}


def chunks(numbered: list[Any]) -> Iterator[list[Any]]:
    """Samples that run as one program: some dozens, fewer of large ones."""
    from helpers.op_samples import numel

    chunk: list[Any] = []
    size = 0
    for number, sample in numbered:
        chunk.append((number, sample))
        size += numel((sample.input, sample.args, sample.kwargs))
        if len(chunk) == CHUNK or size > MOST:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def table(results: dict[str, Any]) -> str:
    """The table of coverage as Markdown."""
    from helpers.op_db import reason

    ran = [d for d in (*DTYPES, *MORE) if results.get(d)]
    lines = [
        "# The op table against PyTorch's sample database",
        "",
        "Written by `python tests/coverage_ops.py --table`; do not edit. Each entry of `op_db`",
        "(torch 2.13) runs as function, as method and in place; the table says how many of its",
        "samples ran of how many there are. Compared are values, dtypes, shapes, `requires_grad`,",
        "and gradients for a random cotangent. Factors (`svd`, `eigh`, `eig`) are unique up to",
        "signs: their absolute values are compared, and gradients of what the samples make of",
        "them. Where another seed gives torch other values, they are not compared; where sorted",
        "elements are equal, either may be found. In half precision and in float32 a result may",
        "also be as near to torch's in double precision as torch's own is, within a factor of 4.",
        "Out of scope: jiterator, sparse, quantised and private (`_...`, `torch.ops...`) entries.",
        "",
        "| dtype | entries | pass | per cent | samples run | of | entries with all samples |",
        "|---|---|---|---|---|---|---|",
    ]
    for d in ran:
        rows = results[d].values()
        passing = sum(not v["bad"] for v in rows)
        samples, of = (sum(v[k] for v in rows) for k in ("samples", "of"))
        whole = sum(v["samples"] >= v["of"] for v in rows)
        share = 100 * passing / len(rows)
        lines.append(
            f"| {d} | {len(rows)} | {passing} | {share:.1f} | {samples} | {of} | {whole} |"
        )
    lines += ["", "## What does not agree", ""]
    for d in ran:
        for name, v in sorted(results[d].items()):
            if v["bad"]:
                why = reason(name, d) or v["bad"][0].split("[")[0]
                count = f", {v['wrong']} of {v['samples']} samples" if v.get("wrong") else ""
                lines.append(f"- `{name}` ({d}{count}): {why}")
    lines += ["", "## Every entry", ""]
    lines += ["Samples run / there are; `-` where PyTorch has no such dtype.", ""]
    lines += ["| entry | " + " | ".join(ran) + " |", "|---" * (len(ran) + 1) + "|"]
    for name in sorted({n for d in ran for n in results[d]}):
        cells = [_cell(results[d].get(name)) for d in ran]
        lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    return "**differs**" if row["bad"] else f"{row['samples']}/{row['of']}"


def main() -> None:
    """Run, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help='entries, or "failed"')
    parser.add_argument("--dtype", default="float64", choices=(*DTYPES, *MORE))
    parser.add_argument("--limit", type=int, help="samples of an entry that differ in kind")
    parser.add_argument("--all", action="store_true", help="every sample of an entry")
    parser.add_argument("--cap", type=float, default=25, help="seconds an entry may take")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--results", type=Path, default=Path("op_db_results.json"))
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    results = json.loads(args.results.read_text()) if args.results.exists() else {}
    if args.table:
        args.table.write_text(table(results))
    else:
        args.limit = args.limit or LIMITS.get(args.dtype, 3)
        run(results, args.results, args)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
