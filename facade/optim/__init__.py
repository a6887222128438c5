"""PyTorch's `torch.optim`, on optax."""

from ._adam import Adam as Adam
from ._adam import AdamW as AdamW
from ._optax import Optax as Optax
from ._optimizer import Optimizer as Optimizer
from ._sgd import SGD as SGD
