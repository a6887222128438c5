"""PyTorch's `torch._dynamo.decorators`."""

from .._core.absent.stand_ins import do_nothing as graph_break
from .._core.absent.stand_ins import do_nothing as mark_dynamic
from .._core.absent.stand_ins import do_nothing as mark_static
from .._core.absent.stand_ins import do_nothing as mark_static_address
from .._core.absent.stand_ins import leave as forbid_in_graph
from ..compiler import allow_in_graph as allow_in_graph
from ..compiler import assume_constant_result as assume_constant_result
from ..compiler import disable as disable
from ..compiler import set_stance as set_stance

__all__ = [
    "allow_in_graph", "assume_constant_result", "disable", "forbid_in_graph", "graph_break",
    "mark_dynamic", "mark_static", "mark_static_address", "set_stance",
]  # fmt: skip
