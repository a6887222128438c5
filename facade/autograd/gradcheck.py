"""PyTorch's `torch.autograd.gradcheck`: the checks and what they raise."""

from ._gradcheck import GradcheckError as GradcheckError
from ._gradcheck import gradcheck as gradcheck
from ._gradcheck import gradgradcheck as gradgradcheck
