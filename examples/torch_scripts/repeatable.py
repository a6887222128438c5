"""The same random numbers under PyTorch and leafax: NumPy's, when a script is given `--check`."""

import math
from typing import Any

import numpy as np


class Draws:
    """Random tensors of `torch`, or of NumPy where two libraries are to be compared."""

    def __init__(self, torch: Any, seed: int, check: bool) -> None:
        torch.manual_seed(seed)
        self.torch = torch
        self.generator = np.random.default_rng(seed) if check else None

    def randn(self, *shape: int) -> Any:
        """Return `float32[shape]` of the standard normal distribution."""
        if self.generator is None:
            return self.torch.randn(shape)
        return self.torch.from_numpy(self.generator.standard_normal(shape, np.float32))

    def rand(self, *shape: int) -> Any:
        """Return `float32[shape]`, uniform in [0, 1)."""
        if self.generator is None:
            return self.torch.rand(shape)
        return self.torch.from_numpy(self.generator.random(shape, np.float32))

    def randint(self, high: int, *shape: int) -> Any:
        """Return `int64[shape]` of 0 to `high - 1`."""
        if self.generator is None:
            return self.torch.randint(high, shape)
        return self.torch.from_numpy(self.generator.integers(high, size=shape))

    def categories(self, probabilities: Any) -> Any:
        """Draw one category for each row of `probabilities`.

        Args:
            probabilities: `float[rows, categories]`.

        Returns:
            `int64[rows, 1]`.
        """
        if self.generator is None:
            return self.torch.multinomial(probabilities, 1)
        below = probabilities.cumsum(1) < self.rand(len(probabilities), 1)
        return below.sum(1, keepdim=True).clamp(max=probabilities.shape[1] - 1)


def fill(model: Any, seed: int) -> None:
    """Give `model` weights that depend on `seed` alone, and turn its dropout off.

    Args:
        model: a module; weights of two dimensions and more are scaled by their fan in.
        seed: of NumPy's generator.
    """
    generator, state = np.random.default_rng(seed), {}
    for name, tensor in model.state_dict().items():
        shape, values = tuple(tensor.shape), generator.standard_normal(tuple(tensor.shape))
        if not tensor.is_floating_point():
            state[name] = tensor
        elif len(shape) > 1:
            state[name] = tensor.new_tensor(values / math.sqrt(math.prod(shape[1:])))
        elif name.endswith(("weight", "running_var")):
            state[name] = tensor.new_tensor(1 + 0.1 * abs(values))
        else:
            state[name] = tensor.new_tensor(0.1 * values)
    model.load_state_dict(state)
    for module in model.modules():
        if type(module).__name__.startswith("Dropout"):
            module.p = 0.0
