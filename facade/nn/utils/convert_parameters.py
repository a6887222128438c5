"""PyTorch's `torch.nn.utils.convert_parameters`."""

from .._functional.vectors import parameters_to_vector as parameters_to_vector
from .._functional.vectors import vector_to_parameters as vector_to_parameters
