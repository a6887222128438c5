"""Print which entries of PyTorch's sample database leafax passes.

python tests/coverage_ops.py [--dtype float64] [--limit 6] [--failed FILE] [name ...]
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings

import torch


def main() -> None:
    """Run the named entries, or all, and write what fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--limit", type=int, default=6)
    parser.add_argument("--out", help="JSON of results, updated")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th entry from the i-th")
    args = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db

    from op_samples import check

    dtype = getattr(torch, args.dtype)
    results: dict[str, str] = {}
    part, parts = map(int, args.part.split("/"))
    entries = [e for e in op_db if not args.names or e.name in args.names][part::parts]
    for entry in entries:
        key = f"{entry.name}.{entry.variant_test_name}".rstrip(".")
        if entry.name.startswith(("jiterator", "_", "torch.", "sparse")):
            continue
        if dtype not in entry.supported_dtypes("cpu"):
            continue
        start = time.perf_counter()
        try:
            results[key] = check(entry, dtype, args.limit)
        except Exception as error:
            results[key] = f"harness: {type(error).__name__}: {error}"
        spent = time.perf_counter() - start
        print(f"{key:40s} {spent:5.1f}s {results[key] or 'ok'}", flush=True)
    good = sum(not r for r in results.values())
    missing = sum(r == "missing" for r in results.values())
    print(f"{good} of {len(results)} pass, {missing} missing")
    if args.out:
        with open(args.out, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    sys.path.insert(0, __file__.rsplit("/", 1)[0])
    main()
