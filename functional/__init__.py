"""Programs, ops and masks: pure, without Tensor or global state, useful to plain JAX code."""

from . import ops
from .execution.memory import OutOfMemoryError
from .lowering.export import Lowered, lower
from .lowering.tags import tag
from .masks import grad, merge, partition, value_and_grad
from .program.dtypes import promote_types, result_type
from .program.op import TABLE, Fault, Op, op
from .program.options import lowerings
from .program.paths import invert, paths, select
from .program.program import Aval, Call, Input, Node, Program, Slot

__all__ = [
    "Aval",
    "Call",
    "Fault",
    "Input",
    "Lowered",
    "Node",
    "Op",
    "OutOfMemoryError",
    "Program",
    "Slot",
    "TABLE",
    "grad",
    "invert",
    "lower",
    "lowerings",
    "merge",
    "op",
    "ops",
    "partition",
    "paths",
    "promote_types",
    "result_type",
    "select",
    "tag",
    "value_and_grad",
]
