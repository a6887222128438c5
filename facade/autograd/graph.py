"""PyTorch's `torch.autograd.graph`: the graph's nodes and edges."""

from .._autograd.backward_arguments import GradientEdge as GradientEdge
from .._autograd.graph.hook_handle import RemovableHandle as RemovableHandle
from .._autograd.graph.node_type import Node as Node
from .._autograd.saved_hooks.allow_mutation import (
    allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors,
)
from .._autograd.saved_hooks.saved_tensors_hooks import (
    disable_saved_tensors_hooks as disable_saved_tensors_hooks,
)
from .._autograd.saved_hooks.saved_tensors_hooks import save_on_cpu as save_on_cpu
from .._autograd.saved_hooks.saved_tensors_hooks import saved_tensors_hooks as saved_tensors_hooks
from ._edge_helpers import get_gradient_edge as get_gradient_edge
from ._edge_helpers import increment_version as increment_version
from ._elsewhere import region_activation_memory_budget as region_activation_memory_budget
from ._elsewhere import set_override_stale_capture_stream as set_override_stale_capture_stream
from ._elsewhere import (
    set_warn_on_accumulate_grad_stream_mismatch as set_warn_on_accumulate_grad_stream_mismatch,
)
from ._multi_grad import register_multi_grad_hook as register_multi_grad_hook
