"""Storages of the bytes of a file: parts of it become tensors of any dtype."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.sameness import Log, same

import leafax


def test_storages_of_a_file(tmp_path: Path) -> None:
    path, none = tmp_path / "bytes", tmp_path / "none"
    path.write_bytes(bytes(range(16)))

    @same
    def program(torch: Any, log: Log) -> None:
        make = torch.UntypedStorage.from_file
        memory = make(str(path), nbytes=16)
        log(
            memory.nbytes(),
            len(memory),
            memory.untyped() is memory,
            str(memory.device),
            make(str(path)).size(),
        )
        log(memory[3], memory[-1], memory[4:8].tolist(), memory[4:12][2:-1].tolist())
        log(memory[20:].nbytes(), memory[9:].nbytes())
        for dtype in (torch.uint8, torch.int16, torch.float32):
            log(torch.asarray(memory[8:16], dtype=dtype))
        log(torch.asarray(memory[4:12], dtype=torch.uint8).view(dtype=torch.int32).reshape(2, 1))
        changed = memory[4:8]
        changed.fill_(7)
        log(changed.tolist(), changed[0])
        log.attempt(memory.__getitem__, slice(None, None, 2))
        log.attempt(make, str(path), False, 17)
        log.attempt(make, str(none), False, 1)
        log(torch.asarray(torch.UntypedStorage([0, 0, 128, 63]), dtype=torch.float32))

    assert path.read_bytes() == bytes(range(16))


def test_a_file_is_not_written_to(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match="what is written to JAX's arrays does not get"):
        leafax.UntypedStorage.from_file(str(tmp_path / "new"), shared=True, nbytes=4)
    assert not (tmp_path / "new").exists()


def test_safetensors_reads_tensors_where_leafax_stands_for_torch(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    wanted = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array(7), "c": np.zeros((0, 2)),
        "d": np.arange(5, dtype=np.float16),
    }  # fmt: skip
    numpy.save_file(wanted, tmp_path / "x.safetensors")
    code = f"""
import leafax
leafax.install()
from safetensors.torch import load_file, safe_open
for name, t in sorted(load_file({str(tmp_path / "x.safetensors")!r}).items()):
    assert type(t) is leafax.Tensor
    print(name, t.dtype, t.tolist())
with safe_open({str(tmp_path / "x.safetensors")!r}, framework="pt") as file:
    print(file.get_slice("a")[1, 1:].tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "a torch.float32 [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]\nb torch.int64 7\n"
        "c torch.float64 []\nd torch.float16 [0.0, 1.0, 2.0, 3.0, 4.0]\n[4.0, 5.0]\n"
    )
