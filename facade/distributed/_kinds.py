"""Kinds of reductions, stores and backends, which programs name."""

from __future__ import annotations

import enum
from typing import Any

from .._core.absent.stand_ins import refuse_class
from .._core.process_group import ProcessGroup

__all__ = [
    "Backend", "FileStore", "HashStore", "P2POp", "PrefixStore", "ProcessGroupGloo",
    "ProcessGroupNCCL", "ReduceOp", "Store", "TCPStore", "Work",
]  # fmt: skip

_ONE = "one process computes so far"
Store = refuse_class("distributed.Store", _ONE)
PrefixStore = refuse_class("distributed.PrefixStore", _ONE, Store)
FileStore = refuse_class("distributed.FileStore", _ONE, Store)
HashStore = refuse_class("distributed.HashStore", _ONE, Store)
TCPStore = refuse_class("distributed.TCPStore", _ONE, Store)
P2POp = refuse_class("distributed.P2POp", _ONE)
ProcessGroupNCCL = refuse_class("distributed.ProcessGroupNCCL", _ONE, ProcessGroup)
ProcessGroupGloo = refuse_class("distributed.ProcessGroupGloo", _ONE, ProcessGroup)


class ReduceOp(enum.Enum):
    """Operations that bring the numbers of processes together."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    RedOpType = SUM


class Backend(str):
    """The name of what sends data between processes."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"


class Work:
    """A collective that has been done."""

    def wait(self, timeout: Any = None) -> bool:
        """Return True: it is done."""
        return True

    is_completed = is_success = wait
