"""Worker processes: order, seeds, failures in PyTorch's words, and that nothing is left of them.

Most run in a small process of its own: to fork one that has compiled thousands of programs takes
seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.own_process import check_report, names_of, reports_of

TESTS = Path(__file__).parent / "with_workers.py"
LIMIT = 30.0  # seconds that one batch may take: more than a loaded machine needs
outcomes = reports_of(TESTS, devices=1)
fork = pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork", reason="workers begin as forks"
)


@pytest.mark.parametrize("name", names_of(TESTS))
def test_with_workers(name: str, outcomes: dict[str, list[str]]) -> None:
    check_report(name, outcomes)


SCRIPT = """
import sys
import numpy as np
import leafax as torch

class Squares(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.arange(6) * 1.0
    def __len__(self):
        return 6
    def __getitem__(self, k):
        return self.x[k] ** 2, np.full(5000, k)

def main():
    for method in sys.argv[1:]:
        loader = torch.utils.data.DataLoader(
            Squares(), 3, num_workers=1, multiprocessing_context=method
        )
        print([batch[0].tolist() for batch in loader])

if __name__ == "__main__":
    main()
"""


@pytest.mark.exhaustive
def test_other_ways_to_start_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    run = subprocess.run(
        [sys.executable, "-W", "error", script, "fork", "spawn"],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
    )
    assert run.stdout == "[[0.0, 1.0, 4.0], [9.0, 16.0, 25.0]]\n" * 2, run.stderr
    assert not run.stderr


ENDED = """
import os, signal, sys, time
import leafax as torch

class Slow:
    def __len__(self):
        return 100
    def __getitem__(self, k):
        if k == 5 and sys.argv[1] == "interrupted":
            time.sleep(60)
        return os.getpid()

for k, batch in enumerate(torch.utils.data.DataLoader(Slow(), num_workers=1)):
    print(batch.item(), flush=True)
    if k == 4 and sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.exhaustive
@fork
@pytest.mark.parametrize("how", ["interrupted", "killed"])
def test_workers_end_with_the_main_process(how: str) -> None:
    run = subprocess.Popen(
        [sys.executable, "-c", ENDED, how], text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert run.stdout is not None
    worker = int([run.stdout.readline() for _ in range(5)][0])
    if how == "interrupted":
        os.killpg(run.pid, signal.SIGINT)
    _, said = run.communicate(timeout=LIMIT)  # the worker has these pipes as well
    assert said.count("Traceback") == (how == "interrupted"), said
    assert said.rstrip().endswith("KeyboardInterrupt" if how == "interrupted" else "")
    if how == "interrupted":
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
