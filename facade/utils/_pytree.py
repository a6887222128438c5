"""Trees of values: dicts, lists, tuples and registered classes, with anything as leaves."""

from typing import Any as _Any

from .._core.tree.classes import CONSTANT_NODES as CONSTANT_NODES
from .._core.tree.classes import ConstantNode as ConstantNode
from .._core.tree.classes import is_constant_class as is_constant_class
from .._core.tree.classes import register_constant as register_constant
from .._core.tree.classes import register_dataclass as register_dataclass
from .._core.tree.nodes import BUILTIN_TYPES as BUILTIN_TYPES
from .._core.tree.nodes import NODES as SUPPORTED_NODES  # noqa: F401
from .._core.tree.nodes import NodeDef as NodeDef
from .._core.tree.nodes import _dict_flatten as _dict_flatten
from .._core.tree.nodes import _dict_unflatten as _dict_unflatten
from .._core.tree.nodes import _list_unflatten as _list_unflatten
from .._core.tree.nodes import _tuple_flatten as _list_flatten  # noqa: F401
from .._core.tree.nodes import _tuple_flatten as _tuple_flatten
from .._core.tree.nodes import _tuple_unflatten as _tuple_unflatten
from .._core.tree.nodes import node_type as _get_node_type  # noqa: F401
from .._core.tree.nodes import register_pytree_node as register_pytree_node
from .._core.tree.paths import GetAttrKey as GetAttrKey
from .._core.tree.paths import MappingKey as MappingKey
from .._core.tree.paths import SequenceKey as SequenceKey
from .._core.tree.paths import _dict_flatten_with_keys as _dict_flatten_with_keys
from .._core.tree.paths import _list_flatten_with_keys as _list_flatten_with_keys
from .._core.tree.paths import _list_flatten_with_keys as _tuple_flatten_with_keys  # noqa: F401
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
from .._core.tree.specs import LeafSpec as LeafSpec
from .._core.tree.specs import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from .._core.tree.specs import _deregister_pytree_node as _deregister_pytree_node
from .._core.tree.specs import _is_leaf as _is_leaf
from .._core.tree.specs import _is_namedtuple_instance as _is_namedtuple_instance
from .._core.tree.specs import _register_pytree_node as _register_pytree_node
from .._core.tree.specs import arg_tree_leaves as arg_tree_leaves
from .._core.tree.specs import is_namedtuple as is_namedtuple
from .._core.tree.specs import is_namedtuple_class as is_namedtuple_class
from .._core.tree.specs import is_namedtuple_instance as is_namedtuple_instance
from .._core.tree.specs import is_structseq as is_structseq
from .._core.tree.specs import is_structseq_class as is_structseq_class
from .._core.tree.specs import is_structseq_instance as is_structseq_instance
from .._core.tree.specs import map_only as map_only
from .._core.tree.specs import treespec_dict as treespec_dict
from .._core.tree.specs import treespec_leaf as treespec_leaf
from .._core.tree.specs import treespec_pprint as treespec_pprint
from .._core.tree.specs import treespec_tuple as treespec_tuple
from .._core.tree.trees import TreeSpec as TreeSpec
from .._core.tree.trees import tree_all as tree_all
from .._core.tree.trees import tree_any as tree_any
from .._core.tree.trees import tree_flatten as tree_flatten
from .._core.tree.trees import tree_leaves as tree_leaves
from .._core.tree.trees import tree_map as tree_map
from .._core.tree.trees import tree_map_ as tree_map_
from .._core.tree.trees import tree_map_only as tree_map_only
from .._core.tree.trees import tree_structure as tree_structure
from .._core.tree.trees import tree_unflatten as tree_unflatten

#: Names of types, for annotations.
PyTree = Context = DumpableContext = KeyEntry = _Any
KeyPath = tuple[_Any, ...]
PyTreeSpec = TreeSpec
