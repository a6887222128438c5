"""PyTorch's `torch._higher_order_ops`: control flow as functions of functions.

A step is recorded as it runs, so these are Python's own loops and branches: what they compute is
part of the step's program, and a condition on data is a look at them.
"""

from .associative_scan import associative_scan as associative_scan
from .cond import cond as cond
from .map import map as map
from .scan import scan as scan
from .while_loop import while_loop as while_loop
