"""`torch.backends`: switches that PyTorch programs set; XLA chooses kernels by itself.

Each is a module that can be imported by its own name, as PyTorch's are.
"""

from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import mha as mha
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import quantized as quantized

fp32_precision = "none"
