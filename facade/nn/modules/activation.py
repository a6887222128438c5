"""PyTorch's `torch.nn.modules.activation`: nonlinear functions as layers."""

from ._layers.bounded import Hardshrink as Hardshrink
from ._layers.bounded import Hardsigmoid as Hardsigmoid
from ._layers.bounded import Hardswish as Hardswish
from ._layers.bounded import Hardtanh as Hardtanh
from ._layers.bounded import ReLU6 as ReLU6
from ._layers.bounded import Sigmoid as Sigmoid
from ._layers.bounded import Softshrink as Softshrink
from ._layers.bounded import Softsign as Softsign
from ._layers.bounded import Tanh as Tanh
from ._layers.bounded import Tanhshrink as Tanhshrink
from ._layers.bounded import Threshold as Threshold
from ._layers.multihead_attention import MultiheadAttention as MultiheadAttention
from ._layers.softmax import LogSoftmax as LogSoftmax
from ._layers.softmax import Softmax as Softmax
from ._layers.softmax import Softmax2d as Softmax2d
from ._layers.softmax import Softmin as Softmin
from ._layers.units import CELU as CELU
from ._layers.units import ELU as ELU
from ._layers.units import GELU as GELU
from ._layers.units import GLU as GLU
from ._layers.units import SELU as SELU
from ._layers.units import LeakyReLU as LeakyReLU
from ._layers.units import LogSigmoid as LogSigmoid
from ._layers.units import Mish as Mish
from ._layers.units import PReLU as PReLU
from ._layers.units import ReLU as ReLU
from ._layers.units import RReLU as RReLU
from ._layers.units import SiLU as SiLU
from ._layers.units import Softplus as Softplus

__all__ = [
    "Threshold", "ReLU", "RReLU", "Hardtanh", "ReLU6", "Sigmoid", "Hardsigmoid", "Tanh", "SiLU",
    "Mish", "Hardswish", "ELU", "CELU", "SELU", "GLU", "GELU", "Hardshrink", "LeakyReLU",
    "LogSigmoid", "Softplus", "Softshrink", "MultiheadAttention", "PReLU", "Softsign",
    "Tanhshrink", "Softmin", "Softmax", "Softmax2d", "LogSoftmax",
]  # fmt: skip
