"""Trees of values: dicts, lists, tuples and registered classes, with anything as leaves."""

from .._pytree import TreeSpec as TreeSpec
from .._pytree import register_pytree_node as register_pytree_node
from .._pytree import tree_all as tree_all
from .._pytree import tree_any as tree_any
from .._pytree import tree_flatten as tree_flatten
from .._pytree import tree_leaves as tree_leaves
from .._pytree import tree_map as tree_map
from .._pytree import tree_map_ as tree_map_
from .._pytree import tree_map_only as tree_map_only
from .._pytree import tree_structure as tree_structure
from .._pytree import tree_unflatten as tree_unflatten
