"""Parts of `DataLoader`, under PyTorch's names."""

from __future__ import annotations

import atexit
import sys

from . import collate as collate
from . import fetch as fetch
from . import pin_memory as pin_memory
from . import signal_handling as signal_handling
from . import worker as worker
from ._failures import ExceptionWrapper as ExceptionWrapper

IS_WINDOWS = sys.platform == "win32"
HAS_NUMPY = True
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between two looks at whether the others are alive
python_exit_status = False  # Python is about to end: its workers are ended by multiprocessing


def _set_python_exit_flag() -> None:
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)
