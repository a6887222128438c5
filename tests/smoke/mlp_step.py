"""One MLP trained for a few steps: a smoke test for a Python or JAX that the suite does not run on.

Run from outside the repository, against an installed leafax: `python mlp_step.py`.
"""

import sys

import jax
import jax.numpy as jnp

import leafax as torch
from leafax.functional import tag, value_and_grad

torch.manual_seed(0)
x = torch.randn(64, 8)
target = (x * x).sum(1, keepdim=True)
shapes = [(8, 32), (32,), (32, 1), (1,)]
parameters = [(torch.randn(*shape) * 0.3).requires_grad_() for shape in shapes]
optimizer = torch.optim.Adam(parameters, lr=1e-2)
losses = []
for _ in range(50):
    w1, b1, w2, b2 = parameters
    loss = (((x @ w1 + b1).tanh() @ w2 + b2 - target) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses


def product(params: dict[str, jax.Array]) -> jax.Array:
    return tag("h", params["a"] ** 2) * params["b"]


# Gradients by name read JAX's programs, whose form is less stable than the rest of its API.
params = {"a": jnp.float32(3), "b": jnp.float32(2)}
value, (gradients, named) = jax.jit(value_and_grad(product, "a", wrt=("h",)))(params)
assert (value, gradients["a"], gradients["b"], named["h"]) == (18, 12, None, 2)

python = ".".join(map(str, sys.version_info[:3]))
print(f"Python {python}, jax {jax.__version__}: loss {losses[0]:.3f} -> {losses[-1]:.3f}")
