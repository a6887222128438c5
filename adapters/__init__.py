"""Adapters to other libraries: one module a library, which alone imports it.

What is here takes models of both Flax libraries and `leafax.nn.Module`.
"""

from ._models.summary import summary as summary
from .checkpointing import checkpoint as checkpoint
from .freezing import freeze as freeze
from .freezing import groups as groups
from .freezing import layerwise_groups as layerwise_groups
from .freezing import mask as mask
from .freezing import unfreeze as unfreeze
from .freezing import watch as watch
from .sharding import shard as shard
from .sharding import shard_batch as shard_batch
