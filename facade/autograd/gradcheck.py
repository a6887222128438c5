"""PyTorch's `torch.autograd.gradcheck`: the checks and what they raise."""

from ._gradcheck import GradcheckError as GradcheckError
from ._gradcheck import gradcheck as gradcheck
from ._gradcheck import gradgradcheck as gradgradcheck
from ._gradcheck_legacy import get_analytical_jacobian as get_analytical_jacobian
from ._gradcheck_legacy import get_numerical_jacobian as get_numerical_jacobian
from ._gradcheck_legacy import (
    get_numerical_jacobian_wrt_specific_input as get_numerical_jacobian_wrt_specific_input,
)
