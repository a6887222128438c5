"""The recorder's memory: a trie of everything that was recorded before.

A thread has one `Trace`: what it recorded since the last cut. A `State` is a place in the trie
and stands for a whole history; recording an op is a step to another state, and an op that was
seen before at this place is found by one dictionary lookup. What the step's result is (shape,
dtype, whether it requires grad, where its gradient goes) is known from then on: the `Value`s of
a state hold it, shared by all traces that pass.

So a key must hold all that changes the meaning of what follows. Operands are keyed by their
`Value` (identity), which tells position, dtype and autograd role; grad mode and autocast are
steps of their own.

A tensor is *pending* while it has no array: its `Value` belongs to the running trace. A tensor
with an array enters the trace when it is first used in it; until then its value is `Resting`,
which no key contains, so that the lookup misses and the slow path lets it enter.
"""

from .recorder import Local as Local
from .recorder import Mode as Mode
from .recorder import anomaly as anomaly
from .recorder import local as local
from .state import State as State
from .trace import Trace as Trace
from .trace import between_traces as between_traces
from .values import EXTERNAL as EXTERNAL
from .values import LEAF as LEAF
from .values import NODE as NODE
from .values import NOWHERE as NOWHERE
from .values import Value as Value
from .values import resting as resting
