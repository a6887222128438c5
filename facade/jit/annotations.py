"""PyTorch's `torch.jit.annotations`: types that annotations of scripted functions name."""

from typing import Any as Any
from typing import Dict as Dict  # noqa: UP035 # packages import these names from here
from typing import List as List  # noqa: UP035
from typing import Optional as Optional
from typing import Tuple as Tuple  # noqa: UP035
from typing import Union as Union

from .._jit_internal import BroadcastingList1 as BroadcastingList1
from .._jit_internal import BroadcastingList2 as BroadcastingList2
from .._jit_internal import BroadcastingList3 as BroadcastingList3
from .._jit_internal import BroadcastingList4 as BroadcastingList4
from .._jit_internal import BroadcastingList5 as BroadcastingList5
from .._jit_internal import BroadcastingList6 as BroadcastingList6
from ..futures import Future as Future
