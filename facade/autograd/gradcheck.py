"""PyTorch's `torch.autograd.gradcheck`: the checks and what they raise."""

from ._gradcheck.check import GradcheckError as GradcheckError
from ._gradcheck.check import gradcheck as gradcheck
from ._gradcheck.check import gradgradcheck as gradgradcheck
from ._gradcheck.legacy import get_analytical_jacobian as get_analytical_jacobian
from ._gradcheck.legacy import get_numerical_jacobian as get_numerical_jacobian
from ._gradcheck.legacy import (
    get_numerical_jacobian_wrt_specific_input as get_numerical_jacobian_wrt_specific_input,
)
