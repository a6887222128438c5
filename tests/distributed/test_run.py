"""The launcher: processes that it starts, and ends when one fails."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from leafax.distributed import run
from leafax.distributed.elastic.multiprocessing.errors import ChildFailedError

SCRIPT = """
import os, sys, time
n = os.environ["RANK"]
with open(f"{sys.argv[1]}/{n}.pid", "w") as file:
    file.write(str(os.getpid()))
asked = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT"
with open(f"{sys.argv[1]}/{n}.part", "w") as file:
    file.write(" ".join(os.environ[name] for name in asked.split()))
os.rename(file.name, f"{sys.argv[1]}/{n}.txt")
while not os.path.exists(f"{sys.argv[1]}/1.txt") or n == "0" and "wait" in sys.argv:
    time.sleep(0.05)
sys.exit(3 if n == "1" and "fail" in sys.argv else 0)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(f"#!{sys.executable}\n{SCRIPT}")
    path.chmod(0o755)
    return path


def test_processes_have_numbers_and_an_address(script: Path) -> None:
    folder = str(script.parent)
    options = ["--nproc_per_node=2", "--nnodes", "2", "--node-rank", "1", "--rdzv-endpoint=h:7"]
    with pytest.raises(NotImplementedError, match="leave --max-restarts out"):
        run.main([*options, "--max-restarts=1", str(script)])
    run.main(["--nproc-per-node", "2", "--master-port", "8", "--no-python", str(script), folder])
    found = [(script.parent / f"{n}.txt").read_text() for n in range(2)]
    assert found == [f"{n} {n} 2 2 127.0.0.1 8" for n in range(2)]
    args = run.parse_args([*options, "a.py", "--nproc-per-node", "5"])
    assert args.training_script_args == ["--nproc-per-node", "5"] and args.nproc_per_node == "2"
    with pytest.raises(ValueError, match="Unsupported nproc_per_node value: many"):
        run.main(["--nproc-per-node", "many", str(script)])


def test_one_that_fails_ends_the_others(script: Path) -> None:
    """As `python -m leafax -m torch.distributed.run`, whose processes run under leafax."""
    command = [sys.executable, "-m", "leafax", "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(script), str(script.parent), "wait", "fail"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=200)
    assert ran.returncode == 1
    assert ran.stderr.strip().startswith("process 1 (pid ")
    assert ran.stderr.strip().endswith(") failed with exit code 3; the others were ended")


def test_a_launcher_that_is_ended_ends_its_processes(script: Path) -> None:
    code = f"from leafax.distributed import run; run.main({ARGUMENTS!r} + {[str(script)]!r}"
    code += f" + {[str(script.parent), 'wait']!r})"
    started = subprocess.Popen([sys.executable, "-c", code])
    try:
        until = time.monotonic() + 100
        while not (script.parent / "0.txt").exists() and time.monotonic() < until:
            time.sleep(0.05)
        started.send_signal(signal.SIGTERM)
        assert started.wait(60) == 128 + signal.SIGTERM
    finally:
        started.kill()
    with pytest.raises(ProcessLookupError):
        os.kill(int((script.parent / "0.pid").read_text()), 0)


ARGUMENTS = ["--nproc-per-node=2", "--no-python"]


def test_the_error_tells_which_process(script: Path) -> None:
    args = run.parse_args([*ARGUMENTS, str(script), str(script.parent), "fail"])
    with pytest.raises(ChildFailedError) as caught:
        run.run(args)
    assert (caught.value.rank, caught.value.code) == (1, 3) and os.getpid() != caught.value.pid
