"""Trees of values: dicts, lists, tuples and registered classes, with anything as leaves."""

from .._core.tree.classes import register_constant as register_constant
from .._core.tree.classes import register_dataclass as register_dataclass
from .._core.tree.paths import GetAttrKey as GetAttrKey
from .._core.tree.paths import MappingKey as MappingKey
from .._core.tree.paths import SequenceKey as SequenceKey
from .._core.tree.paths import key_get as key_get
from .._core.tree.paths import keystr as keystr
from .._core.tree.paths import tree_all_only as tree_all_only
from .._core.tree.paths import tree_any_only as tree_any_only
from .._core.tree.paths import tree_flatten_with_path as tree_flatten_with_path
from .._core.tree.paths import tree_is_leaf as tree_is_leaf
from .._core.tree.paths import tree_iter as tree_iter
from .._core.tree.paths import tree_leaves_with_path as tree_leaves_with_path
from .._core.tree.paths import tree_map_only_ as tree_map_only_
from .._core.tree.paths import tree_map_with_path as tree_map_with_path
from .._core.tree.trees import TreeSpec as TreeSpec
from .._core.tree.trees import register_pytree_node as register_pytree_node
from .._core.tree.trees import tree_all as tree_all
from .._core.tree.trees import tree_any as tree_any
from .._core.tree.trees import tree_flatten as tree_flatten
from .._core.tree.trees import tree_leaves as tree_leaves
from .._core.tree.trees import tree_map as tree_map
from .._core.tree.trees import tree_map_ as tree_map_
from .._core.tree.trees import tree_map_only as tree_map_only
from .._core.tree.trees import tree_structure as tree_structure
from .._core.tree.trees import tree_unflatten as tree_unflatten
