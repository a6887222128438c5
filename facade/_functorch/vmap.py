"""PyTorch's `torch._functorch.vmap`: `vmap`, and the steps of PyTorch's own that packages replace.

A function is mapped here by recording it on the first example, so there are no such steps: what is
put in their place is not called.
"""

from .._C._functorch import _add_batch_dim as _add_batch_dim
from .._C._functorch import _remove_batch_dim as _remove_batch_dim
from .._core.absent.stand_ins import refuse
from .._tensor.tensor import Tensor as Tensor
from ..func import _vmap_dims as _dims
from ..func._vmap import vmap as vmap
from ..utils._pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from ..utils._pytree import tree_flatten as tree_flatten
from ..utils._pytree import tree_unflatten as tree_unflatten

_get_name = _dims.function_name
_INSTEAD = "`leafax.func.vmap` records the function on the first example"
_create_batched_inputs, _maybe_remove_batch_dim, _process_batched_inputs, _unwrap_batched = [
    refuse(f"_functorch.vmap.{name}", _INSTEAD)
    for name in (
        "_create_batched_inputs", "_maybe_remove_batch_dim", "_process_batched_inputs",
        "_unwrap_batched",
    )
]  # fmt: skip
