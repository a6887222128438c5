"""Check that the quick suite catches deliberate faults: `python tests/mutations.py [name ...]`.

Each fault is one replacement of text in a copy of the library, for which the tests of its topic
must fail. Prints a line a fault, and exits with 1 if one was not caught. `--list` names them.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from runpy import run_path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".*_cache", "__pycache__", "*.egg-info", ".editable", "venv", ".venv", "out"
)


class Fault(NamedTuple):
    """A fault and where it must be seen.

    Attributes:
      path: the file that has it.
      right: text that occurs there once.
      wrong: what stands in its place.
      tests: arguments of pytest.
    """

    path: str
    right: str
    wrong: str
    tests: tuple[str, ...]


FAULTS = {
    "gradient of an op": Fault(
        "functional/ops/elementwise/unary.py",
        "trigamma(*primals) * tangents[0]", "-trigamma(*primals) * tangents[0]",
        ("tests/ops/test_op_db.py", "tests/ops/elementwise"),
    ),
    "conjugation of cotangents": Fault(
        "functional/lowering/differentiate.py",
        "to_jax, to_torch = (conj, conj_positive_zero)", "to_jax, to_torch = (_unchanged, conj)",
        ("tests/ops/elementwise", "tests/autograd/graphs"),
    ),
    "key of a program": Fault(
        "functional/program/program.py",
        "(tuple(e.key for e in self.entries), self.outputs, self.residuals)",
        "(tuple(e.key for e in self.entries), len(self.outputs), self.residuals)",
        ("tests/runtime",),
    ),
    "donation of buffers": Fault(
        "functional/execution/donation.py",
        "in sorted(outputs, reverse=True)", "in sorted(outputs)",
        ("tests/runtime/test_donate.py",),
    ),
    "guards of outputs": Fault(
        "functional/lowering/guards.py",
        "jnp.where(bad, arrays[i], found[k])", "jnp.where(bad, found[k], arrays[i])",
        ("tests/runtime/test_guards.py", "tests/runtime/test_faults.py"),
    ),
    "key of a value": Fault(
        "facade/_core/trie/values.py",
        "key = (aval, requires_grad, role, inference, strides)",
        "key = (aval, requires_grad, role, inference)",
        ("tests/storage/test_layout.py", "tests/storage/test_host.py"),
    ),
    "write to shared storage": Fault(
        "facade/_storage/write.py",
        "    _outdate(store, t)\n    t._behind", "    t._behind",
        ("tests/storage",),
    ),
    "version counters": Fault(
        "facade/_storage/write.py",
        "    if counts:\n        bump(t)\n    store", "    store",
        ("tests/storage/test_inplace.py", "tests/autograd/saved"),
    ),
    "write through a view": Fault(
        "functional/ops/shape/views.py",
        "np.argsort(order(base.ndim, *args, **kwargs))", "order(base.ndim, *args, **kwargs)",
        ("tests/ops/shape", "tests/storage"),
    ),
    "negative index": Fault(
        "functional/ops/shape/slice_sizes.py",
        "return index + size if index < 0 else index", "return abs(index)",
        ("tests/ops/indexing", "tests/ops/shape"),
    ),
    "list of autocast": Fault(
        "facade/_ops/autocast/lists.py",
        "matmul linalg.matmul mm bmm addmm", "matmul linalg.matmul mm addmm",
        ("tests/autocast",),
    ),
    "rule of an optimizer": Fault(
        "facade/optim/_rules/adam.py",
        'state["step"].astype("int32") - 1', 'state["step"].astype("int32")',
        ("tests/optim/test_optim.py",),
    ),
    "period of a scheduler": Fault(
        "facade/optim/_schedules/cycles.py",
        "if self.T_cur >= self.T_i:", "if self.T_cur > self.T_i:",
        ("tests/optim/test_lr_scheduler.py",),
    ),
    "order of hooks": Fault(
        "facade/nn/modules/_module/hooks.py",
        "move_to_end(handle.id, last=False)", "move_to_end(handle.id, last=True)",
        ("tests/nn/test_module_hooks.py",),
    ),
    "prefix of a state dict": Fault(
        "facade/nn/modules/_module/state.py",
        'prefix=prefix + name + "."', 'prefix=name + "."',
        ("tests/nn/test_module_state.py",),
    ),
    "order of a loader": Fault(
        "facade/utils/data/sampler.py",
        "some = draw.permutation(n)[:left]", "some = draw.integers(n, size=min(left, n))",
        ("tests/data/test_samplers.py", "tests/data/test_loader.py"),
    ),
    "density of a distribution": Fault(
        "facade/distributions/laplace.py",
        "return -log(2 * self.scale) - abs", "return -log(self.scale) - abs",
        ("tests/distributions/test_densities.py",),
    ),
    "mask of a model": Fault(
        "adapters/linen.py",
        "[t.requires_grad for t in self._leaves]", "[True for t in self._leaves]",
        ("tests/adapters/test_linen.py",),
    ),
    "scale of low-rank adapters": Fault(
        "adapters/_models/adapted_call.py",
        "y + more * jnp.asarray(scale, y.dtype)", "y + more",
        ("tests/adapters/test_lora.py",),
    ),
    "names in a file": Fault(
        "adapters/safetensors.py",
        "in model.named_parameters() if p.requires_grad}", "in model.named_parameters()}",
        ("tests/files/test_checkpoints.py",),
    ),
    "message of a signature": Fault(
        "facade/_signatures/parser.py",
        "(position {place}) must be {p.kind}, ", "(position {place}) should be {p.kind}, ",
        ("tests/signatures",),
    ),
}  # fmt: skip


def run(name: str, folder: Path) -> tuple[bool, str]:
    """Return True and the test that failed if a fault was caught, else what was said instead."""
    fault = FAULTS[name]
    path = folder / fault.path
    text = path.read_text()
    assert text.count(fault.right) == 1, f"{name}: {fault.path} has no such text, or has it twice"
    path.write_text(text.replace(fault.right, fault.wrong))
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider",
             *fault.tests],
            cwd=folder, env={**os.environ, "PYTHONPATH": str(folder / ".editable")},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        path.write_text(text)
    failed = re.findall(r"(?m)^(?:FAILED|ERROR) (\S+)", done.stdout)
    if done.returncode == 1 and failed:
        return True, failed[0]
    return False, (done.stdout + done.stderr).strip().rpartition("\n")[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help="some of the faults; else all")
    parser.add_argument("--list", action="store_true", help="name the faults")
    args = parser.parse_args()
    if args.list:
        print(*FAULTS, sep="\n")
        return
    missed = 0
    with tempfile.TemporaryDirectory(prefix="leafax-mutations-") as made:
        folder = Path(made) / "leafax"
        shutil.copytree(ROOT, folder, ignore=LEFT_OUT, symlinks=True)
        assert run_path(str(folder / "build_tools" / "editable.py"))["make_links"](folder)
        for name in args.names or FAULTS:
            start = time.perf_counter()
            caught, by = run(name, folder)
            missed += not caught
            seconds = time.perf_counter() - start
            word = "caught" if caught else "MISSED"
            print(f"{word}  {name:28} {seconds:5.0f} s  {by}", flush=True)
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
