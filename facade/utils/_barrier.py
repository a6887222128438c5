"""The op that keeps XLA from merging a recomputation with what it has computed already."""

from __future__ import annotations

from leafax.functional.lowering.barrier import barrier
from leafax.functional.program.op import Op

BARRIER = Op(barrier, name="optimization_barrier", differentiable=False)
