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
from .._pytree_classes import register_constant as register_constant
from .._pytree_classes import register_dataclass as register_dataclass
from .._pytree_paths import GetAttrKey as GetAttrKey
from .._pytree_paths import MappingKey as MappingKey
from .._pytree_paths import SequenceKey as SequenceKey
from .._pytree_paths import key_get as key_get
from .._pytree_paths import keystr as keystr
from .._pytree_paths import tree_all_only as tree_all_only
from .._pytree_paths import tree_any_only as tree_any_only
from .._pytree_paths import tree_flatten_with_path as tree_flatten_with_path
from .._pytree_paths import tree_is_leaf as tree_is_leaf
from .._pytree_paths import tree_iter as tree_iter
from .._pytree_paths import tree_leaves_with_path as tree_leaves_with_path
from .._pytree_paths import tree_map_only_ as tree_map_only_
from .._pytree_paths import tree_map_with_path as tree_map_with_path
