"""PyTorch's `torch.distributed`: processes that compute together, and meshes of devices.

In a process that was started alone it is not available until `init_process_group`: packages look at
`is_available` and go the way of one process before. A rank is a process with all its devices.
"""

from __future__ import annotations

import os as _os

from .._core.processes.errors import DistBackendError as DistBackendError
from .._core.processes.errors import DistError as DistError
from .._core.processes.errors import DistNetworkError as DistNetworkError
from .._core.processes.errors import DistStoreError as DistStoreError
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


def is_available() -> bool:
    """Tell whether there is a process group, or the environment asks for one of several."""
    return is_initialized() or int(_os.environ.get("WORLD_SIZE", "1")) > 1
