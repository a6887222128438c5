"""PyTorch's `torch.distributed.run`: starts a script in several processes of this machine.

    python -m leafax -m torch.distributed.run --nproc-per-node 2 script.py --epochs 3

Each process finds its number in the environment, as `init_process_group` reads it. If one fails the
others are ended. With GPUs each process has the one of its number.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from typing import Any

from ._child_failed import ChildFailedError

__all__ = ["get_args_parser", "main", "parse_args", "run"]

_GRACE = 10.0  # seconds until a process that was told to end is killed
_COUNT = "import jax; d = jax.local_devices(); print(len(d) if d[0].platform != 'cpu' else {})"
_IGNORED = (
    "--rdzv-backend", "--rdzv-id", "--rdzv-conf", "--monitor-interval", "--start-method", "--role",
    "--log-dir", "--local-addr", "--logs-specs", "--shutdown-timeout",
)  # fmt: skip


def get_args_parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Start a script in several processes.")

    def add(name: str, **options: Any) -> None:
        parser.add_argument(name, name[:2] + name[2:].replace("-", "_"), **options)

    add("--nnodes", default="1", help="machines; each calls this with its own --node-rank")
    add("--nproc-per-node", default="1", help="processes a machine: a number, gpu, cpu or auto")
    add("--node-rank", type=int, default=0, help="the number of this machine")
    add("--master-addr", default="127.0.0.1", help="the address of machine 0")
    add("--master-port", type=int, default=29500, help="where processes meet there")
    add("--rdzv-endpoint", default="", help="both, as host:port")
    add("--standalone", action="store_true", help="meet at any free port of this machine")
    add("--max-restarts", type=int, default=0, help="nothing but 0")
    parser.add_argument("-m", "--module", action="store_true", help="the script is a module")
    add("--no-python", action="store_true", help="the script is a program")
    for name in _IGNORED:
        add(name, help="not used")
    parser.add_argument("training_script", help="the script")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what a command line says, `sys.argv` for None."""
    return get_args_parser().parse_args(args)


def run(args: argparse.Namespace) -> None:
    """Start the processes that a command line asks for, and wait for them.

    Raises:
      ChildFailedError: one failed; the others have been ended.
      NotImplementedError: they are to be started again then.
    """
    if args.max_restarts:
        raise NotImplementedError("processes are not started again: leave --max-restarts out")
    nodes = int(str(args.nnodes).partition(":")[0])
    count = _count_of(str(args.nproc_per_node))
    host, port = args.master_addr, args.master_port
    if args.rdzv_endpoint:
        host, _, given = args.rdzv_endpoint.rpartition(":")
        port = int(given) if host else port
        host = host or given
    if args.standalone:
        host, port = "127.0.0.1", _free_port()
    shared = {
        "WORLD_SIZE": nodes * count, "LOCAL_WORLD_SIZE": count, "GROUP_RANK": args.node_rank,
        "GROUP_WORLD_SIZE": nodes, "MASTER_ADDR": host, "MASTER_PORT": port,
        "TORCHELASTIC_RUN_ID": uuid.uuid4(), "TORCHELASTIC_RESTART_COUNT": 0,
    }  # fmt: skip
    command = [args.training_script, *args.training_script_args]
    if not args.no_python:
        command = [sys.executable, "-m", "leafax", *(["-m"] if args.module else []), *command]
    started: list[subprocess.Popen[bytes]] = []
    try:
        for n in range(count):
            own = {"RANK": args.node_rank * count + n, "LOCAL_RANK": n}
            environment = os.environ | {k: str(v) for k, v in (shared | own).items()}
            started.append(subprocess.Popen(command, env=environment))
        _wait(started, args.node_rank * count)
    finally:
        _end(started)


def main(args: Sequence[str] | None = None) -> None:
    """Start the processes that the command line asks for, and wait for them."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        run(parse_args(args))
    except ChildFailedError as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _wait(started: Sequence[subprocess.Popen[bytes]], first: int) -> None:
    left = dict(enumerate(started))
    while left:
        for n, process in list(left.items()):
            code = process.poll()
            if code:
                raise ChildFailedError(first + n, process.pid, code)
            if code == 0:
                del left[n]
        time.sleep(0.1)


def _end(started: Sequence[subprocess.Popen[bytes]]) -> None:
    running = [p for p in started if p.poll() is None]
    for process in running:
        process.terminate()
    until = time.monotonic() + _GRACE
    for process in running:
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _count_of(text: str) -> int:
    """Return the number of processes that `--nproc-per-node` asks for."""
    if text.isdigit():
        return int(text)
    cores = os.cpu_count() or 1
    if text == "cpu":
        return cores
    if text not in ("auto", "gpu"):
        raise ValueError(f"Unsupported nproc_per_node value: {text}")
    # Another process asks: JAX would take the GPUs' memory in this one.
    code = _COUNT.format(cores if text == "auto" else 0)
    count = int(subprocess.run([sys.executable, "-c", code], stdout=-1, check=True).stdout)
    if not count:
        raise ValueError("Cuda is not available.")
    return count


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


if __name__ == "__main__":
    main()
