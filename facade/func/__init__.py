"""PyTorch's `torch.func`: transforms of functions of tensors, recorded like all else."""

from ._batch_norm import replace_all_batch_norm_modules_ as replace_all_batch_norm_modules_
from ._forward import jvp as jvp
from ._forward import linearize as linearize
from ._functional_call import functional_call as functional_call
from ._functional_call import stack_module_state as stack_module_state
from ._functionalize import functionalize as functionalize
from ._grad import grad as grad
from ._grad import grad_and_value as grad_and_value
from ._grad import vjp as vjp
from ._jacobian import hessian as hessian
from ._jacobian import jacfwd as jacfwd
from ._jacobian import jacrev as jacrev
from ._rearrange import rearrange as rearrange
from ._running import debug_unwrap as debug_unwrap
from ._vmap import vmap as vmap
