"""PyTorch's `torch.optim.optimizer`: the base class, and hooks of all optimizers."""

from ._groups import required as required
from ._hooks import register_optimizer_step_post_hook as register_optimizer_step_post_hook
from ._hooks import register_optimizer_step_pre_hook as register_optimizer_step_pre_hook
from ._optimizer import Optimizer as Optimizer
