"""Kinds of reductions, stores and backends, which programs name."""

from __future__ import annotations

import enum
from typing import Any

from .._core.absent.stand_ins import refuse_class
from .._core.processes.group import ProcessGroup

__all__ = [
    "Backend", "FileStore", "HashStore", "PrefixStore", "ProcessGroupGloo", "ProcessGroupNCCL",
    "ReduceOp", "Store", "TCPStore",
]  # fmt: skip

_MEET = "processes find each other by `init_process_group`, through JAX"
Store = refuse_class("distributed.Store", _MEET)
PrefixStore = refuse_class("distributed.PrefixStore", _MEET, Store)
FileStore = refuse_class("distributed.FileStore", _MEET, Store)
HashStore = refuse_class("distributed.HashStore", _MEET, Store)
TCPStore = refuse_class("distributed.TCPStore", _MEET, Store)
ProcessGroupNCCL = refuse_class("distributed.ProcessGroupNCCL", _MEET, ProcessGroup)
ProcessGroupGloo = refuse_class("distributed.ProcessGroupGloo", _MEET, ProcessGroup)


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


def name_of(op: Any) -> str:
    """Return the name of a reduction.

    Raises:
      TypeError: it is none.
    """
    if not isinstance(op, ReduceOp):
        raise TypeError(f"expected a ReduceOp, got {type(op).__name__}")
    return op.name


class Backend(str):
    """The name of what sends data between processes."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
