"""PyTorch's `torch.nn.modules.activation`: nonlinear functions as layers."""

from ._bounded import Hardshrink as Hardshrink
from ._bounded import Hardsigmoid as Hardsigmoid
from ._bounded import Hardswish as Hardswish
from ._bounded import Hardtanh as Hardtanh
from ._bounded import ReLU6 as ReLU6
from ._bounded import Sigmoid as Sigmoid
from ._bounded import Softshrink as Softshrink
from ._bounded import Softsign as Softsign
from ._bounded import Tanh as Tanh
from ._bounded import Tanhshrink as Tanhshrink
from ._bounded import Threshold as Threshold
from ._multihead_attention import MultiheadAttention as MultiheadAttention
from ._softmax import LogSoftmax as LogSoftmax
from ._softmax import Softmax as Softmax
from ._softmax import Softmax2d as Softmax2d
from ._softmax import Softmin as Softmin
from ._units import CELU as CELU
from ._units import ELU as ELU
from ._units import GELU as GELU
from ._units import GLU as GLU
from ._units import SELU as SELU
from ._units import LeakyReLU as LeakyReLU
from ._units import LogSigmoid as LogSigmoid
from ._units import Mish as Mish
from ._units import PReLU as PReLU
from ._units import ReLU as ReLU
from ._units import RReLU as RReLU
from ._units import SiLU as SiLU
from ._units import Softplus as Softplus

__all__ = [
    "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU",
    "Mish", "Hardswish", "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU",
    "LogSigmoid", "Softplus", "Softshrink", "MultiheadAttention", "PReLU", "Softsign",
    "Tanhshrink", "Softmin", "Softmax", "Softmax2d", "LogSoftmax",
]  # fmt: skip
