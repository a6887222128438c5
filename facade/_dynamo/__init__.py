"""The names of PyTorch's `torch._dynamo` that packages use; nothing rewrites bytecode here."""

from .._core.absent.stand_ins import do_nothing as graph_break
from .._core.absent.stand_ins import do_nothing as mark_dynamic
from .._core.absent.stand_ins import do_nothing as mark_static
from .._core.absent.stand_ins import do_nothing as mark_static_address
from .._core.absent.stand_ins import do_nothing as maybe_mark_dynamic
from .._core.absent.stand_ins import leave as disallow_in_graph
from .._core.absent.stand_ins import leave as forbid_in_graph
from .._core.absent.stand_ins import leave as nonstrict_trace
from .._core.absent.stand_ins import leave as run
from ..compiler import allow_in_graph as allow_in_graph
from ..compiler import assume_constant_result as assume_constant_result
from ..compiler import disable as disable
from ..compiler import is_compiling as is_compiling
from ..compiler import list_backends as list_backends
from ..compiler import reset as reset
from ..compiler import set_stance as set_stance
from ..compiler import substitute_in_graph as substitute_in_graph
from . import config as config
from . import decorators as decorators
from . import eval_frame as eval_frame
from . import external_utils as external_utils
from . import utils as utils
from .eval_frame import OptimizedModule as OptimizedModule
from .eval_frame import explain as explain
from .eval_frame import export as export
from .eval_frame import is_dynamo_supported as is_dynamo_supported
from .eval_frame import is_inductor_supported as is_inductor_supported
from .eval_frame import optimize as optimize

__all__ = [
    "OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "decorators",
    "disable", "disallow_in_graph", "eval_frame", "explain", "export", "external_utils",
    "forbid_in_graph", "graph_break", "is_compiling", "is_dynamo_supported",
    "is_inductor_supported", "list_backends", "mark_dynamic", "mark_static",
    "mark_static_address", "maybe_mark_dynamic", "nonstrict_trace", "optimize", "reset", "run",
    "set_stance", "substitute_in_graph", "utils",
]  # fmt: skip
