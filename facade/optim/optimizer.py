"""PyTorch's `torch.optim.optimizer`: the base class, and hooks of all optimizers."""

from ._base.groups import required as required
from ._base.hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from ._base.hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from ._base.optimizer import Optimizer as Optimizer
