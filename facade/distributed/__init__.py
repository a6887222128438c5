"""PyTorch's `torch.distributed`: not available until a group, of one process, is made.

Packages look at `is_available` and `is_initialized` and go the way of one process. What stands for
several is there to be imported, and raises when it is used.
"""

from __future__ import annotations

from .._core.absent.stand_ins import refuse as _refuse
from . import distributed_c10d as distributed_c10d
from .device_mesh import DeviceMesh as DeviceMesh
from .device_mesh import init_device_mesh as init_device_mesh
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import FileStore as FileStore
from .distributed_c10d import GroupMember as GroupMember
from .distributed_c10d import HashStore as HashStore
from .distributed_c10d import TCPStore as TCPStore
from .distributed_c10d import _all_gather_base as _all_gather_base
from .distributed_c10d import _reduce_scatter_base as _reduce_scatter_base
from .distributed_c10d import batch_isend_irecv as batch_isend_irecv
from .distributed_c10d import default_pg_timeout as default_pg_timeout
from .distributed_c10d import is_initialized as is_initialized

launch = _refuse("distributed.launch", "one process computes so far")


class DistError(RuntimeError):
    """Errors of processes that compute together."""


class DistBackendError(DistError):
    """Errors of what sends data between processes."""


class DistNetworkError(DistError):
    """Errors of the network between processes."""


class DistStoreError(DistError):
    """Errors of what processes find each other by."""


def is_available() -> bool:
    """Tell whether there is a process group: not before `init_process_group`."""
    return is_initialized()
